// `npm run soak`: the firmware through hours of drawn troubles, on all cores. See soak/run.ts for what
// a run is and soak/invariants.ts for what must hold.
import { toConsole } from "./flags"
import { loadProgram } from "./vm/program"
import { castOf } from "./soak/cast"
import { readOptions, type Options } from "./soak/options"
import { Pool } from "./soak/pool"
import { failureText, outcomeText, progressText, Tally } from "./soak/report"
import type { Job, Outcome } from "./soak/run"
import { shrink } from "./soak/shrink"

const { stdout, stderr } = process

/** Without a terminal, a line of progress this often. */
const QUIET_MS = 60_000
const DRAW_MS = 500

async function run(options: Options) {
    const { seeds, firstSeed, hours, devices, only, program, json } = options
    const tally = new Tally()
    const startMs = performance.now()
    const wallMs = () => performance.now() - startMs
    const pool = new Pool<Job, Outcome>(
        new URL("./soak/worker.ts", import.meta.url),
        Math.min(options.jobs, options.shrink ? Infinity : seeds),
    )
    const totalSeconds = seeds * devices * (hours * 3600 + 60)
    const isTerminal = stderr.isTTY
    const clear = () => isTerminal && stderr.write("\r\x1b[K")
    const say = (text: string) => {
        clear()
        ;(json ? stderr : stdout).write(text + "\n")
    }
    const draw = () => {
        const done = tally.deviceSeconds + pool.done
        const text = progressText(tally, seeds, done, totalSeconds, wallMs())
        stderr.write(isTerminal ? `\r\x1b[K${text}` : `${text}\n`)
    }
    const timer = setInterval(draw, isTerminal ? DRAW_MS : QUIET_MS)
    const finish = (code: number) => {
        clearInterval(timer)
        pool.close()
        clear()
        stdout.write(
            (json ? tally.json(wallMs()) : tally.text(wallMs())) + "\n",
        )
        process.exit(code)
    }
    process.on("SIGINT", () => finish(130))
    process.on("SIGTERM", () => finish(143))

    // Compiled once, here, so that the workers find it.
    for (const { spec } of castOf(firstSeed, devices, program))
        loadProgram(spec.program!)
    await Promise.all(
        Array.from({ length: seeds }, async (_, i) => {
            const job: Job = {
                seed: firstSeed + i,
                hours,
                devices,
                only,
                program,
            }
            const result = await pool.run(job)
            tally.add(result)
            const isBad = !("outcome" in result) || result.outcome.finding
            if (!isBad) return
            say(failureText(result))
            if (!options.shrink || !("outcome" in result)) return
            const small = await shrink(
                job,
                result.outcome,
                async j => {
                    const r = await pool.run(j)
                    return "outcome" in r ? r.outcome : undefined
                },
                options.jobs,
                (troubles, runs) =>
                    say(`  shrinking: ${troubles} troubles left, ${runs} runs`),
            )
            say(outcomeText(small.job, small.outcome))
        }),
    )
    finish(tally.failures.length ? 1 : 0)
}

const options = readOptions(process.argv.slice(2), toConsole)
if (typeof options === "number") process.exit(options)
else void run(options)
