// `npm run crashes`: what a program that crashes again and again does to its broker and to its flash, with the restart limit and
// without: the README's table.
import { writeSync } from "node:fs"
import { Command, InvalidArgumentError } from "commander"
import { readFlags } from "./flags"
import { mostIn, playCrashLoop, type CrashLoop } from "./lab/crash-loop"

/** From CONNACK to the crash. */
const AFTER_S = [1, 30, 660]

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

async function measure(
    program: Row["program"],
    crashAfterS: number,
    hours: number,
): Promise<Row> {
    const stock: Partial<CrashLoop> = {
        spec: { program: "test/bytecode/stock-minimal.ts" },
        address: "127.0.0.1:1883",
    }
    const { connectMs, flashWrites } = await playCrashLoop({
        ...(program === "stock" ? stock : {}),
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

function inWords(row: Row): string {
    const cell = (value: unknown, width: number) => `${value}`.padStart(width)
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

const HELP = `
The firmware, and the stock MQTTClient of @devicescript/net, each in the lab and killed so long
after every CONNACK. The stock client does the same hour after hour: it is played for fewer hours.

Exit codes: 0 measured; 1 it could not be measured; 2 a flag can't be used.

Examples:
  npm run crashes
  npm run crashes -- --hours 168 --json`

function wholeHours(text: string): number {
    const hours = Number(text)
    if (!Number.isInteger(hours) || hours < 1 || hours > 1000)
        throw new InvalidArgumentError("Allowed: a whole number from 1 to 1000")
    return hours
}

async function main() {
    const command = new Command("npm run crashes --")
        .description("Connections of a device whose program keeps crashing.")
        .option("--hours <n>", "simulated hours of the firmware", wholeHours, 6)
        .option("--stock-hours <n>", "of the stock client", wholeHours, 1)
        .option("--json", "one JSON object for each row", false)
        .addHelpText("after", HELP)
    const flags = readFlags(command, process.argv.slice(2), (text, isError) =>
        writeSync(isError ? 2 : 1, text),
    )
    if (typeof flags === "number") process.exit(flags)
    const { hours, stockHours, json } = flags as {
        hours: number
        stockHours: number
        json: boolean
    }
    const print = (text: string) => writeSync(1, text + "\n")
    try {
        if (!json) print(HEAD)
        for (const program of ["herdless", "stock"] as const)
            for (const afterS of AFTER_S) {
                const forHours = program === "stock" ? stockHours : hours
                const row = await measure(program, afterS, forHours)
                print(json ? JSON.stringify(row) : inWords(row))
            }
        process.exit(0)
    } catch (e) {
        console.error(`npm run crashes: ${(e as Error).message}`)
        process.exit(1)
    }
}

if (process.argv[1]?.endsWith("crashes.ts")) void main()
