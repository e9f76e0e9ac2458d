// What a soak prints: a line of progress while it runs, each failure with its replay, a table at the end.
import pc from "picocolors"
import { span } from "../show"
import { INVARIANTS, type Invariant } from "./invariants"
import { replayOf } from "./options"
import type { Result as PoolResult } from "./pool"
import type { Job, Outcome } from "./run"

type Result = PoolResult<Job, Outcome>

/** Events printed for a failure. */
const LAST_EVENTS = 30

/** A failed job, in words. */
export interface Failure {
    seed: number
    /** A name of INVARIANTS; "hang" or "lab" when the soak itself got stuck. */
    invariant: string
    replay: string
}

/** Everything a soak found out so far. */
export class Tally {
    seeds = 0
    deviceSeconds = 0
    readonly faults: Record<string, number> = {}
    readonly failures: Failure[] = []
    readonly stats: Record<string, number> = {}
    slowestMs = 0

    add(result: Result) {
        this.seeds++
        if (!("outcome" in result)) {
            this.fail(result.job, result.trouble)
            return
        }
        const { outcome, job } = result
        this.deviceSeconds += outcome.deviceSeconds
        this.slowestMs = Math.max(this.slowestMs, outcome.convergedMs ?? 0)
        addAll(this.faults, outcome.fired)
        addAll(this.stats, outcome.stats)
        if (outcome.finding) this.fail(job, outcome.finding.invariant)
    }

    private fail(job: Job, invariant: string) {
        this.failures.push({
            seed: job.seed,
            invariant,
            replay: replayOf(job),
        })
    }

    json(wallMs: number): string {
        const { seeds, deviceSeconds, faults, failures } = this
        const wallSeconds = Math.round(wallMs / 100) / 10
        return JSON.stringify({
            seeds,
            deviceSeconds,
            wallSeconds,
            faults: sorted(faults),
            failures,
        })
    }

    /** The summary for people. */
    text(wallMs: number): string {
        if (!this.seeds)
            return "stopped before a seed was done: nothing is known"
        const { stats, deviceSeconds } = this
        const rate = Math.round((1000 * deviceSeconds) / Math.max(1, wallMs))
        const table = Object.entries(sorted(this.faults))
            .map(([name, n]) => `${name} ${n}`)
            .join(", ")
        const did = Object.entries(stats)
            .map(([name, n]) => `${n} ${name}`)
            .join(", ")
        const failed = this.failures.length
        return [
            `${this.seeds} ${this.seeds === 1 ? "seed" : "seeds"}, ${span(deviceSeconds * 1000)} of device time ` +
                `in ${span(wallMs)}: ${rate} device-seconds a second`,
            `the devices: ${did || "nothing"}`,
            `troubles that took effect: ${table || "none"}`,
            `slowest return to a healed world: ${span(this.slowestMs)}`,
            failed
                ? pc.red(`${failed} failed`)
                : pc.green("every invariant held"),
        ].join("\n")
    }
}

function addAll(sum: Record<string, number>, more: Record<string, number>) {
    for (const [name, n] of Object.entries(more))
        sum[name] = (sum[name] ?? 0) + n
}

function sorted(counts: Record<string, number>): Record<string, number> {
    return Object.fromEntries(
        Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)),
    )
}

/** A failure, with all that is needed to look into it. */
export function failureText(result: Result): string {
    const { job } = result
    if (!("outcome" in result))
        return [
            pc.red(`seed ${job.seed}: ${result.trouble}`),
            `  ${result.text}`,
            `  replay: ${replayOf(job)}`,
        ].join("\n")
    return outcomeText(job, result.outcome)
}

export function outcomeText(job: Job, outcome: Outcome): string {
    const finding = outcome.finding!
    const { invariant, device, what, atMs, tail } = finding
    const troubles = (outcome.troubles ?? []).map(t => t.text)
    const shown = job.only ? troubles : troubles.slice(-5)
    return [
        pc.red(
            `seed ${job.seed}: "${invariant}" did not hold for ${device} after ${span(atMs)}`,
        ),
        `  it says: ${INVARIANTS[invariant as Invariant]}`,
        `  it was:  ${what}`,
        `  ${job.only ? "" : "last of "}${troubles.length} troubles:`,
        ...shown.map(text => `    ${text}`),
        `  last events:`,
        ...tail.slice(-LAST_EVENTS).map(line => `    ${line}`),
        `  replay: ${replayOf(job)}`,
    ].join("\n")
}

/** One line for a terminal, drawn over the last one. */
export function progressText(
    tally: Tally,
    seeds: number,
    doneSeconds: number,
    totalSeconds: number,
    wallMs: number,
): string {
    const part = Math.min(1, doneSeconds / totalSeconds)
    const cells = Math.floor(20 * part)
    const bar = "#".repeat(cells) + ".".repeat(20 - cells)
    const rate = Math.round((1000 * doneSeconds) / Math.max(1, wallMs))
    const leftMs = part > 0.01 ? (wallMs * (1 - part)) / part : 0
    const eta = leftMs ? `, ${span(Math.ceil(leftMs / 1000) * 1000)} left` : ""
    return (
        `[${bar}] ${Math.floor(100 * part)} %, ${tally.seeds}/${seeds} seeds, ` +
        `${tally.failures.length} failed, ${rate} device-s/s${eta}`
    )
}
