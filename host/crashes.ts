// `npm run crashes`: what a program that crashes again and again does to its broker and to its flash, with the restart limit and
// without, and what a fleet that crashes together does: the README's tables.
import { setImmediate } from "node:timers/promises"
import { Command } from "commander"
import { readFlags, whole } from "./flags"
import { consoleIo, INTERRUPTED, type Io } from "./fleet/tool"
import { playCrashHerd } from "./lab/crash-herd"
import { mostIn, playCrashLoop, type CrashLoop } from "./lab/crash-loop"
import { span } from "./show"

/** From CONNACK to the crash. */
const AFTER_S = [1, 30, 180, 660]

const HOUR_MS = 3_600_000
const WINDOW_MS = 120_000

/** One row of the table. */
interface Row {
    program: "herdless" | "stock"
    crashAfterS: number
    /** As many as were played. */
    hours: number
    connections: number
    perHour: number
    /** In the worst hour, and in the worst 120 s. */
    worstHour: number
    worstWindow: number
    flashWritesPerHour: number
}

/** The stock client, and where its program looks for its broker. */
const STOCK: Partial<CrashLoop> = {
    spec: { program: "test/bytecode/stock-minimal.ts" },
    address: "127.0.0.1:1883",
}

/**
 * Shows how far something is and lets Ctrl-C through, which no simulation does by itself.
 * @param total of what it counts
 * @returns to be called with how much of it is done: whether to go on
 */
function follow(io: Io, what: string, total: number) {
    const startMs = performance.now()
    return async (done: number) => {
        const spentMs = performance.now() - startMs
        const leftMs = (spentMs / done) * (total - done)
        const percent = Math.floor((100 * done) / total)
        io.status(`${what}: ${percent} %, ${span(leftMs)} to go`)
        await setImmediate()
        return !io.stopped()
    }
}

const tenths = (n: number) => Math.round(n * 10) / 10

async function measure(
    io: Io,
    program: Row["program"],
    crashAfterS: number,
    ofHours: number,
): Promise<Row> {
    const what = `${program}, crash after ${crashAfterS} s`
    const { connectMs, flashWrites, minutes } = await playCrashLoop({
        ...(program === "stock" ? STOCK : {}),
        crashAfterMs: crashAfterS * 1000,
        minutes: ofHours * 60,
        goesOn: follow(io, what, ofHours * 60),
    })
    const hours = minutes / 60
    return {
        program,
        crashAfterS,
        hours,
        connections: connectMs.length,
        perHour: tenths(connectMs.length / hours),
        worstHour: mostIn(connectMs, HOUR_MS),
        worstWindow: mostIn(connectMs, WINDOW_MS),
        flashWritesPerHour: tenths(flashWrites / hours),
    }
}

const cell = (value: unknown, width: number) => `${value}`.padStart(width)

function inWords(row: Row): string {
    return (
        row.program.padEnd(9) +
        cell(row.crashAfterS, 14) +
        cell(row.hours, 8) +
        cell(row.perHour, 15) +
        cell(row.worstHour, 13) +
        cell(row.worstWindow, 15) +
        cell(row.flashWritesPerHour, 15)
    )
}

const HEAD =
    "program  crash after s   hours  connections/h   worst hour    worst 120 s   flash writes/h"

/** What --herd plays: the firmware without and with settings for a broker that completes 10 connections a second, and stock. */
const HERDS = {
    herdless: { seconds: 1000 },
    spread: {
        seconds: 1000,
        spec: { settings: { MQTT_HOST: "broker", SPREAD: 25_000 } },
    },
    stock: { seconds: 120, ...STOCK },
}

/** What one start after another of a whole fleet looks like to the broker. */
interface HerdRow {
    program: keyof typeof HERDS
    devices: number
    /** 1: the first after the message. */
    start: number
    /** Devices that came online in this start. */
    online: number
    /** The first and the last of them, seconds after the message. */
    fromS: number
    toS: number
    /** In the worst second. */
    worstSecond: number
}

/** Starts of each device that the tool shows. */
const HERD_STARTS = 7

