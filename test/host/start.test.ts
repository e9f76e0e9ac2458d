// `npm start` from outside, as a command, and its parts from inside on a virtual clock.
import assert from "node:assert/strict"
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { connect } from "node:net"
import { describe, test } from "node:test"
import { Board } from "../../host/start/board"
import { EmbeddedBroker, type Broker } from "../../host/start/broker"
import { inWords, type HostLine } from "../../host/start/event"
import { readOptions, type Options } from "../../host/start/options"
import { Follower, playOutage, promised } from "../../host/start/play"
import { Screen } from "../../host/start/screen"
import { VirtualClock } from "../../host/vm/clock"
import { makeFlash } from "../../host/vm/flash-image"
import type { Network } from "../../host/vm/network"
import { loadProgram, PROJECT } from "../../host/vm/program"
import type { Line } from "../../src/core/line"

const COMMAND = ["--import", "tsx", "host/start.ts"]
const DEVICE = "1122334455667788"
/** Short waits, so that the tests are. */
const QUICK = ["--set", "STABLE=1500", "--set", "RETRY_MIN=300"]

interface Ended {
    code: number | null
    out: string
    err: string
}

function start(args: string[]) {
    const child = spawn(process.execPath, [...COMMAND, ...args], {
        cwd: PROJECT,
        stdio: ["ignore", "pipe", "pipe"],
        // A group of its own, so that the test can see whether anything of it is left.
        detached: true,
    })
    const ended: Ended = { code: null, out: "", err: "" }
    child.stdout.on("data", text => (ended.out += text))
    child.stderr.on("data", text => (ended.err += text))
    const done = new Promise<Ended>(resolve =>
        child.on("close", code => resolve({ ...ended, code })),
    )
    return { child, done, ended }
}

async function until(what: () => boolean, limitMs = 15000) {
    const giveUpMs = Date.now() + limitMs
    while (!what()) {
        assert.ok(Date.now() < giveUpMs, `not within ${limitMs} ms: ${what}`)
        await new Promise(done => setTimeout(done, 20))
    }
}

function isAlive(child: ChildProcess): boolean {
    try {
        process.kill(-child.pid!, 0)
        return true
    } catch {
        return false
    }
}

function isListening(port: number): Promise<boolean> {
    return new Promise(resolve => {
        const socket = connect(port, "127.0.0.1")
        socket.on("connect", () => resolve(true))
        socket.on("error", () => resolve(false))
        socket.on("connect", () => socket.destroy())
    })
}

function events(out: string): any[] {
    return out
        .trimEnd()
        .split("\n")
        .map(text => JSON.parse(text))
}

