// `npm run fleet -- run`: one outage of one fleet under several policies. Flags in, results out.
import { existsSync, writeFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Command, InvalidArgumentError, type OptionValues } from "commander"
import { readFlags, whole } from "../flags"
import { compare, type Comparison } from "./compare"
import { preset, presetNames } from "./presets"
import { pageOf } from "./report/page"
import { jsonOf, textOf } from "./results"
import { ROW_SIZES, ROW_STRATEGIES, type RowStrategy } from "./row"
import { compareRows, rowJsonOf, rowTextOf } from "./row-results"
import type { Scenario } from "./sim"
import { outageFlags } from "./outage-flags"
import { INTERRUPTED, type Io, type Tool } from "./tool"

export interface RunOptions {
    scenario: Scenario
    /** Names of presets. */
    policies: string[]
    patienceMs: number
    margin: number
    json: boolean
    /** Where to write the page. */
    report: string | undefined
}

/** `--broker row` is another simulation altogether. */
export interface RowOptions {
    sizes: number[]
    strategies: RowStrategy[]
    seed: number
    json: boolean
}

const HELP = `
Policies: ${presetNames().join(", ")}.
The strategies named -60s have a cap of 60 s; the others are what the clients of that name do.
Brokers: queue serves first come, first served; busy refuses when 2 s of service are queued;
fragile dies when more than 5 s are queued for 1 s, and is away for 10 s. row is no broker: it is
the simulation of "Exponential Backoff and Jitter" (AWS), 100 runs, for which only --devices (default:
10 to 190), --seed and --policy (of ${ROW_STRATEGIES.join(", ")}) count.

Exit codes: 0 done; 2 a flag can't be used; 130 Ctrl-C, after printing what is known.

Examples:
  npm run fleet -- run --devices 10000 --rate 100
  npm run fleet -- run --devices 1000000 --rate 1000 --policy adaptive,fitted --json
  npm run fleet -- run --broker row`

const BROKERS = ["queue", "busy", "fragile", "row"]

function broker(text: string): string {
    if (!BROKERS.includes(text))
        throw new InvalidArgumentError(`Allowed: ${BROKERS.join(", ")}.`)
    return text
}

/** Known to be writable before a long run begins. */
function reportFile(text: string): string {
    if (!/\.html?$/.test(text) || !existsSync(dirname(resolve(text))))
        throw new InvalidArgumentError(
            "Allowed: a file ending in .html, in a folder that exists.",
        )
    return text
}

/** The names in a list, each of those allowed. */
function names(flag: string, text: string, allowed: readonly string[]) {
    if (text === "all") return [...allowed]
    const list = [...new Set(text.split(","))]
    const unknown = list.find(name => !allowed.includes(name))
    if (unknown === undefined) return list
    throw new InvalidArgumentError(
        `error: option '${flag}' argument '${text}' is invalid. ${unknown || "An empty name"} is unknown. ` +
            `Allowed: all, or of ${allowed.join(", ")}, with commas between.`,
    )
}

/**
 * Reads the flags.
 * @returns the options, or the exit code when there is nothing to run
 */
export function readRunOptions(
    args: string[],
    io: Io,
): RunOptions | RowOptions | number {
    const command = new Command("npm run fleet -- run")
        .description("Simulates one outage of one fleet under each policy.")
        .option(
            "--devices <n>",
            "in the fleet (default: 1000)",
            whole(1, 5_000_000),
        )
    outageFlags(command, { rate: 100, outageS: 60 })
        .option("--policy <names>", "which, with commas between", "all")
        .option("--broker <kind>", BROKERS.join(", "), broker, "queue")
        .option("--json", "print the result as one JSON object")
        .option(
            "--report <file>",
            "write a page with charts (.html)",
            reportFile,
        )
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    if (typeof given === "number") return given
    try {
        return given.broker === "row" ? rowOptions(given) : options(given)
    } catch (e) {
        if (!(e instanceof InvalidArgumentError)) throw e
        io.err(`${e.message}\n(npm run fleet -- run --help lists the flags)\n`)
        return 2
    }
}

const MAX_ROW_CLIENTS = 10_000

function rowOptions(given: OptionValues): RowOptions {
    const { devices, policy, seed, json, report } = given
    if (report !== undefined)
        throw new InvalidArgumentError(
            `error: option '--report' argument '${report}' is invalid. Allowed with --broker queue, busy, fragile.`,
        )
    if (devices > MAX_ROW_CLIENTS)
        throw new InvalidArgumentError(
            `error: option '--devices' argument '${devices}' is invalid. Allowed with --broker row: 1 to ${MAX_ROW_CLIENTS}.`,
        )
    return {
        sizes: devices === undefined ? ROW_SIZES : [devices],
        strategies: names("--policy", policy, ROW_STRATEGIES) as RowStrategy[],
        seed,
        json: json === true,
    }
}

function options(given: OptionValues): RunOptions {
    const { devices = 1000, rate } = given
    return {
        scenario: {
            devices,
            rate,
            backlogS: given.backlog,
            broker: given.broker,
            outageS: given.outage,
            silent: given.silent === true,
            powerOn: given.powerOn === true,
            seed: given.seed,
            limitS: given.watch ?? Math.max(3600, (10 * devices) / rate),
        },
        policies: names("--policy", given.policy, presetNames()),
        patienceMs: Math.round(given.patience * 1000),
        margin: given.margin,
        json: given.json === true,
        report: given.report,
    }
}

/** Runs every policy of the options; stops early when asked to. */
export async function runAll(options: RunOptions, io: Io): Promise<Comparison> {
    const { scenario, patienceMs, margin } = options
    const { devices, rate } = scenario
    const fleet = { devices, rate, patienceMs, margin }
    return compare(
        scenario,
        options.policies.map(name => ({ name, make: preset(name, fleet)! })),
        io,
    )
}

export const runTool: Tool = {
    name: "run",
    summary: "simulate one outage under several policies",
    async run(args, io) {
        const options = readRunOptions(args, io)
        if (typeof options === "number") return options
        if ("sizes" in options) return runRows(options, io)
        const comparison = await runAll(options, io)
        io.out(
            options.json
                ? JSON.stringify(jsonOf(comparison)) + "\n"
                : textOf(comparison) + "\n",
        )
        if (options.report !== undefined) {
            const command = `npm run fleet -- run ${args.join(" ")}`
            writeFileSync(options.report, pageOf(comparison, command))
            io.err(`wrote ${options.report}\n`)
        }
        return comparison.interrupted ? INTERRUPTED : 0
    },
}

async function runRows(options: RowOptions, io: Io): Promise<number> {
    const rows = await compareRows(options, io)
    io.out(
        options.json
            ? JSON.stringify(rowJsonOf(rows)) + "\n"
            : rowTextOf(rows) + "\n",
    )
    return rows.interrupted ? INTERRUPTED : 0
}
