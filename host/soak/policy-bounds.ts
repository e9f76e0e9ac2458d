// The policy's numbers as ranges, from the table at the top of src/core/backoff.ts, in other words than
// its own: what a ceiling or a wait may be in each situation. Shares no code with it but the type.
import type { Policy } from "../../src/core/policy"

/** From and to, both possible. */
export type Range = [low: number, high: number]

export const isIn = (value: number, [low, high]: Range) =>
    value >= low && value <= high

/** Evidence of a broker with too much to do. */
export const proves = (evidence: string) =>
    evidence === "stalled" || evidence === "busy" || evidence === "reset"

/** Between closing a socket and opening the next; a wait may be stretched to it. */
export const REOPEN_MS = 100

/** Between giving up a dial and the next. */
export const REDIAL_MS = 1000

/** The largest ceiling under which no wait exceeds the bound. */
function limitOf(jitter: string, boundMs: number): number {
    if (jitter !== "proportional") return boundMs
    let c = Math.ceil(boundMs / 1.1)
    while (c + Math.floor(c / 10) > boundMs) --c
    while (c + 1 + Math.floor((c + 1) / 10) <= boundMs) ++c
    return c
}

/** An outage's first ceiling. */
export function firstCeiling(p: Policy): Range {
    if (p.spreadMs > 0) {
        const limit = limitOf("proportional", p.overloadCapMs)
        const w = Math.min(Math.max(p.minMs, p.spreadMs), limit)
        return [w, w]
    }
    const limit = limitOf(p.jitter, p.capMs)
    const low = Math.min(p.minMs, Math.floor(limit * 0.9))
    const high = p.jitter === "none" ? p.minMs : 2 * p.minMs - 1
    return [low, Math.min(high, limit)]
}

/** An outage's first wait under its ceiling. */
export function firstWait(p: Policy, ceilingMs: number): Range {
    return p.spreadMs > 0
        ? [p.minMs, p.minMs + ceilingMs]
        : waitUnder(p, ceilingMs, false, 0)
}

/** How much of its attempt counts as silence: all of one longer than min that met nobody. */
export const silence = (p: Policy, evidence: string, tookMs: number) =>
    tookMs > p.minMs && !proves(evidence) ? tookMs : 0

/** A wait under a ceiling, after a failure, of which silence has taken so much already. */
export function waitUnder(
    p: Policy,
    ceilingMs: number,
    proven: boolean,
    silentMs: number,
): Range {
    const left = Math.max(Math.min(p.minMs, ceilingMs), ceilingMs - silentMs)
    const jitter = p.spreadMs > 0 ? "proportional" : p.jitter
    const [low, high]: Range = {
        proportional: [left, left + Math.floor(ceilingMs / 10)] as Range,
        equal: [left - Math.floor(left / 2), left] as Range,
        full: [1, left] as Range,
        decorrelated: [
            Math.min(p.minMs, left - Math.floor(left / 10)),
            left,
        ] as Range,
        none: [left, left] as Range,
    }[jitter]
    const bound = proven || p.spreadMs > 0 ? p.overloadCapMs : p.capMs
    const stretchedMs = silentMs > 0 ? REDIAL_MS : REOPEN_MS
    return [low, Math.max(Math.min(high, bound), stretchedMs)]
}

/**
 * The next ceiling after one before (-1: a first one that was not seen), and what is proven by now.
 */
export function nextCeiling(
    p: Policy,
    beforeMs: number,
    wasProven: boolean,
    proven: boolean,
): Range {
    const before = ceilings(p, beforeMs)
    if (p.spreadMs > 0) {
        const limit = limitOf("proportional", p.overloadCapMs)
        const [low, high] = !proven ? [1, 1] : wasProven ? [1.5, 1.5] : [1, 1.5]
        return [
            Math.min(Math.floor(before[0] * low), limit),
            Math.min(Math.floor(before[1] * high), limit),
        ]
    }
    const limit = limitOf(p.jitter, proven ? p.overloadCapMs : p.capMs)
    const next = (c: number) => {
        if (2 * c > limit)
            return proven || p.jitter === "none" || c > limit ? limit : c
        return 2 * c
    }
    return over(before, next)
}

/** What a ceiling was, -1 for a first one that was not seen. */
const ceilings = (p: Policy, ms: number): Range =>
    ms < 0 ? firstCeiling(p) : [ms, ms]

/** From and to of what becomes of each ceiling; the larger need not become the larger. */
function over([from, to]: Range, next: (c: number) => number): Range {
    let low = Infinity
    let high = 0
    for (let c = from; c <= to; ++c) {
        const value = next(c)
        low = Math.min(low, value)
        high = Math.max(high, value)
    }
    return [low, high]
}

/** So many silent attempts are made under a ceiling. */
export const SILENCES = 4

/** A ceiling that silence has made to fit: between once and twice the silence, where the limit allows. */
export function fit(
    p: Policy,
    beforeMs: number,
    proven: boolean,
    silentMs: number,
): Range {
    const limit = limitOf(p.jitter, proven ? p.overloadCapMs : p.capMs)
    const one = (from: number) => {
        let c = from
        while (c < silentMs && 2 * c <= limit) c *= 2
        while (!proven && c >= 2 * silentMs) c = Math.floor(c / 2)
        return c
    }
    return over(ceilings(p, beforeMs), one)
}

/** A ceiling, halved until it is one for a broker that is merely down. */
export function halved(p: Policy, ceilingMs: number): number {
    const limit = limitOf(p.jitter, p.capMs)
    let c = ceilingMs
    while (c > limit) c = Math.floor(c / 2)
    return c
}

/** A ceiling after "retry now". */
export function easedCeiling(p: Policy, beforeMs: number): Range {
    const c = halved(p, beforeMs)
    return p.spreadMs > 0 || c < p.minMs ? firstCeiling(p) : [c, c]
}

/** The slow lane's next ceiling after its last one (0: none yet in this outage). */
export function slowCeiling(p: Policy, beforeMs: number): Range {
    const none = p.jitter === "none"
    const limit = limitOf(none ? "none" : "proportional", p.slowCapMs)
    if (beforeMs > 0) {
        const next = 2 * beforeMs <= limit ? 2 * beforeMs : beforeMs
        return [next, none ? Math.max(next, limit) : next]
    }
    const high = none ? p.slowMinMs : 2 * p.slowMinMs - 1
    return [Math.min(p.slowMinMs, limit), Math.min(high, limit)]
}

/** A wait in the slow lane. */
export function slowWait(p: Policy, ceilingMs: number): Range {
    const tenth = p.jitter === "none" ? 0 : Math.floor(ceilingMs / 10)
    return [ceilingMs, ceilingMs + tenth]
}
