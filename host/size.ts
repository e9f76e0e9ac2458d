// `npm run size`: what our code costs a device, beside the stock MQTTClient: bytes of bytecode (flash) and of heap in
// use at rest (connected, idle for a minute, garbage collected), measured in the lab; and what each feature adds to that.
import { writeSync } from "node:fs"
import { Command } from "commander"
import { accept, check, type Guarded } from "./bench/baseline"
import { tableText, type TextTable } from "./bench/report"
import { readFlags, toConsole } from "./flags"
import { World } from "./lab/world"
import { compileAll, loadProgram, type DebugInfo } from "./vm/program"

/** What one program costs, in bytes. */
export interface Size {
    /** The compiled program. */
    bytes: number
    /** Of the heap, at rest. */
    heap: number
}

/** Where the example programs look for a broker. */
const LOCAL = "127.0.0.1:1883"

/** The programs that are measured, and the broker each is written for. All but stock and firmware are minimal and one thing more. */
export const PROGRAMS = {
    stock: { file: "test/bytecode/stock-minimal.ts", broker: LOCAL },
    minimal: { file: "devs/minimal.ts", broker: LOCAL },
    outbox: { file: "test/size/outbox.ts", broker: LOCAL },
    log: { file: "test/size/log.ts", broker: LOCAL },
    checks: { file: "test/size/checks.ts", broker: LOCAL },
    explanations: { file: "test/size/explain.ts", broker: LOCAL },
    strategies: { file: "test/size/strategies.ts", broker: LOCAL },
    "startMqtt: all five": { file: "test/size/start-mqtt.ts", broker: LOCAL },
    "QoS 1": { file: "test/size/qos1.ts", broker: LOCAL },
    "QoS 1 in flash": { file: "test/size/flash-outbox.ts", broker: LOCAL },
    "MQTT 5": { file: "test/size/mqtt5.ts", broker: LOCAL },
    requests: { file: "test/size/request.ts", broker: LOCAL },
    "HTTP, QoS 1": { file: "test/size/http.ts", broker: LOCAL },
    "Wi-Fi": { file: "test/size/wifi.ts", broker: LOCAL },
    commands: { file: "test/size/commands.ts", broker: LOCAL },
    "fleet policy": { file: "test/size/fleet-policy.ts", broker: LOCAL },
    "restart limit": { file: "test/size/restart-limit.ts", broker: LOCAL },
    "limit, watchdog": { file: "test/size/watchdog.ts", broker: LOCAL },
    firmware: { file: "src/main.ts", broker: "broker:1883" },
}

/** One of the programs. */
export type Name = keyof typeof PROGRAMS

export const NAMES = Object.keys(PROGRAMS) as Name[]

/** At rest: this long after it has connected. */
const IDLE_MS = 65_000

/** No program takes longer to connect to a broker that is there. */
const CONNECT_MS = 60_000

/**
 * Measures a program.
 * @throws Error when it does not connect, or dies
 */
export async function sizeOf(name: Name): Promise<Size> {
    const { file, broker: address } = PROGRAMS[name]
    const world = new World()
    try {
        const broker = world.scripted(address)
        const device = await world.device({
            program: file,
            settings: { MQTT_HOST: "broker" },
        })
        device.powerOn()
        await world.until(() => broker.sent("connect").length > 0, CONNECT_MS)
        await world.run(IDLE_MS)
        if (device.panics.length) throw new Error(`${file} died`)
        if (!broker.open.length) throw new Error(`${file} is not connected`)
        const heap = device.liveHeapBytes()
        return { bytes: loadProgram(file).bytecode.length, heap }
    } finally {
        await world.close()
    }
}

/**
 * Measures all programs.
 * @param status told what it is at
 */
async function allSizes(
    status: (text: string) => void,
): Promise<Record<Name, Size>> {
    const sizes: Partial<Record<Name, Size>> = {}
    const files = NAMES.map(name => PROGRAMS[name].file)
    await compileAll(files, left => status(`programs to compile: ${left}`))
    for (const name of NAMES) {
        status(name)
        sizes[name] = await sizeOf(name)
    }
    return sizes as Record<Name, Size>
}

/** What `--check` compares. */
export function guardsOf(
    sizes: Partial<Record<Name, Size>>,
): Record<string, Guarded> {
    const guards: Record<string, Guarded> = {}
    for (const [name, { bytes, heap }] of Object.entries(sizes)) {
        guards[`${name}: bytecode B`] = { value: bytes, kind: "bytes" }
        guards[`${name}: heap B`] = { value: heap, kind: "bytes" }
    }
    return guards
}

/** Bytes of the functions from each source file, the largest first; the rest is strings and tables. */
export function bytesPerFile(name: Name): { file: string; bytes: number }[] {
    const program = loadProgram(PROGRAMS[name].file)
    const debug = JSON.parse(program.debugJson) as DebugInfo & {
        sources: { path: string; length: number }[]
        functions: { location?: [position: number, length: number] }[]
    }
    const bytes: Record<string, number> = {}
    for (const { size, location } of debug.functions) {
        const file = sourceAt(debug.sources, location?.[0] ?? -1)
        bytes[file] = (bytes[file] ?? 0) + size
    }
    const functions = Object.values(bytes).reduce((a, b) => a + b, 0)
    bytes["strings, tables and header"] = program.bytecode.length - functions
    return Object.entries(bytes)
        .map(([file, count]) => ({ file, bytes: count }))
        .sort((a, b) => b.bytes - a.bytes)
}

