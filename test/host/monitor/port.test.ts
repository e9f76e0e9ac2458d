// The monitor on a real pseudo-terminal: a VM writes into it as a board does, is unplugged, and talks nonsense.
import assert from "node:assert/strict"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, describe, test } from "node:test"
import { Build } from "../../../host/monitor/builds"
import { fromJson } from "../../../host/monitor/event"
import type { Port } from "../../../host/flash/ports"
import { readOptions } from "../../../host/monitor/options"
import { identityOf, Serial, usualBaud } from "../../../host/monitor/serial"
import { RealClock } from "../../../host/vm/clock"
import { loadProgram, PROJECT } from "../../../host/vm/program"
import { givePorts, pathWith } from "../../udev"
import { boardOn, noSocat, Plug, until } from "./bench"

const COMMAND = ["--import", "tsx", "host/monitor.ts"]
const folder = mkdtempSync(join(tmpdir(), "monitor-"))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Bytes of noise told of, in all. */
function noiseIn(out: string): number {
    const told = [...out.matchAll(/(\d+) bytes that are no text/g)]
    return told.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
}

const CP2102 = { vendorId: "10c4", productId: "ea60" }
const MOUSE: Port = {
    path: "/dev/ttyACM9",
    vendorId: "046d",
    productId: "c077",
    manufacturer: "Mouse\\x1b[2J Works",
}

/** @param PATH where its programs are found */
function monitor(args: string[], input?: string, PATH = process.env.PATH) {
    const child = spawn(process.execPath, [...COMMAND, ...args], {
        cwd: PROJECT,
        env: { ...process.env, PATH },
        stdio: ["pipe", "pipe", "pipe"],
    })
    const said = { out: "", err: "" }
    child.stdout.on("data", text => (said.out += text))
    child.stderr.on("data", text => (said.err += text))
    if (input !== undefined) child.stdin.end(input)
    const done = new Promise<number | null>(resolve =>
        child.on("close", resolve),
    )
    return { child, said, done }
}