describe("npm start, as a command", { concurrency: 8 }, () => {
    // Compiles once, so that the commands below find the program in the cache.
    loadProgram("src/main.ts")

    test("an outage is played: connected, lost, growing waits, connected again, exit 0", async () => {
        const run = start([
            ...["--outage", "3", "--json", "--device-id", DEVICE, ...QUICK],
        ])
        const { code, out, err } = await run.done
        assert.equal(code, 0, err)
        const all = events(out)
        for (const e of all) {
            assert.equal(typeof e.t, "number")
            assert.ok(e.dev === DEVICE || e.dev === "host", e.dev)
        }
        assert.ok(all.every((e, i) => i === 0 || e.t >= all[i - 1].t))
        const story = all
            .filter(e => !["client", "publish", "link"].includes(e.ev))
            .map(e => (e.ev === "broker" ? (e.up ? "up" : "down") : e.ev))
            .join(" ")
        assert.match(
            story,
            /^up power boot (retry )+attempt connected down lost retry (attempt retry )+up (attempt retry )*attempt connected outage$/,
        )
        const lost = all.find(e => e.ev === "lost")
        assert.equal(lost.flap, false)
        const after = all.filter(e => e.ev === "retry" && e.t >= lost.t)
        assert.ok(after.length >= 2)
        for (let i = 1; i < after.length; ++i)
            assert.equal(after[i].ceilingMs, 2 * after[i - 1].ceilingMs)
        const result = all.at(-1)
        assert.ok(result.ok && result.backMs > 0)
        assert.deepEqual(
            result.delaysMs,
            after.map(e => e.delayMs),
        )
        assert.match(err, /building the firmware \.\.\. .* kB/)
    })

    test("a broker that is never there ends with exit 1 and the device's own reason", async () => {
        const { code, out } = await start([
            ...["--outage", "1", "--host", "127.0.0.1", "--port", "1"],
            ...["--set", "RETRY_CAP=1000", "--set", "RETRY_MIN=400", ...QUICK],
        ]).done
        assert.equal(code, 1)
        assert.match(
            out,
            /FAILED: not connected .* within 7.5 s: connection refused/,
        )
        assert.match(out, /retrying in .* \(nobody listens\)/)
    })

    test("the device is cut off from an outside broker, which goes on", async () => {
        let clients = 0
        const broker = new EmbeddedBroker(line => {
            if (line.ev === "client" && line.up) clients++
        })
        await broker.up()
        const { code, err, out } = await start([
            ...["--outage", "1", "--port", `${broker.port}`, ...QUICK],
        ]).done
        assert.equal(code, 0, err + out)
        assert.equal(clients, 2)
        assert.ok(broker.isUp)
        await broker.down()
    })

    for (const [signal, code] of [
        ["SIGINT", 130],
        ["SIGTERM", 143],
    ] as const)
        test(`${signal} in an outage leaves no process and no listener, exit ${code}`, async () => {
            const run = start(["--outage", "60", "--json", ...QUICK])
            await until(() => run.ended.out.includes('"ev":"connected"'))
            const { port } = events(run.ended.out)[0]
            assert.equal(await isListening(port), true)
            run.child.kill(signal)
            assert.equal((await run.done).code, code)
            // tsx's own compiler ends a moment after the process it served.
            await until(() => !isAlive(run.child), 3000)
            assert.equal(await isListening(port), false)
        })

    test("a flag that can't be used exits with 2", () => {
        const run = spawnSync(
            process.execPath,
            [...COMMAND, "--outage", "-1"],
            {
                cwd: PROJECT,
                encoding: "utf8",
            },
        )
        assert.equal(run.status, 2)
        assert.equal(run.stdout, "")
        assert.match(run.stderr, /--outage.*'-1'.*0\.1 to 86400 seconds/)
    })

    const hasPty = spawnSync("script", ["--version"]).status === 0
    test(
        "on a terminal: keys act, colours show, q quits with exit 0",
        { skip: !hasPty && "needs util-linux's script for a terminal" },
        async () => {
            const command = [process.execPath, ...COMMAND, ...QUICK].join(" ")
            const child = spawn("script", ["-qec", command, "/dev/null"], {
                cwd: PROJECT,
                env: { ...process.env, NO_COLOR: "", TERM: "xterm" },
                stdio: ["pipe", "pipe", "ignore"],
            })
            let out = ""
            child.stdout.on("data", text => (out += text))
            const done = new Promise(resolve => child.on("close", resolve))
            const press = async (key: string, sign: RegExp) => {
                const from = out.length
                child.stdin.write(key)
                await until(() => sign.test(out.slice(from)))
            }
            await until(() => /\x1b\[32mconnected in/.test(out))
            await press("?", /q {2}quit/)
            await press("b", /broker down[^]*connection lost/)
            await press("b", /broker up/)
            await press("w", /access point is gone/)
            await press("w", /access point is there/)
            await press("c", /the program crashed \(panic 60102\)/)
            await press("p", /power off[^]*power on[^]*program .* started/)
            child.stdin.write("q")
            assert.equal(await done, 0)
        },
    )
})

describe("the flags of npm start", () => {
    const read = (text: string, hasTerminal = false) => {
        let said = ""
        const args = text ? text.split(" ") : []
        const result = readOptions(args, hasTerminal, text => (said += text))
        return { result, said }
    }

    const bad: [string, RegExp][] = [
        ["--outage soon", /--outage.*'soon'.*0\.1 to 86400 seconds/],
        ["--outage 0", /--outage.*'0'.*0\.1 to 86400 seconds/],
        ["--outage 1e3", /--outage.*'1e3'.*0\.1 to 86400 seconds/],
        ["--outage", /--outage <seconds>.*missing/],
        ["--port 65536", /--port.*'65536'.*1 to 65535/],
        ["--port 0x10", /--port.*'0x10'.*1 to 65535/],
        ["--host a/b", /--host.*'a\/b'.*a name or an address/],
        ["--device-id 12", /--device-id.*'12'.*16 hexadecimal digits/],
        ["--device-id 0000000000000000", /--device-id.*not all zero/],
        ["--set STABLE", /--set.*'STABLE'.*KEY=VALUE/],
        ["--set ABCDEFGHIJKLMN=1", /--set.*at most 13/],
        ["--set MQTT_HOST=x", /--host and --port/],
        [`--set A=${"x".repeat(199)}`, /at most 200 bytes/],
        ["--otage 3", /unknown option '--otage'[^]*--outage/],
        ["--devices 0 --web", /--devices.*'0'.*1 to 200/],
        ["--devices 5", /--devices is for a page: add --web/],
        ["--web --json", /--web and --json: one of them/],
        ["--web 99", /--web.*'99'.*1024 to 65535/],
        ["now", /too many arguments/],
    ]
    for (const [args, complaint] of bad)
        test(`${args.slice(0, 40)} is refused`, () => {
            const { result, said } = read(args)
            assert.equal(result, 2)
            assert.match(said, complaint)
        })

    test("--help shows flags, keys and exit codes", () => {
        const { result, said } = read("--help")
        assert.equal(result, 0)
        for (const part of ["--outage", "c  crash", "Exit codes"])
            assert.ok(said.includes(part), part)
    })

    test("without a terminal an outage of 10 s is played, with one keys are read", () => {
        assert.equal((read("").result as Options).outageMs, 10000)
        assert.equal((read("", true).result as Options).outageMs, undefined)
        const given = read("--outage 2.5", true).result as Options
        assert.equal(given.outageMs, 2500)
    })

    test("settings are stored as a deploy stores them", () => {
        const { settings } = read("--set RETRY_MIN=500 --set MQTT_USER=bob")
            .result as Options
        assert.deepEqual(settings, { RETRY_MIN: "500", MQTT_USER: '"bob"' })
    })
})

describe("what npm start prints", () => {
    const screen = (json: boolean, verbose = false) => {
        const said = { out: "", err: "" }
        const made = new Screen({
            json,
            verbose,
            colours: false,
            out: text => (said.out += text),
            err: text => (said.err += text),
        })
        return { made, said }
    }

    test("an event is one JSON line with t and dev", () => {
        const { made, said } = screen(true)
        made.show({ tMs: 7, dev: DEVICE, line: { ev: "halt", reason: "x" } })
        assert.equal(
            said.out,
            `{"t":7,"dev":"${DEVICE}","ev":"halt","reason":"x"}\n`,
        )
    })

    test("with --json what is no event goes to stderr", () => {
        const { made, said } = screen(true)
        made.note("hello")
        made.console(1, "> hello")
        assert.equal(said.out, "")
        assert.match(said.err, /^hello\n.*> hello\n$/s)
    })

    test("console output is shown, the runtime's chatter only with --verbose", () => {
        for (const verbose of [false, true]) {
            const { made, said } = screen(false, verbose)
            for (const text of [
                "> log",
                "! error",
                "!  at f_F1 (pc:3)",
                "* warn",
            ])
                made.console(1, text)
            made.console(1, "jdif: autobind")
            made.console(1, "* start: devicescript-herdless v0.1.0")
            assert.equal(said.out.split("\n").length - 1, verbose ? 6 : 4)
        }
    })

    test("text from the device can't drive the terminal", () => {
        const { made, said } = screen(false)
        made.console(1, "> \x1b[2Jgone\x07")
        const id = "\x1b]0;x\x07"
        made.show({ tMs: 1, dev: "host", line: { ev: "client", id, up: true } })
        assert.doesNotMatch(said.out, /[\x1b\x07]/)
    })

    test("a message's payload can't drive the terminal", () => {
        const line: HostLine = {
            ev: "publish",
            topic: "a\x1b",
            text: "b\n\x9b",
            bytes: 4,
            retain: true,
        }
        assert.equal(inWords(line), "a: b (retained)")
    })
})

describe("the outage that is played", () => {
    /** A device that does what the test says when the broker comes and goes. */
    function scene(onChange: (up: boolean, say: (line: Line) => void) => void) {
        const clock = new VirtualClock()
        clock.drains = true
        // Keeps time going while nothing but a promise is due.
        const tick = () => void clock.setTimeout(tick, 10)
        tick()
        const follower = new Follower(clock)
        const say = (line: Line) => follower.take(line)
        const broker = {
            host: "x",
            port: 1,
            isUp: true,
            down: async () => onChange(false, say),
            up: async () => onChange(true, say),
        } satisfies Broker
        const run = async (settings = {}) => {
            const playing = playOutage({
                clock,
                broker,
                follower,
                outageMs: 10000,
                promised: promised(settings),
                say: () => {},
            })
            let result: (HostLine & { ev: "outage" }) | undefined
            void playing.then(r => (result = r))
            await clock.runUntil(() => result !== undefined, 600000)
            return { result: result!, tookMs: clock.nowMs() }
        }
        return { clock, say, run }
    }
    const connected: Line = { ev: "connected", n: 1, tookMs: 5, session: false }
    const lost: Line = {
        ev: "lost",
        upMs: 5,
        lane: "overload",
        evidence: "reset",
        reason: "connection closed",
        flap: false,
    }

    test("passes when the device is back at the last moment of its bound", async () => {
        const { clock, say, run } = scene((up, say) => {
            if (!up) say(lost)
            else clock.setTimeout(() => say(connected), 64900)
        })
        clock.setTimeout(() => say(connected), 2000)
        const { result } = await run()
        assert.equal(result.ok, true)
        assert.equal(result.backMs, 64900)
    })

    test("fails when the device is back after its bound", async () => {
        const { clock, say, run } = scene((up, say) => {
            if (!up) say(lost)
            else clock.setTimeout(() => say(connected), 65200)
        })
        clock.setTimeout(() => say(connected), 2000)
        const { result } = await run()
        assert.equal(result.ok, false)
        assert.match(result.reason, /not back .* connection closed/)
    })

    test("fails when the device comes back but never stays", async () => {
        const { clock, say, run } = scene((up, say) => {
            say(lost)
            const flap = () => {
                say(connected)
                clock.setTimeout(() => say(lost), 5000)
                clock.setTimeout(flap, 6000)
            }
            if (up) flap()
        })
        clock.setTimeout(() => say(connected), 2000)
        assert.equal((await run()).result.ok, false)
    })

    test("fails when the device does not notice: an old session proves nothing", async () => {
        const { clock, say, run } = scene(() => {})
        clock.setTimeout(() => say(connected), 2000)
        assert.equal((await run()).result.ok, false)
    })

    test("fails at once when the device gives up", async () => {
        const { clock, say, run } = scene((up, say) => {
            say(up ? { ev: "halt", reason: "gave up" } : lost)
        })
        clock.setTimeout(() => say(connected), 2000)
        const { result, tookMs } = await run()
        assert.match(result.reason, /gave up/)
        assert.ok(tookMs < 23000)
    })

    test("the bound follows the settings", () => {
        assert.deepEqual(promised({}), {
            longestWaitMs: 60000,
            stableMs: 10000,
        })
        assert.equal(promised({ RETRY_CAP: "5000" }).longestWaitMs, 5000)
        assert.equal(promised({ RETRY_CAP: '"x"' }).longestWaitMs, 60000)
        assert.equal(promised({ SPREAD: "100000" }).longestWaitMs, 110000)
        assert.equal(
            promised({ SPREAD: "100000", OVERLOAD_CAP: "100000" })
                .longestWaitMs,
            100000,
        )
    })
})

test("key c: the firmware dies of an illegal instruction and is whole again 5 s later", async () => {
    const clock = new VirtualClock()
    clock.drains = true
    const nobody: Network = {
        isUp: () => true,
        open: (_host, _port, _tls, events) => {
            clock.setTimeout(() => events.error("connect ECONNREFUSED"), 1)
            return { write: () => 0, close: () => {}, destroy: () => {} }
        },
    }
    const seen: string[] = []
    const see = (line: Line | HostLine) =>
        seen.push(line.ev === "panic" ? `panic ${line.code}` : line.ev)
    const board = new Board({
        deviceId: DEVICE,
        clock,
        image: await makeFlash(loadProgram("src/main.ts").bytecode, {
            MQTT_HOST: '"x"',
        }),
        network: nobody,
        setNetwork: () => {},
        onLine: see,
        onHost: see,
        onConsole: () => {},
    })
    board.powerOn()
    // In the middle of nothing: the program waits for its next attempt.
    await clock.runFor(6000)
    for (let round = 1; round <= 2; ++round) {
        seen.length = 0
        assert.equal(board.crash(), true)
        assert.equal(board.crash(), false)
        await clock.runFor(1000)
        assert.deepEqual(seen.slice(-1), ["panic 60102"])
        await clock.runFor(9000)
        assert.equal(seen.filter(ev => ev === "boot").length, 1)
        assert.ok(seen.lastIndexOf("attempt") > seen.indexOf("boot"))
    }
    await board.close()
    assert.equal(board.crash(), false)
})
