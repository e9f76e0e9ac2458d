// The numbers of a reconnect policy, what they are by default and in which ranges. Pure. What they do is in the tables of
// backoff.ts.
import { MAX_INT } from "./int"

/** How a wait is drawn under the ceiling; see the tables of backoff.ts. */
export type Jitter = "proportional" | "equal" | "full" | "decorrelated" | "none"

/** The numbers of a reconnect policy. Milliseconds, integers up to 2^31 - 1; checkPolicy has the ranges. */
export interface Policy {
    /** The first ceiling is drawn from min .. 2 min. */
    minMs: number
    /** No wait is longer, until overload is proven. */
    capMs: number
    /** No wait is longer, ever (but see the slow lane). */
    overloadCapMs: number
    /** 0: adaptive. Otherwise fitted: the time over which the fleet spreads, margin N/C. */
    spreadMs: number
    /** Fitted: one attempt soon after the loss of a stable session, before the spread. Adaptive is like that anyway. */
    fastFirst: boolean
    /** How adaptive draws. */
    jitter: Jitter
    /** How long an attempt waits for CONNACK. */
    connackMs: number
    /** The same after a failure: a broker that is just back, or overloaded, answers late, and an attempt given up is served in vain. */
    connackOverloadMs: number
    /** How long an attempt waits for the socket to open. */
    dialMs: number
    /** A session younger than this is a failed attempt. */
    stableMs: number
    /** The slow lane's shortest wait. */
    slowMinMs: number
    /** The slow lane's longest wait. */
    slowCapMs: number
    /** Give up after so many failures since begin; 0: never. */
    maxAttempts: number
}

/** The defaults: adaptive, 1 s to 60 s, to 1 h once overload is proven, for ever. A new object each time. */
export function defaultPolicy(): Policy {
    return {
        minMs: 1000,
        capMs: 60000,
        overloadCapMs: 3600000,
        spreadMs: 0,
        fastFirst: false,
        jitter: "proportional",
        connackMs: 10000,
        connackOverloadMs: 30000,
        dialMs: 30000,
        stableMs: 10000,
        slowMinMs: 300000,
        slowCapMs: 3600000,
        maxAttempts: 0,
    }
}

/**
 * Throws RangeError, naming the setting, its value and its range, when a policy is not one that Backoff keeps its
 * promises for: not an integer, outside its range, out of order, or a jitter that doesn't exist.
 */
export function checkPolicy(p: Policy): void {
    checkRange("overloadCapMs", p.overloadCapMs, 1, MAX_INT)
    checkRange("capMs", p.capMs, 1, p.overloadCapMs)
    checkRange("minMs", p.minMs, 1, p.capMs)
    checkRange("spreadMs", p.spreadMs, 0, p.overloadCapMs)
    checkRange("connackOverloadMs", p.connackOverloadMs, 1, MAX_INT)
    checkRange("connackMs", p.connackMs, 1, p.connackOverloadMs)
    checkRange("dialMs", p.dialMs, 1, MAX_INT)
    checkRange("stableMs", p.stableMs, 0, MAX_INT)
    checkRange("slowCapMs", p.slowCapMs, 1, MAX_INT)
    checkRange("slowMinMs", p.slowMinMs, 1, p.slowCapMs)
    checkRange("maxAttempts", p.maxAttempts, 0, MAX_INT)
    if (p.fastFirst !== true && p.fastFirst !== false)
        throw new RangeError(
            `fastFirst ${p.fastFirst} is not one of true, false`,
        )
    switch (p.jitter) {
        case "proportional":
        case "equal":
        case "full":
        case "decorrelated":
            return
        case "none":
            if (p.spreadMs === 0) return
            throw new RangeError(
                `spreadMs ${p.spreadMs} with jitter none is not 0: a spread is random`,
            )
        default:
            throw new RangeError(
                `jitter ${p.jitter} is not one of proportional, equal, full, decorrelated, none`,
            )
    }
}

function checkRange(name: string, value: number, low: number, high: number) {
    if ((value | 0) !== value || value < low || value > high)
        throw new RangeError(
            `${name} ${value} is not an integer in ${low}..${high}`,
        )
}
