// How many connections a second a broker can complete: the search. Rates double until CONNACK falls behind; then the
// broker is kept busy a few times over, and how fast its CONNACKs come is its capacity. Without network:
// whoever calls brings the bursts.
import type { Burst } from "./probe"

/** What a burst at one rate showed. */
export interface Step {
    /** Connections begun a second, as asked for and as done. */
    ratePerSecond: number
    offeredPerSecond: number
    connections: number
    failed: number
    /** Time to CONNACK, of those that got one; null when none did. */
    p50Ms: number | null
    p99Ms: number | null
    /** CONNACKs a second while there was a queue. */
    completedPerSecond: number
    /** CONNACK fell behind, or failed. */
    broke: boolean
}

/** What is known of the capacity. */
export interface Capacity {
    /** CONNACKs a second of the busy broker; null: it was never busy. */
    rate: number | null
    /** The lowest and highest of the measurements; without a rate, what it did with ease. */
    low: number
    high: number | null
    steps: Step[]
    /** Why there is no rate. */
    why?: string
}

/** Bounds of the search. */
export interface Limits {
    maxRate: number
    maxConnections: number
}

export type RunBurst = (rate: number, count: number) => Promise<Burst>

const FIRST_RATE = 10
/** How long connections are begun at each rate. */
const STEP_S = 1
/** The same once it has broken: what counts in the end. */
const BUSY_S = 1.5
/** Once it has broken: so often more, at this multiple of what it did. */
const REPEATS = 3
const OVERLOAD = 1.5

/** Tries at one rate that this computer cannot keep. */
const TRIES = 4

/** Behind: later than idle by this factor, and by so much. */
const BEHIND_FACTOR = 4
const BEHIND_MS = 150

/**
 * Finds the capacity.
 * @param idleMs time to CONNACK of an idle broker
 * @param told of each step once it is done
 */
export async function findCapacity(
    run: RunBurst,
    idleMs: number,
    limits: Limits,
    told: (step: Step) => void,
    stopped: () => boolean,
): Promise<Capacity> {
    const steps: Step[] = []
    let left = limits.maxConnections
    const step = async (rate: number, forS = STEP_S) => {
        const count = Math.min(left, Math.max(10, Math.round(rate * forS)))
        left -= count
        const done = stepOf(rate, await run(rate, count), idleMs)
        if (stopped()) return done
        steps.push(done)
        told(done)
        return done
    }
    // A step in which this computer was too busy to keep the rate shows nothing: once more.
    const fairStep = async (rate: number) => {
        let done = await step(rate)
        for (let i = 1; i < TRIES && isSlow(done) && !stopped(); ++i) {
            if (done.broke || left < rate * STEP_S) break
            done = await step(rate)
        }
        return done
    }
    let rate = Math.min(FIRST_RATE, limits.maxRate)
    let last = await fairStep(rate)
    while (!last.broke && !stopped()) {
        if (isSlow(last))
            return unknown(steps, "this computer cannot begin more a second")
        if (rate >= limits.maxRate)
            return unknown(
                steps,
                `${limits.maxRate} a second is the most allowed`,
            )
        rate = Math.min(2 * rate, limits.maxRate)
        if (left < rate * STEP_S)
            return unknown(
                steps,
                `${limits.maxConnections} connections is the most allowed`,
            )
        last = await fairStep(rate)
    }
    const found: number[] = []
    let guess = last.completedPerSecond
    for (let i = 0; i < REPEATS && !stopped() && guess > 0; ++i) {
        if (left < guess * OVERLOAD * BUSY_S) break
        const { completedPerSecond } = await step(guess * OVERLOAD, BUSY_S)
        if (stopped() || completedPerSecond <= 0) break
        found.push((guess = completedPerSecond))
    }
    if (!found.length) {
        if (stopped()) return unknown(steps, "interrupted")
        if (last.completedPerSecond <= 0)
            return unknown(steps, "it broke, and hardly a CONNACK came")
        found.push(last.completedPerSecond)
    }
    const mean = found.reduce((a, b) => a + b) / found.length
    return {
        rate: mean,
        low: Math.min(...found),
        high: Math.max(...found),
        steps,
    }
}

/** Fewer were begun than asked for. */
function isSlow(step: Step): boolean {
    return step.offeredPerSecond < 0.8 * step.ratePerSecond
}

function unknown(steps: Step[], why: string): Capacity {
    const easy = steps.filter(s => !s.broke).map(s => s.offeredPerSecond)
    return { rate: null, low: Math.max(0, ...easy), high: null, steps, why }
}

/** What a burst shows. */
export function stepOf(rate: number, burst: Burst, idleMs: number): Step {
    const { samples, offeredPerSecond } = burst
    const good = samples.filter(s => s.problem === undefined)
    const waits = good.map(s => s.endMs - s.startMs)
    const failed = samples.length - good.length
    // The end of the burst tells whether a queue has grown.
    const late = median(waits.slice(-Math.ceil(waits.length / 4)))
    const isBehind =
        late !== null &&
        late > BEHIND_FACTOR * idleMs &&
        late > idleMs + BEHIND_MS
    const sorted = waits.sort((a, b) => a - b)
    return {
        ratePerSecond: rate,
        offeredPerSecond,
        connections: samples.length,
        failed,
        p50Ms: quantile(sorted, 0.5),
        p99Ms: quantile(sorted, 0.99),
        completedPerSecond: paceOf(good.map(s => s.endMs)),
        broke: isBehind || burst.cut || failed > samples.length / 100,
    }
}

/** Events a second, without the first quarter: the queue has yet to form. */
function paceOf(times: number[]): number {
    const from = times.sort((a, b) => a - b).slice(Math.floor(times.length / 4))
    const spanMs = from[from.length - 1] - from[0]
    return spanMs > 0 ? ((from.length - 1) * 1000) / spanMs : 0
}

function median(values: number[]): number | null {
    return quantile(
        values.sort((a, b) => a - b),
        0.5,
    )
}

function quantile(sorted: number[], part: number): number | null {
    if (!sorted.length) return null
    return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)]
}
