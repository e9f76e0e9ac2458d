// `npm run fleet -- real`: one outage of a fleet of real firmware. Flags in, results out, beside those of the
// simulation with the same draws.
import { setImmediate } from "node:timers/promises"
import { Command, InvalidArgumentError, type OptionValues } from "commander"
import type { Policy } from "../../src/core/policy"
import { readFlags, whole } from "../flags"
import type { Comparison } from "./compare"
import { mirrored } from "./mirror"
import { adaptive, fitted } from "./presets"
import { RealFleet } from "./real"
import { jsonOf, textOf } from "./results"
import { FleetSim, type Result, type Scenario } from "./sim"
import { outageFlags } from "./outage-flags"
import { INTERRUPTED, type Io, type Tool } from "./tool"

const HELP = `
Every device is the firmware of src/main.ts in the DeviceScript VM. With --broker queue, busy or fragile (as of "run")
time is virtual. With --broker mosquitto it is not: a real mosquitto on loopback, behind a proxy that admits --rate
connections a second; what it completes in vain is not known. "simulated" is what "run" makes of the same draws.
A power-on takes real devices 1.3 s longer: the runtime starts, and settings are read.

Exit codes: 0 done; 1 a program died, or mosquitto is missing; 2 a flag can't be used; 130 Ctrl-C, after printing
what is known.

Examples:
  npm run fleet -- real --devices 200 --rate 20
  npm run fleet -- real --devices 100 --rate 10 --outage 10 --broker mosquitto --json`

const BROKERS = ["queue", "busy", "fragile", "mosquitto"]
const POLICIES = ["adaptive", "fitted"]

interface Options {
    scenario: Scenario
    isReal: boolean
    policies: { name: string; policy: Policy }[]
    json: boolean
}

/** What both kinds of fleet can do. */
interface Fleet {
    readonly up: number
    readonly panics: number
    result(): Result
    close(): void | Promise<void>
}

function broker(text: string): string {
    if (!BROKERS.includes(text))
        throw new InvalidArgumentError(`Allowed: ${BROKERS.join(", ")}.`)
    return text
}

function names(text: string): string[] {
    if (text === "all") return POLICIES
    const list = [...new Set(text.split(","))]
    if (!list.every(name => POLICIES.includes(name)))
        throw new InvalidArgumentError(
            `Allowed: all, or of ${POLICIES.join(", ")}, with commas between.`,
        )
    return list
}

/** @returns the options, or the exit code when there is nothing to run */
function readOptions(args: string[], io: Io): Options | number {
    const command = new Command("npm run fleet -- real")
        .description("Plays one outage with real firmware.")
        .option("--devices <n>", "in the fleet", whole(1, 2000), 200)
    outageFlags(command, { rate: 20 })
        .option("--policy <names>", POLICIES.join(", "), names, POLICIES)
        .option("--broker <kind>", BROKERS.join(", "), broker, "queue")
        .option("--json", "print the result as one JSON object")
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    return typeof given === "number" ? given : options(given)
}

function options(given: OptionValues): Options {
    const { devices, rate, margin } = given
    const isReal = given.broker === "mosquitto"
    const patienceMs = Math.round(given.patience * 1000)
    const fleet = { devices, rate, patienceMs, margin }
    return {
        scenario: {
            devices,
            rate,
            backlogS: given.backlog,
            broker: isReal ? "queue" : given.broker,
            outageS: given.outage ?? (isReal ? 10 : 60),
            silent: given.silent === true,
            powerOn: given.powerOn === true,
            seed: given.seed,
            limitS: given.watch ?? Math.max(3600, (10 * devices) / rate),
        },
        isReal,
        policies: given.policy.map((name: string) => ({
            name,
            policy: name === "fitted" ? fitted(fleet) : adaptive(fleet),
        })),
        json: given.json === true,
    }
}

/** Plays one policy; the result of an interrupted one is of what was known then. */
async function play(
    { scenario, isReal }: Options,
    name: string,
    policy: Policy,
    io: Io,
): Promise<{ result: Result; panics: number }> {
    let fleet: Fleet | undefined
    try {
        if (isReal) {
            const { MosquittoFleet } = await import("./real-mosquitto")
            const real = await MosquittoFleet.make(name, scenario, policy)
            fleet = real
            await watch(real, real.run(), name, scenario, io)
        } else {
            const real = await RealFleet.make(name, scenario, policy)
            fleet = real
            await watch(real, real.start(), name, scenario, io)
            await watch(real, real.run(), name, scenario, io)
        }
        return { result: fleet.result(), panics: fleet.panics }
    } finally {
        await fleet?.close()
    }
}

/** Takes step after step, with progress, until done or told to stop. */
async function watch(
    fleet: Fleet,
    steps: Iterable<void> | AsyncIterable<void>,
    name: string,
    { devices }: Scenario,
    io: Io,
) {
    const startMs = performance.now()
    for await (const step of steps) {
        void step
        await setImmediate()
        if (io.stopped()) return
        const seconds = Math.round((performance.now() - startMs) / 1000)
        io.status(
            `${name}: ${fleet.up} of ${devices} connected, ${seconds} s at work`,
        )
    }
}

/** What the simulation makes of the same draws. */
function simulate(name: string, policy: Policy, scenario: Scenario): Result {
    const sim = new FleetSim(scenario, mirrored(name, policy, scenario))
    while (sim.run(60_000));
    return sim.result()
}

export const realTool: Tool = {
    name: "real",
    summary: "play one outage with real firmware",
    async run(args, io) {
        const options = readOptions(args, io)
        if (typeof options === "number") return options
        const { scenario } = options
        const results: Result[] = []
        const simulated: Result[] = []
        let dead = 0
        for (const { name, policy } of options.policies) {
            if (io.stopped()) break
            try {
                const { result, panics } = await play(options, name, policy, io)
                results.push(result)
                dead += panics
            } catch (e) {
                io.err(`error: ${(e as Error).message}\n`)
                return 1
            }
            if (!io.stopped()) simulated.push(simulate(name, policy, scenario))
        }
        const interrupted = io.stopped()
        print(options, { scenario, results, interrupted }, simulated, io)
        if (dead) io.err(`error: ${dead} programs died\n`)
        return interrupted ? INTERRUPTED : dead ? 1 : 0
    },
}

function print(
    options: Options,
    comparison: Comparison,
    simulated: Result[],
    io: Io,
) {
    if (options.json) {
        const again = jsonOf({ ...comparison, results: simulated })
        const all = { ...jsonOf(comparison), simulated: again.policies }
        io.out(JSON.stringify(all) + "\n")
        return
    }
    const rows = comparison.results.flatMap((result, i) => [
        { ...result, name: `${result.name}, real` },
        ...(simulated[i]
            ? [{ ...simulated[i], name: `${result.name}, simulated` }]
            : []),
    ])
    io.out(textOf({ ...comparison, results: rows }) + "\n")
}
