// The simulation of the AWS Architecture Blog, "Exponential Backoff and Jitter" (its code:
// aws-samples/aws-arch-backoff-simulator 66cb169): no broker at all, but one row of a database with a
// version. Each client reads the version and writes it back plus one; who comes second has to read again.
//
// READ, its reply, WRITE and its reply each take |Normal(10, 2)| ms. Only the arrival of a WRITE changes
// anything, so only that is an event: two messages in a row are one draw of Normal(20, sqrt 8), and a WRITE
// finds the version that its READ found if none has succeeded between the two.
// No event is further away than the cap and some messages, so a ring of short, sorted lists holds them all.
import { Sfc32 } from "../../src/core/random"
import { countSecond } from "./sim"

export const ROW_STRATEGIES = [
    "none",
    "exponential",
    "equal",
    "full",
    "decorrelated",
] as const
export type RowStrategy = (typeof ROW_STRATEGIES)[number]

/** The sizes that the original simulates, and how often. */
export const ROW_SIZES = Array.from({ length: 19 }, (_, i) => 10 * (i + 1))
export const ROW_RUNS = 100

const BASE_MS = 5
const CAP_MS = 2000
const MEAN_MS = 10
const DEVIATION_MS = 2

export interface RowRun {
    /** WRITEs that arrived. */
    calls: number
    /** When each client had its last reply, ms, ascending. */
    doneMs: Float64Array
    /** WRITEs in the fullest second. */
    peakPerSecond: number
}

/** Equally likely values of a message's time are looked up: so many of them, a power of two. */
const QUANTILE_BITS = 14
const QUANTILES = quantiles(1 << QUANTILE_BITS)

/** Times of a message, and of two in a row, ms. */
const ONE_MS = QUANTILES.map(z => Math.abs(MEAN_MS + DEVIATION_MS * z))
const TWO_MS = QUANTILES.map(z =>
    Math.abs(2 * MEAN_MS + DEVIATION_MS * Math.SQRT2 * z),
)

/** Of ONE_MS or TWO_MS. */
function anyOf(random: Sfc32): number {
    return random.next() >>> (32 - QUANTILE_BITS)
}

/** Powers of two; the span is longer than the cap and any two messages. */
const SPAN_MS = 2048 * 2
const SLOTS_PER_MS = 16

/** The standard normal distribution as equally likely values: the middle of each slice. */
function quantiles(count: number): Float64Array {
    const table = new Float64Array(count)
    const stepZ = 1e-4
    let z = -6
    let below = 0
    for (let i = 0; i < count; ++i) {
        const wanted = (i + 0.5) / count
        while (below < wanted) {
            const middle = z + stepZ / 2
            below +=
                (Math.exp((-middle * middle) / 2) / Math.sqrt(2 * Math.PI)) *
                stepZ
            z += stepZ
        }
        table[i] = z
    }
    return table
}

/** So many clients; may be run again and again. */
export class RowSim {
    private readonly ring: Ring
    /** When a client's READ arrives, or arrived. */
    private readonly readMs: Float64Array
    private readonly attempts: Int32Array
    private readonly sleepMs: Float64Array

    constructor(private readonly clients: number) {
        this.ring = new Ring(clients)
        this.readMs = new Float64Array(clients)
        this.attempts = new Int32Array(clients)
        this.sleepMs = new Float64Array(clients)
    }

    /** Once, from time 0 until the last client is done. */
    run(strategy: RowStrategy, seed: number): RowRun {
        const { clients, ring, readMs, attempts, sleepMs } = this
        const { timeMs } = ring
        const random = new Sfc32(seed, seed >>> 8, 7, 1)
        const doneMs = new Float64Array(clients)
        const perSecond: number[] = []
        let done = 0
        let changedMs = 0
        let calls = 0
        attempts.fill(0)
        sleepMs.fill(BASE_MS)
        ring.restart()
        for (let i = 0; i < clients; ++i) {
            readMs[i] = ONE_MS[anyOf(random)]
            timeMs[i] = readMs[i] + TWO_MS[anyOf(random)]
            ring.add(i)
        }
        while (done < clients) {
            const i = ring.take()
            const nowMs = timeMs[i]
            calls++
            countSecond(perSecond, nowMs)
            if (readMs[i] >= changedMs) {
                changedMs = nowMs
                doneMs[done++] = nowMs + ONE_MS[anyOf(random)]
                continue
            }
            drawSleep(strategy, ++attempts[i], sleepMs, i, random)
            readMs[i] = nowMs + TWO_MS[anyOf(random)] + sleepMs[i]
            timeMs[i] = readMs[i] + TWO_MS[anyOf(random)]
            ring.add(i)
        }
        const peakPerSecond = perSecond.reduce((a, b) => Math.max(a, b), 0)
        return { calls, doneMs: doneMs.sort(), peakPerSecond }
    }
}

