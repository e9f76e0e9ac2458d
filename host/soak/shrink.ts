// Finds a smaller plan that still fails the same way (delta debugging): leaves out ever smaller parts
// of the troubles for as long as the same invariant fails without them.
import type { Job, Outcome } from "./run"

/** Runs that may be spent on one failure. */
const MAX_RUNS = 120

/**
 * @param job the failing one
 * @param outcome what it failed with
 * @param run runs a job; undefined when it had no outcome
 * @param width jobs that may run at a time
 * @param progress told how many troubles are left and how many runs were spent
 * @returns the smallest failing job found and its outcome
 */
export async function shrink(
    job: Job,
    outcome: Outcome,
    run: (job: Job) => Promise<Outcome | undefined>,
    width: number,
    progress: (troubles: number, runs: number) => void,
): Promise<{ job: Job; outcome: Outcome }> {
    const idsOf = (o: Outcome) => (o.troubles ?? []).map(t => t.id)
    let best = { job: { ...job, only: idsOf(outcome) }, outcome }
    let runs = 0
    let parts = 2
    const fails = async (only: number[]) => {
        runs++
        const o = await run({ ...job, only })
        const same = o?.finding?.invariant === outcome.finding?.invariant
        return same ? o : undefined
    }
    while (best.job.only.length > 0 && runs < MAX_RUNS) {
        const { only } = best.job
        const size = Math.ceil(only.length / parts)
        const without: number[][] = []
        for (let at = 0; at < only.length; at += size)
            without.push([...only.slice(0, at), ...only.slice(at + size)])
        let smaller: typeof best | undefined
        for (let at = 0; at < without.length && !smaller; at += width) {
            const some = without.slice(at, at + width)
            const results = await Promise.all(some.map(fails))
            results.forEach((o, i) => {
                if (!o || smaller) return
                const begun = new Set(idsOf(o))
                const left = some[i].filter(id => begun.has(id))
                smaller = { job: { ...job, only: left }, outcome: o }
            })
        }
        if (smaller) {
            best = smaller
            parts = Math.max(2, parts - 1)
        } else if (size === 1) break
        else parts = Math.min(only.length, 2 * parts)
        progress(best.job.only.length, runs)
    }
    return best
}
