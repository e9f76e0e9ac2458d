// `npm run fleet -- measure`: how many connections a second an operator's own broker completes. Flags in, C out.
import { Command } from "commander"
import { readFlags, whole } from "../flags"
import { findCapacity, type Capacity, type Step } from "./capacity"
import { burst, probe, type Target } from "./probe"
import { INTERRUPTED, type Io, type Tool } from "./tool"

const HELP = `
It opens connections at 10 a second, then 20, 40 ..., each closed at its CONNACK, until CONNACKs fall behind or fail. Then it
keeps the broker busy three times more: how fast its CONNACKs come is C. For a while the broker answers nobody
else well: choose the hour. Plain TCP only; with TLS a connection costs the broker several times as much.

Exit codes: 0 C was found, or is more than could be tried; 1 no broker, or it refuses us; 2 a flag can't be used;
130 Ctrl-C, after printing what is known.

Examples:
  npm run fleet -- measure --port 1883 --devices 20000
  npm run fleet -- measure --host broker.example --i-own-this-broker --json`

interface Options {
    target: Target
    maxRate: number
    maxConnections: number
    devices: number | undefined
    json: boolean
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/

/** @returns the options, or the exit code when there is nothing to run */
function readOptions(args: string[], io: Io): Options | number {
    const command = new Command("npm run fleet -- measure")
        .description("Finds how many connections a second a broker completes.")
        .option("--host <name>", "the broker", "127.0.0.1")
        .option("--port <number>", "its port", whole(1, 65535), 1883)
        .option("--username <text>", "as whom to connect")
        .option("--password <text>", "its password")
        .option(
            "--devices <n>",
            "for the plan command it prints",
            whole(1, 1e8),
        )
        .option(
            "--max-rate <n>",
            "begin no more a second",
            whole(1, 20_000),
            2000,
        )
        .option(
            "--max-connections <n>",
            "begin no more in all",
            whole(10, 100_000),
            20_000,
        )
        .option(
            "--i-own-this-broker",
            "needed for a broker that is not on this computer",
        )
        .option("--json", "print the result as one JSON object")
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    if (typeof given === "number") return given
    const { host, port, username, password } = given
    const bad = (text: string) => {
        io.err(
            `error: ${text}\n(npm run fleet -- measure --help lists the flags)\n`,
        )
        return 2
    }
    if (!LOOPBACK.test(host) && !given.iOwnThisBroker)
        return bad(
            `option '--host' argument '${host}' is invalid. Allowed: a loopback address; for another one add --i-own-this-broker.`,
        )
    if (password !== undefined && username === undefined)
        return bad(
            "option '--password' is allowed only together with --username.",
        )
    return {
        target: { host, port, username, password },
        maxRate: given.maxRate,
        maxConnections: given.maxConnections,
        devices: given.devices,
        json: given.json === true,
    }
}

const REFUSALS: Record<string, string> = {
    ECONNREFUSED: "nobody listens there",
    ENOTFOUND: "there is no such name",
    "CONNACK 1": "it does not speak MQTT 3.1.1 (CONNACK 1)",
    "CONNACK 4":
        "bad user name or password (CONNACK 4); see --username, --password",
    "CONNACK 5": "not authorised (CONNACK 5); see --username, --password",
}

/** Time to CONNACK of an idle broker, ms, or what is wrong. */
async function idle(target: Target): Promise<number | string> {
    const waits: number[] = []
    for (let i = 0; i < 5; ++i) {
        const { startMs, endMs, problem } = await probe(target)
        if (problem !== undefined) return REFUSALS[problem] ?? problem
        waits.push(endMs - startMs)
    }
    return waits.sort((a, b) => a - b)[2]
}

function stepText(step: Step): string {
    const { ratePerSecond, connections, failed, p50Ms, p99Ms } = step
    const ms = (v: number | null) => (v === null ? "never" : v.toFixed(1))
    return (
        `${Math.round(ratePerSecond)}/s: ${connections} connections, ` +
        `CONNACK p50 ${ms(p50Ms)} ms, p99 ${ms(p99Ms)} ms, ` +
        (failed ? `${failed} failed` : "all answered") +
        (step.broke ? ": behind" : "")
    )
}

/** How far off C may be, by what was measured, percent. */
function errorPercent({ rate, low, high }: Capacity): number {
    if (rate === null || high === null) return 100
    return Math.max(1, Math.ceil((100 * (high - low)) / 2 / rate))
}

/** The lowest rate that was measured, to three digits: the plan must not count on more. */
function planRate(capacity: Capacity): number {
    return Number(capacity.low.toPrecision(3))
}

function planCommand(capacity: Capacity, devices: number | undefined): string {
    // The margin has to exceed the error in C.
    const margin = errorPercent(capacity) <= 4 ? 1.05 : 1.25
    return `npm run fleet -- plan --devices ${devices ?? "N"} --rate ${planRate(capacity)} --margin ${margin}`
}

function summary(capacity: Capacity, devices: number | undefined): string {
    const { rate, low, high, why } = capacity
    const round = (v: number) => Number(v.toPrecision(3))
    const found =
        rate === null
            ? `C is at least ${round(low)} connections a second: it kept up with all that was tried (${why}).`
            : `C is about ${round(rate)} connections a second, sure to ${errorPercent(capacity)} % (${round(low)} to ${round(high!)} when busy).`
    return [found, `Next: ${planCommand(capacity, devices)}`].join("\n")
}

function jsonOf(capacity: Capacity, options: Options, idleMs: number) {
    const { rate, low, high, steps, why } = capacity
    return {
        rate,
        low,
        high,
        errorPercent: errorPercent(capacity),
        idleMs,
        why,
        plan: planCommand(capacity, options.devices),
        steps,
    }
}

export const measureTool: Tool = {
    name: "measure",
    summary: "find how many connections a second your broker completes",
    async run(args, io) {
        const options = readOptions(args, io)
        if (typeof options === "number") return options
        const { target, json } = options
        const where = `${target.host}:${target.port}`
        const idleMs = await idle(target)
        if (typeof idleMs === "string") {
            io.err(`error: no connection to ${where}: ${idleMs}\n`)
            return 1
        }
        if (!json) io.out(`${where}: CONNACK after ${idleMs.toFixed(1)} ms\n`)
        const stopped = () => io.stopped()
        const capacity = await findCapacity(
            (rate, count) => {
                io.status(
                    `${where}: ${count} connections, ${Math.round(rate)}/s`,
                )
                return burst(target, rate, count, stopped)
            },
            idleMs,
            options,
            step => {
                if (!json) io.out(`  ${stepText(step)}\n`)
            },
            stopped,
        )
        if (json)
            io.out(JSON.stringify(jsonOf(capacity, options, idleMs)) + "\n")
        else io.out(summary(capacity, options.devices) + "\n")
        return stopped() ? INTERRUPTED : 0
    },
}
