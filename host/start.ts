// `npm start`: the firmware in the simulator, a broker of its own, one readable line per event,
// and keys (or an outage that is played by itself) to make trouble. It cleans up whatever ends it.
import { randomBytes } from "node:crypto"
import { Board } from "./start/board"
import { EmbeddedBroker, OutsideBroker, type Broker } from "./start/broker"
import type { HostLine } from "./start/event"
import { Herd } from "./start/herd"
import { KEYS, readOptions, type Options } from "./start/options"
import { Follower, playOutage, promised } from "./start/play"
import { Screen } from "./start/screen"
import { Builds } from "./monitor/builds"
import { WebPage } from "./monitor/web"
import { span } from "./show"
import { RealClock } from "./vm/clock"
import { readEnvFiles, type Settings } from "./vm/env"
import { makeFlash } from "./vm/flash-image"
import { loadProgram, PROJECT } from "./vm/program"
import type { Network } from "./vm/network"
import { RealNetwork } from "./vm/real-network"
import type { Line } from "../src/core/line"

/** How often the demo's device sends telemetry, unless the settings say. */
const TELEMETRY_S = 5

/** How far back the page of a herd looks: an outage fits. */
const HERD_WINDOW_MS = 120_000

const { stdin, stdout, stderr } = process

/** What has to be undone at the end, last thing first. */
const undo: (() => void | Promise<void>)[] = []
let ending = false

/** Undoes everything and exits. */
async function end(code: number) {
    if (ending) return
    ending = true
    for (const step of undo.reverse())
        try {
            await step()
        } catch (e) {
            stderr.write(`while cleaning up: ${String(e)}\n`)
        }
    process.exit(code)
}

/** Settings as the firmware gets them: .env files, then flags, then the broker's address. */
function allSettings(given: Settings, broker: Broker, isOutside: boolean) {
    const settings = firmwareSettings(given)
    settings.MQTT_HOST = JSON.stringify(broker.host)
    settings.MQTT_PORT = `${broker.port}`
    if (isOutside) return settings
    settings.MQTT_PROTO = JSON.stringify("tcp")
    // The embedded broker has no MQTT 5: asked first, it would refuse once.
    settings.MQTT_VERSION ??= "3"
    return settings
}

function firmwareSettings(given: Settings): Settings {
    const settings: Settings = { TELEMETRY: `${TELEMETRY_S}`, ...given }
    // A board gives these to its Wi-Fi service; they are no settings of the firmware.
    delete settings.WIFI_SSID
    delete settings.WIFI_PWD
    return settings
}

async function run(options: Options) {
    const clock = new RealClock()
    const playing = options.outageMs !== undefined
    const screen = new Screen({
        ...options,
        colours: !!stdout.isTTY && !process.env.NO_COLOR,
        out: text => stdout.write(text),
        err: text => stderr.write(text),
    })
    const endBySignal = (signal: number) => {
        // Before the outage is over nothing is proven; on a terminal it is the way to quit.
        void end(playing ? 128 + signal : 0)
    }
    process.on("SIGINT", () => endBySignal(2))
    process.on("SIGTERM", () => endBySignal(15))
    process.on("SIGHUP", () => endBySignal(1))

    const begunMs = clock.nowMs()
    screen.begin("building the firmware ... ")
    const { bytecode } = loadProgram("src/main.ts")
    const tookMs = clock.nowMs() - begunMs
    screen.note(`${(bytecode.length / 1000).toFixed(1)} kB, ${span(tookMs)}`)

    const given = { ...readEnvFiles(PROJECT), ...options.settings }
    if (options.webPort !== undefined)
        return await runHerd(bytecode, given, options, screen, clock)
    const deviceId = options.deviceId ?? randomBytes(8).toString("hex")
    const follower = new Follower(clock)
    const tell = (dev: string, line: Line | HostLine) => {
        if (ending) return
        follower.take(line)
        screen.show({ tMs: Math.round(clock.nowMs()), dev, line })
    }
    const tellHost = (line: HostLine) => tell("host", line)

    const network = new RealNetwork()
    let broker: Broker
    let dialled: Network = network
    if (options.outside) {
        const { host, port } = options.outside
        const usual = given.MQTT_PROTO === JSON.stringify("tls") ? 8883 : 1883
        const outside = new OutsideBroker(host, port ?? usual, clock, tellHost)
        dialled = outside.through(network)
        broker = outside
    } else {
        broker = new EmbeddedBroker(tellHost)
        undo.push(() => broker.down())
        await broker.up()
    }
    const settings = allSettings(given, broker, !!options.outside)
    const board = new Board({
        deviceId,
        clock,
        image: await makeFlash(bytecode, settings),
        network: dialled,
        setNetwork: up => (network.up = up),
        onLine: line => tell(deviceId, line),
        onHost: tellHost,
        onConsole: text => {
            if (!ending) screen.console(Math.round(clock.nowMs()), text)
        },
    })
    undo.push(() => board.close())
    if (ending) return await board.close()
    screen.note(
        `device ${deviceId}, ${options.outside ? "outside" : "embedded"} broker ` +
            `on ${broker.host}:${broker.port}`,
    )
    if (!playing) readKeys(screen, board, broker)
    board.powerOn()
    if (options.outageMs === undefined) return

    const result = await playOutage({
        clock,
        broker,
        follower,
        outageMs: options.outageMs,
        promised: promised(settings),
        say: text => screen.note("-- " + text),
    })
    tellHost(result)
    await end(result.ok ? 0 : 1)
}

