// The command line of `npm run soak`. A flag that can't be used is named together with its value and
// what is allowed; exit code 2.
import { existsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Command, InvalidArgumentError } from "commander"
import { readFlags, whole } from "../flags"
import { PROJECT } from "../vm/program"

export interface Options {
    firstSeed: number
    seeds: number
    hours: number
    devices: number
    jobs: number
    /** Only these troubles of the plan. */
    only: number[] | undefined
    program: string | undefined
    shrink: boolean
    json: boolean
}

const HELP = `
The devices are, in turn: the reference firmware, an application on the library
(test/bytecode/soak-app.ts), and the firmware with Wi-Fi; each seed begins with another. Troubles come for the given time, with every
invariant checked at every event; then all is healed, and every device has to be connected,
subscribed and publishing again in the time that its policy promises.

Exit codes: 0 all held; 1 an invariant did not; 2 a flag can't be used; 130 Ctrl-C (143 SIGTERM).

Examples:
  npm run soak -- --seeds 50 --hours 24
  npm run soak -- --seed 7 --hours 24             what seed 7 does
  npm run soak -- --seed 7 --hours 24 --shrink    and with how few troubles`

function hours(text: string): number {
    const value = Number(text)
    if (!/^\d*\.?\d+$/.test(text) || value < 0.01 || value > 1000)
        throw new InvalidArgumentError("Allowed: 0.01 to 1000.")
    return value
}

function ids(text: string): number[] {
    if (!/^\d+(,\d+)*$/.test(text))
        throw new InvalidArgumentError("Allowed: numbers with commas between.")
    return text.split(",").map(Number)
}

function program(text: string): string {
    if (!existsSync(join(PROJECT, text)))
        throw new InvalidArgumentError("Allowed: a file of this project.")
    return text
}

const MAX_INT = 0x7fffffff

/**
 * Reads the flags.
 * @param args what follows the script's name
 * @param print where help (`isError` false) and complaints go
 * @returns the options, or the exit code when there is nothing to run
 */
export function readOptions(
    args: string[],
    print: (text: string, isError: boolean) => void,
): Options | number {
    const command = new Command("npm run soak --")
        .description(
            "Runs the firmware through drawn troubles of every kind and checks what must always hold.",
        )
        .option(
            "--seeds <n>",
            "how many runs (default 8, or 1 with --seed)",
            whole(1, 100_000),
        )
        .option("--seed <n>", "the first seed (default 1)", whole(0, MAX_INT))
        .option("--hours <h>", "of troubles, in each run", hours, 24)
        .option("--devices <n>", "in each run", whole(1, 1000), 2)
        .option(
            "--jobs <n>",
            "runs at a time (default: one for each core)",
            whole(1, 1000),
        )
        .option("--only <ids>", "only these troubles of the plan", ids)
        .option("--program <file>", "instead of src/main.ts", program)
        .option("--shrink", "find fewer troubles that still fail")
        .option("--json", "print the result as one JSON object")
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, args, print)
    if (typeof given === "number") return given
    return {
        firstSeed: given.seed ?? 1,
        seeds: given.seeds ?? (given.seed === undefined ? 8 : 1),
        hours: given.hours,
        devices: given.devices,
        jobs: given.jobs ?? availableParallelism(),
        only: given.only,
        program: given.program,
        shrink: given.shrink === true,
        json: given.json === true,
    }
}

/** The one command that runs a job again. */
export function replayOf(job: {
    seed: number
    hours: number
    devices: number
    only?: number[]
    program?: string
}): string {
    const { seed, hours, devices, only, program } = job
    return [
        `npm run soak -- --seed ${seed} --hours ${hours} --devices ${devices}`,
        ...(only ? [`--only ${only.join()}`] : []),
        ...(program ? [`--program ${program}`] : []),
    ].join(" ")
}
