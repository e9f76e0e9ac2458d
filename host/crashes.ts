// `npm run crashes`: what a program that crashes again and again does to its broker and to its flash, with the restart limit and
// without, and what a fleet that crashes together does: the README's tables.
import { writeSync } from "node:fs"
import { Command } from "commander"
import { readFlags, whole } from "./flags"
import { playCrashHerd } from "./lab/crash-herd"
import { mostIn, playCrashLoop, type CrashLoop } from "./lab/crash-loop"

/** From CONNACK to the crash. */
const AFTER_S = [1, 30, 180, 660]

const HOUR_MS = 3_600_000
const WINDOW_MS = 120_000

/** One row of the table. */
interface Row {
    program: "herdless" | "stock"
    crashAfterS: number
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

async function measure(
    program: Row["program"],
    crashAfterS: number,
    hours: number,
): Promise<Row> {
    const { connectMs, flashWrites } = await playCrashLoop({
        ...(program === "stock" ? STOCK : {}),
        crashAfterMs: crashAfterS * 1000,
        minutes: hours * 60,
    })
    const tenths = (n: number) => Math.round(n * 10) / 10
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
    program: HerdRow["program"],
    devices: number,
    onMinute: (minutes: number) => void,
): Promise<HerdRow[]> {
    const times = await playCrashHerd({
        ...HERDS[program],
        devices,
        onMinute,
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

Exit codes: 0 measured; 1 it could not be measured; 2 a flag can't be used.

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

/** Prints a row; as text, with a head before the first. */
function printer<T>(json: boolean, head: string, words: (row: T) => string) {
    const print = (text: string) => writeSync(1, text + "\n")
    if (!json) print(head)
    return (row: T) => print(json ? JSON.stringify(row) : words(row))
}

async function single({ hours, stockHours, json }: Flags) {
    const print = printer(json, HEAD, inWords)
    for (const program of ["herdless", "stock"] as const)
        for (const afterS of AFTER_S)
            print(
                await measure(
                    program,
                    afterS,
                    program === "stock" ? stockHours : hours,
                ),
            )
}

async function together(devices: number, { json }: Flags) {
    const print = printer(json, HERD_HEAD, herdInWords)
    for (const program of ["herdless", "spread", "stock"] as const) {
        const startedMs = Date.now()
        const progress = (minutes: number) => {
            if (!process.stderr.isTTY) return
            const all = HERDS[program].seconds / 60
            const spentS = (Date.now() - startedMs) / 1000
            const leftS = Math.round((spentS / minutes) * (all - minutes))
            writeSync(2, `\r${program}: ${leftS} s to go \x1b[K\r`)
        }
        for (const row of await herd(program, devices, progress)) print(row)
    }
}

async function main() {
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
    const flags = readFlags(command, process.argv.slice(2), (text, isError) =>
        writeSync(isError ? 2 : 1, text),
    )
    if (typeof flags === "number") process.exit(flags)
    const given = flags as Flags
    try {
        if (given.herd) await together(given.herd, given)
        else await single(given)
        process.exit(0)
    } catch (e) {
        console.error(`npm run crashes: ${(e as Error).message}`)
        process.exit(1)
    }
}

if (process.argv[1]?.endsWith("crashes.ts")) void main()