/** Many devices on a page, until a signal ends it. */
async function runHerd(
    bytecode: Uint8Array,
    settings: Settings,
    options: Options,
    screen: Screen,
    clock: RealClock,
) {
    const { devices, webPort } = options
    const builds = new Builds(PROJECT)
    const herd = new Herd({
        clock,
        bytecode,
        devices,
        settings: firmwareSettings(settings),
        builds,
    })
    undo.push(() => herd.close())
    const page = new WebPage({
        title: `Herdless: ${devices} simulated device${devices === 1 ? "" : "s"}`,
        desk: herd.desk,
        clock,
        nowMs: () => clock.nowMs(),
        windowMs: HERD_WINDOW_MS,
        actions: () => herd.actions(),
        act: (id, value) => herd.act(id, value),
    })
    undo.push(() => page.close())
    const url = await page.listen(webPort)
    await herd.start()
    screen.note(`${devices} devices: ${url}  (Ctrl-C ends it)`)
}

/** Obeys the keys until one says quit. */
function readKeys(screen: Screen, board: Board, broker: Broker) {
    const help = () => KEYS.forEach(line => screen.note("  " + line))
    let work = Promise.resolve()
    const press = async (key: string) => {
        switch (key) {
            case "b":
                return broker.isUp ? await broker.down() : await broker.up()
            case "w":
                return board.toggleWifi()
            case "p":
                return board.powerCycle()
            case "c":
                if (!board.crash()) screen.note("there is no program to crash")
                return
            case "?":
            case "h":
                return help()
            case "q":
            case "\x03":
            case "\x04":
                return await end(0)
        }
    }
    stdin.setRawMode(true)
    // Whatever ends this process leaves a usable terminal.
    process.on("exit", () => stdin.setRawMode(false))
    stdin.setEncoding("utf8")
    stdin.on("data", (keys: string) => {
        // Arrow keys and the like come as one sequence and mean nothing here.
        if (keys.length > 1 && keys.startsWith("\x1b")) return
        for (const key of keys)
            work = work
                .then(() => press(key))
                .catch(e => screen.note(`key ${key}: ${(e as Error).message}`))
    })
    stdin.on("end", () => void end(0))
    help()
}

const options = readOptions(
    process.argv.slice(2),
    !!stdin.isTTY && !!stdout.isTTY,
    (text, isError) => (isError ? stderr : stdout).write(text),
)
if (typeof options === "number") process.exitCode = options
else
    run(options).catch(async e => {
        // A signal while compiling ends the compiler, too: then this is no failure.
        await new Promise(setImmediate)
        if (!ending) stderr.write(`npm start: ${(e as Error).message}\n`)
        await end(1)
    })