/** The compiler numbers characters through all sources, one after the other. */
function sourceAt(
    sources: { path: string; length: number }[],
    position: number,
): string {
    let start = 0
    for (const { path, length } of sources) {
        if (position >= start && position < start + length)
            return path.replace(/^node_modules\//, "")
        start += length
    }
    return "(the compiler)"
}

/** What the firmware is made of: its source files by feature, the first that fits. */
const FEATURES: { name: string; files: RegExp }[] = [
    {
        name: "settings and the program",
        files: /^src\/main\.ts|config|settings/,
    },
    {
        name: "MQTT 5, server moves",
        files: /^src\/mqtt\/(v5-|version|servers|rivals)/,
    },
    { name: "fleet policy", files: /^src\/(core|device)\/fleet-policy/ },
    {
        name: "restart limit",
        files: /^src\/(core\/re(start|cord)|device\/re(start-limit|boot))/,
    },
    { name: "watchdog", files: /watchdog/ },
    { name: "commands", files: /command/ },
    { name: "QoS 1", files: /in-flight|qos1|flash-outbox/ },
    {
        name: "reconnect policy, verdicts",
        files: /^src\/core\/(adaptive|backoff|policy|verdict|random|int)/,
    },
    { name: "MQTT 3.1.1: packets, session", files: /^src\/mqtt\// },
    { name: "connection, sockets, Wi-Fi, log", files: /^src\// },
    { name: "DeviceScript's own library", files: /^@devicescript\// },
]

/** Bytes of the firmware by feature, and of what belongs to all of them. */
export function bytesPerFeature(
    files: { file: string; bytes: number }[],
): { name: string; bytes: number }[] {
    const sums: Record<string, number> = {}
    for (const { file, bytes } of files) {
        const feature = FEATURES.find(f => f.files.test(file))
        const name = feature?.name ?? file
        sums[name] = (sums[name] ?? 0) + bytes
    }
    return Object.entries(sums)
        .map(([name, bytes]) => ({ name, bytes }))
        .sort((a, b) => b.bytes - a.bytes)
}

function programTable(sizes: Record<Name, Size>): TextTable {
    const { minimal } = sizes
    const more = (value: number, than: number) =>
        value >= than ? `+${value - than}` : `${value - than}`
    return {
        title: "Programs: all between minimal and firmware are minimal and one thing more",
        head: [
            "",
            "program",
            "bytecode B",
            "heap B",
            "more bytecode than minimal",
            "more heap",
        ],
        words: 2,
        rows: NAMES.map(name => {
            const { bytes, heap } = sizes[name]
            return [
                name,
                PROGRAMS[name].file,
                `${bytes}`,
                `${heap}`,
                more(bytes, minimal.bytes),
                more(heap, minimal.heap),
            ]
        }),
        notes: [
            `minimal / stock: bytecode ${(minimal.bytes / sizes.stock.bytes).toFixed(2)}, heap ${(minimal.heap / sizes.stock.heap).toFixed(2)}`,
        ],
    }
}

function listTable(
    title: string,
    list: { what: string; bytes: number }[],
): TextTable {
    return {
        title,
        head: ["", "bytecode B"],
        rows: list.map(({ what, bytes }) => [what, `${bytes}`]),
        notes: [],
    }
}

/** All tables, as text. */
export function sizeTables(sizes: Record<Name, Size>): string {
    const files = bytesPerFile("firmware")
    const features = bytesPerFeature(files)
    return [
        programTable(sizes),
        listTable(
            "The firmware by feature",
            features.map(({ name, bytes }) => ({ what: name, bytes })),
        ),
        listTable(
            "The firmware by source file",
            files.map(({ file, bytes }) => ({ what: file, bytes })),
        ),
    ]
        .map(tableText)
        .join("\n\n")
}

const HELP = `
Heap is what is in use 65 s after the program has connected, idle, after a garbage
collection; a device has 64 kB (40 kB on an ESP32-S2).
"stock" is the MQTTClient of @devicescript/net doing what devs/minimal.ts does.
--check compares with host/bench/baseline.json and says what has grown by more than 1 %;
--accept makes what was measured the baseline.

Exit codes: 0 measured; 1 something has grown, or a program could not be built or did not connect;
2 a flag can't be used.

Examples:
  npm run size
  npm run size -- --json
  npm run size -- --check`

/** @returns the flags, or the exit code when there is nothing to run */
export function readOptions(
    args: string[],
    print: (text: string, isError: boolean) => void,
) {
    const command = new Command("npm run size --")
        .description(
            "Bytecode and heap of the firmware and of each feature, beside the stock client.",
        )
        .option("--json", "one JSON object instead of tables", false)
        .option("--check", "exit with 1 when something has grown", false)
        .option("--accept", "what is measured becomes the baseline", false)
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    return readFlags(command, args, print)
}

async function main(): Promise<number> {
    const given = readOptions(process.argv.slice(2), toConsole)
    if (typeof given === "number") return given
    try {
        const isTerminal = process.stderr.isTTY
        const status = (text: string) =>
            isTerminal && writeSync(2, `\r\x1b[K${text}`)
        const sizes = await allSizes(status)
        status("")
        const text = given.json ? JSON.stringify(sizes) : sizeTables(sizes)
        writeSync(1, text + "\n")
        const guards = guardsOf(sizes)
        if (given.accept) accept("size", guards, () => true)
        if (!given.check) return 0
        return check(
            "size",
            guards,
            () => true,
            text => writeSync(2, text),
        )
    } catch (e) {
        console.error(`npm run size: ${(e as Error).message}`)
        return 1
    }
}

if (process.argv[1]?.endsWith("size.ts"))
    void main().then(code => process.exit(code))