/** From [0, 1). */
function uniform(random: Sfc32): number {
    return (random.next() >>> 0) / 2 ** 32
}

/** Leaves the client's wait after that attempt in `sleepMs`: a number handed back would be a new object each time. */
function drawSleep(
    strategy: RowStrategy,
    attempt: number,
    sleepMs: Float64Array,
    client: number,
    random: Sfc32,
) {
    if (strategy === "none") {
        sleepMs[client] = 0
        return
    }
    if (strategy === "decorrelated") {
        const room = sleepMs[client] * 3 - BASE_MS
        sleepMs[client] = Math.min(CAP_MS, BASE_MS + uniform(random) * room)
        return
    }
    const e = attempt >= 9 ? CAP_MS : Math.min(CAP_MS, BASE_MS << attempt)
    if (strategy === "exponential") sleepMs[client] = e
    else if (strategy === "full") sleepMs[client] = uniform(random) * e
    else sleepMs[client] = e / 2 + (uniform(random) * e) / 2
}

/** Events in the order of their times, one for each client at most, none further away than SPAN_MS. */
class Ring {
    readonly timeMs: Float64Array
    private readonly heads = new Int16Array(SPAN_MS * SLOTS_PER_MS).fill(-1)
    /** A bit for each slot that has an event. */
    private readonly used = new Int32Array((SPAN_MS * SLOTS_PER_MS) / 32)
    private readonly next: Int16Array
    private word = 0

    constructor(clients: number) {
        this.timeMs = new Float64Array(clients)
        this.next = new Int16Array(clients)
    }

    /** From time 0 again; the ring is empty. */
    restart() {
        this.word = 0
    }

    /** Sets a client's event, at its `timeMs`. */
    add(i: number) {
        const { heads, next, timeMs } = this
        const atMs = timeMs[i]
        const slot = (atMs * SLOTS_PER_MS) & (heads.length - 1)
        this.used[slot >> 5] |= 1 << (slot & 31)
        const head = heads[slot]
        if (head < 0 || timeMs[head] > atMs) {
            next[i] = head
            heads[slot] = i
            return
        }
        let before = head
        while (next[before] >= 0 && timeMs[next[before]] <= atMs)
            before = next[before]
        next[i] = next[before]
        next[before] = i
    }

    /** The earliest event's client. There has to be one. */
    take(): number {
        const { heads, used, next } = this
        while (used[this.word] === 0)
            this.word = (this.word + 1) & (used.length - 1)
        const bits = used[this.word]
        const bit = 31 - Math.clz32(bits & -bits)
        const slot = this.word * 32 + bit
        const i = heads[slot]
        heads[slot] = next[i]
        if (next[i] < 0) used[this.word] &= ~(1 << bit)
        return i
    }
}

export interface RowResult {
    strategy: RowStrategy
    clients: number
    /** Means over ROW_RUNS runs. */
    calls: number
    timeMs: number
    p50Ms: number
    p99Ms: number
    peakPerSecond: number
}

/** As often as the original, each run with a seed of its own. */
export function rowResult(
    strategy: RowStrategy,
    clients: number,
    seed: number,
): RowResult {
    const sum = { calls: 0, timeMs: 0, p50Ms: 0, p99Ms: 0, peakPerSecond: 0 }
    const sim = new RowSim(clients)
    for (let run = 0; run < ROW_RUNS; ++run) {
        const { calls, doneMs, peakPerSecond } = sim.run(
            strategy,
            seed * ROW_RUNS + run,
        )
        sum.calls += calls / ROW_RUNS
        sum.timeMs += doneMs[clients - 1] / ROW_RUNS
        sum.p50Ms += doneMs[Math.ceil(0.5 * clients) - 1] / ROW_RUNS
        sum.p99Ms += doneMs[Math.ceil(0.99 * clients) - 1] / ROW_RUNS
        sum.peakPerSecond += peakPerSecond / ROW_RUNS
    }
    return { strategy, clients, ...sum }
}
