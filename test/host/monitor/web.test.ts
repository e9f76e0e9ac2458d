// The page: who may ask for it, what it tells, and how it is used in a real browser by keyboard and by name.
import assert from "node:assert/strict"
import { existsSync } from "node:fs"
import { request, type IncomingMessage } from "node:http"
import { after, before, describe, test } from "node:test"
import { chromium, type Browser, type Page } from "playwright-core"
import { Desk } from "../../../host/monitor/desk"
import { WebPage, type Action } from "../../../host/monitor/web"
import { Herd } from "../../../host/start/herd"
import { Queue } from "../../../host/start/queue"
import { Builds } from "../../../host/monitor/builds"
import { RealClock, VirtualClock } from "../../../host/vm/clock"
import { loadProgram, PROJECT } from "../../../host/vm/program"
import { until } from "./bench"

const CHROMIUM = "/usr/bin/chromium"
const noChromium =
    !existsSync(CHROMIUM) && `needs ${CHROMIUM} (Debian: apt install chromium)`

interface Answer {
    code: number
    headers: IncomingMessage["headers"]
    body: string
}

/** A request as any program on this computer can make it. */
function ask(
    url: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
): Promise<Answer> {
    return new Promise((done, failed) => {
        const asked = request(
            new URL(path, url),
            { method: body === undefined ? "GET" : "POST", headers },
            answer => {
                let text = ""
                answer.on("data", piece => (text += piece))
                answer.on("end", () =>
                    done({
                        code: answer.statusCode!,
                        headers: answer.headers,
                        body: text,
                    }),
                )
            },
        )
        asked.on("error", failed)
        asked.end(body)
    })
}

/** The first bytes of an event stream, once they hold what is looked for. */
function stream(url: string, sign: RegExp): Promise<string> {
    return new Promise((done, failed) => {
        const asked = request(new URL("/events", url), answer => {
            let text = ""
            answer.on("data", piece => {
                text += piece
                if (!sign.test(text)) return
                asked.destroy()
                done(text)
            })
        })
        asked.on("error", failed)
        asked.end()
    })
}

