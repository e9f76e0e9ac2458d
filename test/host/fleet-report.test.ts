// The report as a reader has it: a file in a browser without a network.
import assert from "node:assert/strict"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, describe, test } from "node:test"
import { pathToFileURL } from "node:url"
import type { Browser, Page } from "playwright-core"
import { runTool } from "../../host/fleet/cmd-run"
import { alikeOf } from "../../host/fleet/report/advice"
import { noChromium, startChromium } from "./browser"
import { FakeIo } from "./fleet-io"

const folder = mkdtempSync(join(tmpdir(), "herdless-report-"))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, "report.html")

/** What --json printed for the same run. */
let printed: any

before(async () => {
    const io = new FakeIo()
    const flags =
        "--devices 3000 --rate 100 --policy adaptive,fitted,equal-60s,none-60s,mqtt.js --watch 400 --json --report"
    assert.equal(await runTool.run([...flags.split(" "), file], io), 0)
    printed = JSON.parse(io.printed)
})

test("the page asks nothing of a network and holds what --json printed", () => {
    const html = readFileSync(file, "utf8")
    const page = html.replace(/<script>[^]*?<\/script>/g, "")
    assert.doesNotMatch(page, /(src|href)="(?!data:)/)
    const data = JSON.parse(/id="data">([^]*?)<\/script>/.exec(html)![1])
    for (const key of ["limitSeconds", "seed", "policies"])
        assert.deepEqual(data[key], printed[key])
})

test("policies that behave alike are named together, others are not", () => {
    const of = (name: string, p99: number, recovered = 100) => ({
        ...{ name, recovered, p50: p99 / 2, p99, last: p99, ratio: p99 },
        ...{ attemptsPerDevice: 5, wasted: 0, peakPerSecond: 9 },
        ...{ brokerDeaths: 0, recoveredBySecond: [], attemptsBySecond: [] },
    })
    const alike = alikeOf([
        of("a", 100),
        of("b", Infinity, 20),
        of("c", 101),
        of("d", 104),
        of("e", Infinity, 20),
        of("f", Infinity, 50),
    ])
    assert.deepEqual(alike, [
        ["a", "c"],
        ["b", "e"],
    ])
})

describe("in Chromium", { skip: noChromium }, () => {
    let browser: Browser
    before(async () => (browser = await startChromium()))
    after(() => browser.close())

    /** Opens the page and fails on any complaint of the browser. */
    async function open(
        options: { width: number; dark?: boolean },
        look: (page: Page) => Promise<void>,
    ) {
        const page = await browser.newPage({
            viewport: { width: options.width, height: 800 },
            colorScheme: options.dark ? "dark" : "light",
        })
        const complaints: string[] = []
        page.on("console", message => complaints.push(message.text()))
        page.on("pageerror", error => complaints.push(error.message))
        page.on("request", r => {
            if (!/^(file|data):/.test(r.url())) complaints.push(r.url())
        })
        await page.goto(pathToFileURL(file).href)
        await look(page)
        assert.deepEqual(complaints, [])
        await page.close()
    }

    /** Colours of the lines in a chart that are longer than a mark. */
    const strokes = (page: Page, chart: string) =>
        page.$$eval(`#${chart} svg path[fill="none"]`, paths =>
            paths
                .filter(path => (path.getAttribute("d") ?? "").length > 60)
                .map(path => path.getAttribute("stroke")),
        )

    test("every policy has a curve in both charts; a check box takes it away", () =>
        open({ width: 1200 }, async page => {
            const data = await page.$eval("#data", e =>
                JSON.parse(e.textContent!),
            )
            const colors = data.curves.map((c: any) => c.color)
            assert.equal(colors.length, 5)
            for (const color of colors)
                assert.ok(
                    (await strokes(page, "recovered")).includes(color),
                    color,
                )
            const inAttempts = await page.$eval("#attempts", e => e.innerHTML)
            for (const color of colors) assert.ok(inAttempts.includes(color))
            await page.focus('input[data-policy="fitted"]')
            await page.keyboard.press("Space")
            const left = await strokes(page, "recovered")
            assert.ok(!left.includes(colors[1]) && left.includes(colors[0]))
            await page.click("#none")
            const none = await strokes(page, "recovered")
            assert.ok(colors.every((color: string) => !none.includes(color)))
        }))

    test("the limit is drawn in and named", () =>
        open({ width: 1200 }, async page => {
            for (const id of ["recovered", "attempts"])
                assert.match(
                    (await page.textContent(`#${id}`))!,
                    /limit 30\.0 s/,
                )
        }))

    test("the table's numbers are those of --json", () =>
        open({ width: 1200 }, async page => {
            const rows = await page.$$eval("tbody tr", trs =>
                trs.map(tr => ({
                    name: tr.querySelector("th")!.textContent!,
                    ...Object.fromEntries(
                        Array.from(tr.querySelectorAll("td")).map(td => [
                            td.dataset.key!,
                            JSON.parse(td.dataset.value!),
                        ]),
                    ),
                })),
            )
            assert.deepEqual(rows, printed.policies)
        }))

    test("on a phone nothing but the table is wider than the screen, and p99 is seen at once", () =>
        open({ width: 360 }, async page => {
            const wide = await page.evaluate(
                () => document.documentElement.scrollWidth,
            )
            assert.equal(wide, 360)
            const head = page.getByRole("columnheader", { name: "p99 s" })
            const { x, width } = (await head.boundingBox())!
            assert.ok(x + width <= 360, `${x + width}`)
            // What explains the table does not scroll away with it.
            assert.equal(await page.locator(".scroll #figures-note").count(), 0)
        }))

    test("a dark page has curves of its own colours", () =>
        open({ width: 1200, dark: true }, async page => {
            assert.ok((await strokes(page, "recovered")).includes("#56b4e9"))
        }))

    test("a screen reader gets a name for each chart, check box and table", () =>
        open({ width: 1200 }, async page => {
            for (const id of ["recovered", "attempts"])
                assert.ok(await page.getAttribute(`#${id}`, "aria-label"))
            const box = page.getByRole("checkbox", { name: "adaptive" })
            assert.equal(await box.count(), 1)
            assert.equal(await page.getByRole("table").count(), 1)
        }))
})
