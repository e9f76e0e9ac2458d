// The worker's side of pool.ts: takes jobs by message, one after the other, and answers with what came of
// each. A VM is not shared between processes, so one that hangs costs only its worker.
import type { Answer } from "./pool"

/** Serves jobs until the parent goes away. `run` may throw. */
export function serve<Job, Outcome>(
    run: (job: Job, progress: (done: number) => void) => Promise<Outcome>,
) {
    const say = (answer: Answer<Outcome>) => process.send?.(answer)
    process.on("message", (job: Job) => {
        run(job, done => say({ is: "progress", done })).then(
            outcome => say({ is: "outcome", outcome }),
            (e: unknown) =>
                say({ is: "error", text: String((e as Error)?.stack ?? e) }),
        )
    })
    process.on("disconnect", () => process.exit(1))
    // A Ctrl-C reaches the whole group; the parent decides.
    process.on("SIGINT", () => {})
}