describe("who the page answers", () => {
    const desk = new Desk()
    const acted: string[] = []
    const actions: Action[] = [
        { id: "broker", label: "Broker down", isOn: false },
        { id: "policy", label: "Policy", value: "a", choices: [["a", "A"]] },
    ]
    const page = new WebPage({
        title: "T",
        desk,
        clock: new RealClock(),
        nowMs: () => 5000,
        actions: () => actions,
        act: (id, value) => {
            if (value === "fail") throw new Error("it can't")
            acted.push(`${id}=${value}`)
        },
    })
    let url = ""
    let token = ""
    before(async () => {
        url = await page.listen()
        const { body } = await ask(url, "/")
        token = /name="token" content="([^"]+)"/.exec(body)![1]
    })
    after(() => page.close())

    test("only under its own name: another Host is refused on every path", async () => {
        for (const host of [
            "evil.example",
            `evil.example:${new URL(url).port}`,
            "127.0.0.1",
        ])
            for (const path of ["/", "/events", "/monitor/view"])
                assert.equal((await ask(url, path, { host })).code, 403)
        const host = `localhost:${new URL(url).port}`
        assert.equal((await ask(url, "/", { host })).code, 200)
    })

    test("it may run no script but its own, and sit in no frame", async () => {
        const { headers } = await ask(url, "/")
        const policy = headers["content-security-policy"] as string
        for (const part of [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ])
            assert.ok(policy.includes(part), policy)
        assert.equal(headers["access-control-allow-origin"], undefined)
    })

    const act = (headers: Record<string, string>, body: string) =>
        ask(url, "/act", headers, body)
    const press = '{"id":"broker","value":""}'

    test("an action needs the token, and no foreign origin", async () => {
        assert.equal((await act({}, press)).code, 403)
        assert.equal(
            (await act({ "x-token": "x".repeat(token.length) }, press)).code,
            403,
        )
        assert.equal(
            (
                await act(
                    { "x-token": token, origin: "http://evil.example" },
                    press,
                )
            ).code,
            403,
        )
        assert.deepEqual(acted, [])
        assert.equal(
            (await act({ "x-token": token, origin: url.slice(0, -1) }, press))
                .code,
            204,
        )
        assert.deepEqual(acted, ["broker="])
    })

    test("an action that isn't offered, or can't be done, says so", async () => {
        for (const body of [
            "",
            "{",
            "null",
            '{"id":"rm","value":""}',
            '{"id":"policy","value":"z"}',
            `{"id":"${"x".repeat(2000)}","value":""}`,
        ])
            assert.equal(
                (await act({ "x-token": token }, body)).code,
                400,
                body.slice(0, 40),
            )
        const failed = await act(
            { "x-token": token },
            '{"id":"broker","value":"fail"}',
        )
        assert.deepEqual([failed.code, failed.body], [500, "it can't\n"])
    })

    test("nothing else is served", async () => {
        for (const path of [
            "/package.json",
            "/monitor/../../package.json",
            "/monitor/web",
            "/toString",
        ])
            assert.equal((await ask(url, path)).code, 404, path)
    })

    test("a page gets all views at once, then what changed", async () => {
        desk.take({ tMs: 1, dev: "a", line: { ev: "halt", reason: "first" } })
        const later = stream(url, /: second"/)
        await stream(url, /event: told[^]*event: views[^]*"dev":"a"/)
        desk.take({ tMs: 2, dev: "b", line: { ev: "text", text: "> x" } })
        desk.take({ tMs: 3, dev: "b", line: { ev: "halt", reason: "second" } })
        const text = await later
        assert.match(text, /"dev":"b"/)
        assert.equal(text.split('"dev":"a"').length, 2, "a was sent once")
    })
})

test("a slow broker serves in turn, and forgets its line when it is gone", () => {
    const clock = new VirtualClock()
    const queue = new Queue(clock)
    const served: string[] = []
    const join = (name: string) =>
        queue.join(() => served.push(`${name} ${clock.nowMs()}`))
    join("a")
    queue.perSecond = 2
    for (const name of ["b", "c", "d"]) join(name)
    clock.runForSync(1200)
    assert.deepEqual(served, ["a 0", "b 500", "c 1000"])
    queue.clear()
    clock.runForSync(5000)
    join("e")
    clock.runForSync(1000)
    assert.deepEqual(served.slice(-1), ["e 6700"])
})

