// `npm run bench`: ours beside others, measured in one sitting: on the device (vm), the policy alone (core), a fleet at a real
// broker (fleet), and the tools themselves (lab). Each part is one file in host/bench/.
import { setImmediate } from "node:timers/promises"
import { cpus } from "node:os"
import { Command, InvalidArgumentError } from "commander"
import { accept, check, type Guarded } from "./bench/baseline"
import { corePart } from "./bench/core"
import { fleetPart } from "./bench/fleet"
import { labPart } from "./bench/lab"
import type { Bench, Part } from "./bench/part"
import { tableText, type Report } from "./bench/report"
import { vmPart } from "./bench/vm"
import { readFlags } from "./flags"
import { consoleIo, INTERRUPTED, type Io } from "./fleet/tool"
import { span } from "./show"

const PARTS: Part[] = [vmPart, corePart, fleetPart, labPart]

const HELP = `
Parts; all when none is named:
${PARTS.map(p => `  ${p.name.padEnd(6)} ${p.summary}, ${span(p.seconds(false) * 1000)}`).join("\n")}

The tables are Markdown. Ratios say more than times: a machine that does other work is slower, and so are both sides.
--check compares bytes, counts and ratios with host/bench/baseline.json and says what has grown; --accept makes what
was measured the baseline.

Exit codes: 0 measured; 1 something has grown, or could not be measured; 2 a flag can't be used; 130 Ctrl-C, after
printing what is known.

Examples:
  npm run bench
  npm run bench -- vm core --short --check
  npm run bench -- fleet --json > fleet.json`

interface Options {
    parts: Part[]
    short: boolean
    json: boolean
    check: boolean
    accept: boolean
}

/** @returns the options, or the exit code when there is nothing to run */
export function readOptions(args: string[], io: Io): Options | number {
    const names = PARTS.map(p => p.name)
    const command = new Command("npm run bench --")
        .usage("[parts] [flags]")
        .description("Ours beside others, measured in one sitting.")
        .argument(
            "[parts...]",
            names.join(", "),
            (name: string, so: string[] | undefined) => {
                if (names.includes(name)) return [...(so ?? []), name]
                throw new InvalidArgumentError(`Allowed: ${names.join(", ")}.`)
            },
        )
        .option("--short", "smaller and fewer rounds, for CI", false)
        .option("--json", "one JSON object instead of tables", false)
        .option("--check", "exit with 1 when something has grown", false)
        .option("--accept", "what is measured becomes the baseline", false)
        .addHelpText("after", HELP)
    const given = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    if (typeof given === "number") return given
    const [named] = command.processedArgs as [string[] | undefined]
    const { short, json, check, accept } = given as Options
    const parts = PARTS.filter(p => !named?.length || named.includes(p.name))
    return { parts, short, json, check, accept }
}

/** Runs the parts; an interrupted one answers with what it knows. */
async function measure({ parts, short }: Options, io: Io) {
    const reports: Record<string, Report> = {}
    const startMs = performance.now()
    const allS = parts.reduce((sum, p) => sum + p.seconds(short), 0)
    let doneS = 0
    for (const part of parts) {
        if (io.stopped()) break
        const partS = part.seconds(short)
        const bench: Bench = {
            short,
            stopped: io.stopped,
            warn: text => io.err(`note: ${text}\n`),
            async progress(done, text) {
                const leftMs = (allS - doneS - done * partS) * 1000
                io.status(
                    `${part.name}: ${text}; ${span(performance.now() - startMs)} at work, about ${span(Math.max(0, leftMs))} left`,
                )
                await setImmediate()
            },
        }
        try {
            reports[part.name] = await part.run(bench)
        } catch (e) {
            const failures = [(e as Error).message]
            reports[part.name] = { tables: [], json: {}, guards: {}, failures }
        }
        doneS += partS
    }
    return reports
}

function print(reports: Record<string, Report>, { json }: Options, io: Io) {
    if (!json) {
        const tables = Object.values(reports).flatMap(r => r.tables)
        io.out(tables.map(tableText).join("\n\n") + "\n")
        return
    }
    const all = Object.entries(reports).map(([name, r]) => [name, r.json])
    const [cpu] = cpus()
    io.out(
        JSON.stringify({
            machine: { node: process.version, cpu: cpu?.model ?? "?" },
            interrupted: io.stopped() || undefined,
            ...Object.fromEntries(all),
        }) + "\n",
    )
}

/** By part, so that a check of some parts does not miss the others. */
function guardsOf(reports: Record<string, Report>) {
    const all: Record<string, Guarded> = {}
    for (const [part, { guards }] of Object.entries(reports))
        for (const [name, guard] of Object.entries(guards))
            all[`${part}, ${name}`] = guard
    return all
}

async function main(args: string[], io: Io): Promise<number> {
    const options = readOptions(args, io)
    if (typeof options === "number") return options
    const reports = await measure(options, io)
    print(reports, options, io)
    if (io.stopped()) return INTERRUPTED
    const failures = Object.values(reports).flatMap(r => r.failures ?? [])
    for (const text of failures) io.err(`error: ${text}\n`)
    if (failures.length) return 1
    const found = guardsOf(reports)
    // A short run leaves some out.
    const isDue = (name: string) =>
        !options.short &&
        options.parts.some(p => name.startsWith(`${p.name}, `))
    if (options.accept) accept("bench", found, isDue)
    return options.check ? check("bench", found, isDue, io.err) : 0
}

// A VM keeps Node alive; but what was printed may still be on its way through a pipe.
if (process.argv[1]?.endsWith("host/bench.ts"))
    void main(process.argv.slice(2), consoleIo()).then(code => {
        process.exitCode = code
        process.stdout.write("", () => process.exit())
    })
