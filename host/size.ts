// `npm run size`: what our code costs a device, beside the stock MQTTClient: bytes of bytecode (flash) and of heap in
// use at rest (connected, idle for a minute, garbage collected), measured in the lab.
import { writeSync } from "node:fs"
import { Command } from "commander"
import { readFlags, toConsole } from "./flags"
import { World } from "./lab/world"
import { loadProgram, type DebugInfo } from "./vm/program"

/** What one program costs, in bytes. */
export interface Size {
    /** The compiled program. */
    bytes: number
    /** Of the heap, at rest. */
    heap: number
}

/** The programs that are measured, and the broker each is written for. */
export const PROGRAMS = {
    firmware: { file: "src/main.ts", broker: "broker:1883" },
    minimal: { file: "devs/minimal.ts", broker: "127.0.0.1:1883" },
    mqtt5: { file: "devs/mqtt5.ts", broker: "127.0.0.1:1883" },
    stock: { file: "test/bytecode/stock-minimal.ts", broker: "127.0.0.1:1883" },
}

/** One of the programs. */
export type Name = keyof typeof PROGRAMS

/** At rest: this long after it has connected. */
const IDLE_MS = 60_000

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
            // Collects at each allocation: what is in use is what is needed.
            gcStress: true,
        })
        device.powerOn()
        await world.until(() => broker.sent("publish").length > 0, CONNECT_MS)
        await world.run(IDLE_MS)
        if (device.panics.length) throw new Error(`${file} died`)
        const heap = device.heap().usedBytes
        return { bytes: loadProgram(file).bytecode.length, heap }
    } finally {
        await world.close()
    }
}

/** Measures all programs. */
export async function allSizes(): Promise<Record<Name, Size>> {
    const firmware = await sizeOf("firmware")
    const minimal = await sizeOf("minimal")
    const mqtt5 = await sizeOf("mqtt5")
    const stock = await sizeOf("stock")
    return { firmware, minimal, mqtt5, stock }
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

/** Both tables, as text. */
export function sizeTable(sizes: Record<Name, Size>): string {
    const row = (name: string, file: string, bytes: string, heap: string) =>
        name.padEnd(10) +
        file.padEnd(32) +
        bytes.padStart(10) +
        heap.padStart(10)
    const lines = [row("program", "", "bytecode B", "heap B")]
    for (const name of Object.keys(PROGRAMS) as Name[]) {
        const { bytes, heap } = sizes[name]
        lines.push(row(name, PROGRAMS[name].file, `${bytes}`, `${heap}`))
    }
    lines.push("", "bytes of the firmware by source file")
    for (const { file, bytes } of bytesPerFile("firmware"))
        lines.push(`${`${bytes}`.padStart(7)}  ${file}`)
    return lines.join("\n")
}

const HELP = `
Heap is what is in use 60 s after the program has published something, connected and
idle, after a garbage collection; a device has 64 kB (40 kB on an ESP32-S2).
"stock" is the MQTTClient of @devicescript/net doing what devs/minimal.ts does.

Exit codes: 0 measured; 1 a program could not be built or did not connect; 2 a flag can't be used.

Examples:
  npm run size
  npm run size -- --json`

async function main() {
    const command = new Command("npm run size --")
        .description(
            "Bytecode and heap of the firmware, beside the stock client.",
        )
        .option("--json", "one JSON object instead of tables", false)
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, process.argv.slice(2), toConsole)
    if (typeof given === "number") process.exit(given)
    try {
        const sizes = await allSizes()
        writeSync(
            1,
            (given.json ? JSON.stringify(sizes) : sizeTable(sizes)) + "\n",
        )
        process.exit(0)
    } catch (e) {
        console.error(`npm run size: ${(e as Error).message}`)
        process.exit(1)
    }
}

if (process.argv[1]?.endsWith("size.ts")) void main()