describe("the monitor on a port", { skip: noSocat, concurrency: 1 }, () => {
    test("a board boots, crashes, is unplugged and comes back; what was recorded says the same", async () => {
        const plug = new Plug()
        await plug.plugIn()
        const record = join(folder, "night.jsonl")
        const run = monitor(["--port", plug.path, "--json", "--record", record])
        const heard = (ev: string) =>
            run.said.out.split(`"ev":"${ev}"`).length - 1
        try {
            await until(() => heard("port") === 1)
            const board = await boardOn(plug, "src/main.ts", {
                MQTT_HOST: '"127.0.0.1"',
                RETRY_MIN: "100",
            })
            board.powerOn()
            await until(() => heard("attempt") >= 2)
            board.crash()
            await until(() => run.said.out.includes("Exception: Panic_60102"))
            await until(() => /at _?\w+_F\d+ \(pc:\d+\)/.test(run.said.out))
            board.powerOff()
            await plug.pullOut()
            await until(() => heard("port") === 2)
            await plug.plugIn()
            await until(() => heard("port") === 3)
            plug.write('# 7 {"ev":"halt","reason":"back again"}\n')
            await until(() => heard("halt") === 1)
        } finally {
            run.child.kill("SIGINT")
            await run.done
            await plug.remove()
        }
        assert.equal(await run.done, 0, run.said.err)
        assert.equal(readFileSync(record, "utf8"), run.said.out)
        const events = run.said.out
            .trimEnd()
            .split("\n")
            .map(text => fromJson(text)!)
        const frame = events.find(
            ({ line }) =>
                line.ev === "text" && / at \w+ *\(pc:/.test(line.text),
        )!.line
        assert.ok(frame.ev === "text")
        assert.match(frame.at ?? "", /\.ts:\d+:\d+$/)
        assert.deepEqual(
            events
                .filter(e => e.line.ev === "port")
                .map(e => (e.line as { open: boolean }).open),
            [true, false, true],
        )
    })

    test("noise and a flood are named, and the log goes on behind them", async () => {
        const plug = new Plug()
        await plug.plugIn()
        const run = monitor(["--port", plug.path, "--plain", "--baud", "9600"])
        try {
            await until(() => run.said.out.includes("9600 baud"))
            await plug.writeAll(Buffer.alloc(3000, 0x93))
            await plug.writeAll(Buffer.from("\n"))
            await until(() => noiseIn(run.said.out) === 3000)
            const flood = Buffer.from(
                "> much ado about nothing\n".repeat(40_000),
            )
            for (let i = 0; i < 10; ++i) await plug.writeAll(flood)
            await until(() =>
                /bytes in a second: \d+ lines left out/.test(run.said.out),
            )
            await new Promise(done => setTimeout(done, 1100))
            plug.write('\n# 7 {"ev":"halt","reason":"still here"}\n')
            await until(() => run.said.out.includes("still here"))
        } finally {
            run.child.kill("SIGINT")
            await run.done
            await plug.remove()
        }
        assert.equal(await run.done, 0, run.said.err)
        assert.ok(
            run.said.out.length < 2_000_000,
            `${run.said.out.length} B shown of 10 MB`,
        )
    })

    test("a board is opened again under the name it comes back with, by its serial number", async () => {
        const serialNumber = "7C:DF:A1:00:11:22"
        const [first, second, stranger] = [new Plug(), new Plug(), new Plug()]
        await Promise.all([first.plugIn(), stranger.plugIn()])
        const said: string[] = []
        const serial = new Serial(
            { path: first.path, serialNumber },
            115_200,
            new RealClock(),
            {
                bytes: bytes => said.push(Buffer.from(bytes).toString()),
                opened: reason => said.push(`open: ${reason}`),
                closed: reason => said.push(`closed: ${reason}`),
            },
            async () => [
                { path: stranger.path, serialNumber: "7C:DF:A1:33:44:55" },
                { path: second.path, serialNumber },
            ],
        )
        try {
            await serial.open()
            await first.pullOut()
            await second.plugIn()
            await until(() => said.length === 3)
            second.write("here")
            await until(() => said.length === 4)
            assert.deepEqual(
                [said[0], said[1].split(":")[0], ...said.slice(2)],
                [
                    `open: ${first.path} at 115200 baud`,
                    "closed",
                    `open: ${second.path} at 115200 baud`,
                    "here",
                ],
            )
            assert.match(said[1], /unplugged/)
        } finally {
            await serial.close()
            for (const plug of [first, second, stranger]) await plug.remove()
        }
    })

    test("a port that another program has: said so, and it is not tried again", async () => {
        const plug = new Plug()
        await plug.plugIn()
        const silent = { bytes() {}, opened() {}, closed() {} }
        const open = () =>
            new Serial({ path: plug.path }, 9600, new RealClock(), silent)
        const [ours, theirs] = [open(), open()]
        try {
            await theirs.open()
            await assert.rejects(ours.open(), {
                message: /^\S+ is in use by another program: close it first/,
            })
        } finally {
            await ours.close()
            await theirs.close()
            await plug.remove()
        }
    })

    test("with --web every board that is plugged in is on the page, also one that comes later, and nothing else", async () => {
        const plug = new Plug()
        await plug.plugIn()
        givePorts(folder, [MOUSE])
        const run = monitor(["--web"], undefined, pathWith(folder))
        try {
            await until(() => /http:\/\/127\.0\.0\.1:\d+\//.test(run.said.err))
            const [url] = /http:\S+/.exec(run.said.err)!
            givePorts(folder, [MOUSE, { path: plug.path, ...CP2102 }])
            // What is written before the port is open is lost.
            const timer = setInterval(
                () => plug.write('# 7 {"ev":"halt","reason":"on the page"}\n'),
                200,
            )
            const signal = AbortSignal.timeout(20_000)
            const { body } = await fetch(url + "events", { signal })
            const reader = body!.getReader()
            let text = ""
            while (!text.includes("told to start: on the page"))
                text += Buffer.from((await reader.read()).value!).toString()
            await reader.cancel()
            clearInterval(timer)
            assert.ok(text.includes(JSON.stringify(plug.path)))
            assert.ok(!text.includes(MOUSE.path))
        } finally {
            run.child.kill("SIGINT")
            await run.done
            await plug.remove()
        }
    })

    test("a port that isn't there, and a recording that is, end with exit 1 and say why", async () => {
        const none = monitor(["--port", "/dev/ttyNONE"])
        assert.equal(await none.done, 1)
        assert.match(none.said.err, /ttyNONE.*no such file/i)
        const file = join(folder, "old.jsonl")
        writeFileSync(file, "kept")
        const old = monitor(["--port", "/dev/ttyNONE", "--record", file])
        assert.equal(await old.done, 1)
        assert.match(
            old.said.err,
            /old\.jsonl: the file exists; give a new name/,
        )
        assert.equal(readFileSync(file, "utf8"), "kept")
    })
})

describe("the monitor without a port", { concurrency: 2 }, () => {
    const log = [
        '# 1160 {"ev":"boot","id":"1122334455667788","version":"0.1.0","cause":"power-on","upMs":1160}',
        "> hello \x1b[31mred",
        '# 1300 {"ev":"retry","n":2,"delayMs":4100,"ceilingMs":4000,"lane":"retry","evidence":"refused","reason":"connection refused","proven":false}',
    ].join("\n")

    test("--list: every port, who made the chip, and nothing that drives the terminal", async () => {
        givePorts(folder, [
            { path: "/dev/ttyS0" },
            { path: "/dev/ttyUSB0", ...CP2102, serialNumber: "0001" },
            MOUSE,
        ])
        const list = monitor(["--list"], undefined, pathWith(folder))
        assert.equal(await list.done, 0, list.said.err)
        assert.deepEqual(list.said.out.split("\n"), [
            "/dev/ttyS0  no USB",
            "/dev/ttyUSB0  10c4:ea60  Silicon Labs CP210x  0001",
            "/dev/ttyACM9  046d:c077  Mouse[2J Works",
            "",
        ])
    })

    test("reads a console's text from a pipe, and its own JSON from a file, alike", async () => {
        const piped = monitor(["--json"], log)
        assert.equal(await piped.done, 0, piped.said.err)
        const file = join(folder, "piped.jsonl")
        writeFileSync(file, piped.said.out)
        const shown = monitor(["--file", file])
        assert.equal(await shown.done, 0, shown.said.err)
        assert.match(
            shown.said.out,
            /program 0\.1\.0 started on 1122334455667788/,
        )
        assert.match(shown.said.out, /retrying in 4\.1 s after 2 failures/)
        assert.match(shown.said.out, /> hello red/)
        assert.doesNotMatch(shown.said.out, /\x1b/)
    })

    const hasScript = spawnSync("script", ["--version"]).status === 0
    test(
        "shows a file's last picture on a terminal",
        { skip: !hasScript && "needs util-linux's script for a terminal" },
        async () => {
            const file = join(folder, "log.txt")
            writeFileSync(file, log + "\n")
            const command = [process.execPath, ...COMMAND, "--file", file].join(
                " ",
            )
            const child = spawn("script", ["-qec", command, "/dev/null"], {
                cwd: PROJECT,
                env: { ...process.env, TERM: "xterm", NO_COLOR: "" },
                stdio: ["pipe", "pipe", "ignore"],
            })
            let out = ""
            child.stdout.on("data", text => (out += text))
            assert.equal(await new Promise(done => child.on("close", done)), 0)
            assert.match(out, /1122334455667788 {2}on log\.txt/)
            assert.match(out, /attempt 3 in 4\.1 s/)
            assert.match(out, /\x1b\[33m/)
        },
    )
})

describe("the flags of npm run monitor", () => {
    const read = (text: string, isTerminal = true) => {
        let said = ""
        const args = text ? text.split(" ") : []
        const result = readOptions(
            args,
            { stdout: isTerminal },
            t => (said += t),
        )
        return { result, said }
    }

    for (const [args, complaint] of [
        ["--baud fast", /--baud.*'fast'.*300 to 4000000/],
        ["--web 80", /--web.*'80'.*1024 to 65535/],
        ["--plain --json", /--plain and --json: one of them/],
        ["--file x --record y", /--file and --record: one of them/],
        ["--list --json", /--list and --json: one of them/],
        ["--prot x", /unknown option '--prot'/],
    ] as [string, RegExp][])
        test(`${args} is refused`, () => {
            const { result, said } = read(args)
            assert.equal(result, 2)
            assert.match(said, complaint)
        })

    test("a terminal gets the picture, a pipe gets lines", () => {
        const show = (args: string, isTerminal: boolean) =>
            (read(args, isTerminal).result as { show: string }).show
        assert.equal(show("", true), "live")
        assert.equal(show("", false), "plain")
        assert.equal(show("--json", true), "json")
        assert.equal(show("--web", true), "web")
    })

    test("a board is known again by its serial number, unless many have the same", () => {
        const mac = { path: "a", serialNumber: "7C:DF:A1:00:11:22" }
        assert.equal(identityOf(mac), identityOf({ ...mac, path: "b" }))
        assert.equal(identityOf({ path: "a", serialNumber: "0001" }), "a")
    })

    test("the rate follows the chip on the cable", () => {
        assert.equal(usualBaud({ path: "x", vendorId: "10c4" }), 1_500_000)
        assert.equal(usualBaud({ path: "x", vendorId: "303A" }), 115_200)
        assert.equal(usualBaud(undefined), 115_200)
    })
})

describe("a crash frame", () => {
    const info = JSON.parse(loadProgram("src/main.ts").debugJson)
    const build = new Build(info)

    test("becomes the source position that devs annotate gives", () => {
        const frames: string[] = []
        info.functions.forEach(
            (f: { name: string; size: number }, i: number) => {
                for (let pc = 1; pc <= f.size; pc += 29)
                    frames.push(`*  at ${f.name}_F${i} (pc:${pc})`)
            },
        )
        const bin = join(folder, ".devicescript/bin")
        const { stdout } = annotate(bin, frames)
        const theirs = stdout.split("\n").filter(line => line.includes("at "))
        assert.ok(frames.length > 1000)
        assert.deepEqual(
            frames.map(frame => build.locate(frame)),
            theirs.map(line => /\(([^()]+:\d+:\d+)\)/.exec(line)?.[1]),
        )
    })

    test("of another build is left alone", () => {
        assert.equal(build.locate("* at nobody_F1 (pc:3)"), undefined)
        assert.equal(build.locate("* at main_F99999 (pc:3)"), undefined)
        assert.equal(build.locate("* no frame"), undefined)
    })
})

/** `devs annotate` reads the build of where it runs. */
function annotate(bin: string, frames: string[]) {
    const { debugJson } = loadProgram("src/main.ts")
    spawnSync("mkdir", ["-p", bin])
    writeFileSync(join(bin, "bytecode-dbg.json"), debugJson)
    const cli = join(
        PROJECT,
        "node_modules/@devicescript/cli/built/devicescript-cli.cjs",
    )
    return spawnSync(process.execPath, [cli, "annotate"], {
        cwd: folder,
        input: frames.join("\n") + "\n",
        encoding: "utf8",
    })
}