async function herd(
    io: Io,
    program: HerdRow["program"],
    devices: number,
): Promise<HerdRow[]> {
    const { seconds } = HERDS[program]
    const times = await playCrashHerd({
        ...HERDS[program],
        devices,
        goesOn: follow(io, program, Math.ceil(seconds / 60)),
    })
    const rows: HerdRow[] = []
    for (let start = 1; start <= HERD_STARTS; ++start) {
        const at = times.flatMap(t => t.slice(start - 1, start))
        at.sort((a, b) => a - b)
        if (!at.length) break
        rows.push({
            program,
            devices,
            start,
            online: at.length,
            fromS: at[0] / 1000,
            toS: at[at.length - 1] / 1000,
            worstSecond: mostIn(at, 1000),
        })
    }
    return rows
}

function herdInWords(row: HerdRow): string {
    return (
        row.program.padEnd(9) +
        cell(row.start, 6) +
        cell(row.online, 9) +
        cell(row.fromS.toFixed(1), 12) +
        cell(row.toS.toFixed(1), 12) +
        cell(row.worstSecond, 19)
    )
}

const HERD_HEAD =
    "program   start   online     first s      last s    in the worst second"

const HELP = `
The firmware, and the stock MQTTClient of @devicescript/net, each in the lab and killed so long
after every CONNACK. The stock client does the same hour after hour: it is played for fewer hours.
With --herd: so many devices at once, which a retained message kills 20 ms after every CONNACK, start by start; "spread" is the firmware with SPREAD=25000.

Exit codes: 0 measured; 1 it could not be measured; 2 a flag can't be used; 130 Ctrl-C, after the rows
that are known, the last one for the hours that were played.

Examples:
  npm run crashes
  npm run crashes -- --hours 168 --json
  npm run crashes -- --herd 200`

interface Flags {
    hours: number
    stockHours: number
    herd?: number
    json: boolean
}

/** Prints rows; as text, with a head before the first. */
function printer<T>(
    io: Io,
    json: boolean,
    head: string,
    words: (row: T) => string,
) {
    if (!json) io.out(head + "\n")
    return (row: T) => io.out((json ? JSON.stringify(row) : words(row)) + "\n")
}

async function single(io: Io, { hours, stockHours, json }: Flags) {
    const print = printer(io, json, HEAD, inWords)
    for (const program of ["herdless", "stock"] as const)
        for (const afterS of AFTER_S) {
            const ofHours = program === "stock" ? stockHours : hours
            print(await measure(io, program, afterS, ofHours))
            if (io.stopped()) return
        }
}

async function together(io: Io, devices: number, { json }: Flags) {
    const print = printer(io, json, HERD_HEAD, herdInWords)
    for (const program of ["herdless", "spread", "stock"] as const) {
        for (const row of await herd(io, program, devices)) print(row)
        if (io.stopped()) return
    }
}

/**
 * The tool.
 * @param args what follows the script's name
 * @returns the exit code
 */
export async function crashes(args: string[], io: Io): Promise<number> {
    const hours = whole(1, 1000)
    const command = new Command("npm run crashes --")
        .description("Connections of a device whose program keeps crashing.")
        .option("--hours <n>", "simulated hours of the firmware", hours, 6)
        .option("--stock-hours <n>", "of the stock client", hours, 1)
        .option(
            "--herd <n>",
            "so many devices at once, instead",
            whole(2, 1000),
        )
        .option("--json", "one JSON object for each row", false)
        .addHelpText("after", HELP)
    const flags = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    if (typeof flags === "number") return flags
    const given = flags as Flags
    try {
        if (given.herd) await together(io, given.herd, given)
        else await single(io, given)
    } catch (e) {
        io.err(`npm run crashes: ${(e as Error).message}\n`)
        return 1
    }
    return io.stopped() ? INTERRUPTED : 0
}

if (process.argv[1]?.endsWith("crashes.ts"))
    void crashes(process.argv.slice(2), consoleIo()).then(
        code => (process.exitCode = code),
    )