describe("the page in a browser", { skip: noChromium }, () => {
    let browser: Browser
    let herd: Herd
    let served: WebPage
    let page: Page
    const errors: string[] = []

    before(async () => {
        const clock = new RealClock()
        herd = new Herd({
            clock,
            bytecode: loadProgram("src/main.ts").bytecode,
            devices: 3,
            settings: { RETRY_MIN: "300", STABLE: "500" },
            builds: new Builds(PROJECT),
        })
        served = new WebPage({
            title: "Herdless: 3 simulated devices",
            desk: herd.desk,
            clock,
            nowMs: () => clock.nowMs(),
            windowMs: 120_000,
            actions: () => herd.actions(),
            act: (id, value) => herd.act(id, value),
        })
        const url = await served.listen()
        await herd.start()
        browser = await chromium.launch({
            executablePath: CHROMIUM,
            args: [
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        })
        page = await browser.newPage()
        page.on("pageerror", e => errors.push(e.message))
        page.on("console", m => m.type() === "error" && errors.push(m.text()))
        await page.goto(url)
    })
    after(async () => {
        await browser?.close()
        await served?.close()
        await herd?.close()
    })

    const summary = () => page.getByRole("status").textContent()
    const says = (sign: RegExp) =>
        page.waitForFunction(
            source =>
                new RegExp(source).test(
                    document.querySelector("[role=status]")!.textContent!,
                ),
            sign.source,
            { timeout: 60_000 },
        )

    test("shows every device by name and state", async () => {
        await says(/3 devices: 3 connected/)
        assert.equal(await page.title(), "Herdless: 3 simulated devices")
        const rows = page.getByRole("row").filter({ hasText: "connected" })
        assert.equal(await rows.count(), 3)
        assert.equal(
            await page
                .getByRole("columnheader", { name: "Now, and why" })
                .count(),
            1,
        )
    })

    test("by keyboard alone: broker down, the devices count down, broker up, all are back", async () => {
        const button = page.getByRole("button", { name: "Broker down" })
        assert.equal(await button.getAttribute("aria-pressed"), "false")
        await button.focus()
        await page.keyboard.press("Enter")
        await says(/3 devices: 3 waiting/)
        assert.equal(await button.getAttribute("aria-pressed"), "true")
        const first = page.getByRole("row").nth(1)
        await first.getByText(/attempt \d+ in [\d.]+ m?s/).waitFor()
        await first.getByText("connection refused").waitFor()
        await page.keyboard.press("Space")
        await says(/3 devices: 3 connected/)
        assert.equal(
            await button.evaluate(b => b === document.activeElement),
            true,
            "the focus stayed",
        )
    })

    test("a device's last lines open by keyboard, and arrows go from device to device", async () => {
        const names = page.locator("button.device")
        await names.nth(0).focus()
        await page.keyboard.press("Enter")
        assert.equal(await names.nth(0).getAttribute("aria-expanded"), "true")
        await page
            .getByLabel("What came last, newest first")
            .first()
            .getByText(/connected in/)
            .waitFor()
        await page.keyboard.press("ArrowDown")
        assert.equal(
            await names.nth(1).evaluate(b => b === document.activeElement),
            true,
        )
        await page.keyboard.press("End")
        assert.equal(
            await names.nth(2).evaluate(b => b === document.activeElement),
            true,
        )
        await page.keyboard.press("Home")
        await page.keyboard.press("Enter")
        assert.equal(await names.nth(0).getAttribute("aria-expanded"), "false")
    })

    test("text from a device is text, never part of the page", async () => {
        const dev = '<img src=x onerror="document.title=1">'
        herd.desk.take({
            tMs: 1,
            dev,
            line: { ev: "halt", reason: `${dev}</pre><script>1</script>` },
        })
        await page.getByRole("button", { name: dev }).waitFor()
        await page.getByRole("button", { name: "trouble 1" }).click()
        assert.equal(await page.locator("tbody img, tbody script").count(), 0)
        assert.equal(await page.locator("tbody tr:visible").count(), 1)
        await page.getByRole("button", { name: /^all/ }).click()
    })

    test("Wi-Fi, power and policy reach the devices", async () => {
        const wifi = page.getByRole("button", { name: "Wi-Fi down" })
        await wifi.click()
        await says(/3 in trouble|4 in trouble/)
        await wifi.click()
        await says(/3 connected/)
        const starts = () =>
            [...herd.desk.views.values()].reduce(
                (sum, v) => sum + v.counters.starts,
                0,
            )
        const before = starts()
        await page.getByRole("button", { name: /Power cut/ }).click()
        await until(() => starts() === before + 3)
        await page.getByLabel("Policy").selectOption("fixed")
        await until(() => starts() === before + 6)
        await until(() =>
            [...herd.desk.views.values()].some(v => v.wait?.ceilingMs === 5000),
        )
    })

    test("on a narrow screen nothing is wider than the screen", async () => {
        await page.setViewportSize({ width: 360, height: 700 })
        const width = await page.evaluate(
            () => document.documentElement.scrollWidth,
        )
        assert.ok(width <= 360, `${width} px`)
    })

    test("nothing went wrong in the browser", async () => {
        assert.ok(await summary())
        assert.deepEqual(errors, [])
    })
})
