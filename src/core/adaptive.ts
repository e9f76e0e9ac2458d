// Adaptive backoff with proportional jitter: what `defaultPolicy()` asks for, and all that a program carries that names no
// other strategy. Pure. backoff.ts extends it, and has the tables and the reasons of both.

import { below, div } from "./int"
import type { Policy } from "./policy"
import type { Random } from "./random"
import type { Evidence, Lane, Verdict } from "./verdict"

/** So many silent attempts are made under a ceiling no shorter than they. */
const SILENCES = 4

/** Once overload was proven, a session has to last this long to count as stable. */
const PROVEN_STABLE_MS = 600000

/**
 * One connection's backoff. Call begin() for the first wait, failed() after each failed attempt, accepted() at
 * CONNACK 0 and ended() when that session is over; each wait returned is in milliseconds. The policy is shared,
 * not copied, and has passed checkPolicy. No method allocates.
 * @devsWhenUsed
 */
export class AdaptiveBackoff {
    /** adopt() replaces it. */
    policy: Policy
    /** Failures in a row since begin. */
    attempts!: number
    /** Under which the last wait was drawn; W when fitted. */
    ceilingMs!: number
    /** Overload was proven in this outage. */
    proven!: boolean
    /** How long the next attempt waits for CONNACK. */
    connackWaitMs!: number
    random: Random
    /** The slow lane's ceiling; 0 while this outage has not been there. */
    slowMs!: number
    /** For the strategies, 0 since begin: decorrelated's last wait, or less for the one attempt before a spread. */
    lastMs!: number
    /** When CONNACK came; -1 when there is no session. */
    acceptedMs!: number
    /** Silent attempts in a row under this ceiling. */
    silences!: number

    // What a strategy does otherwise. Not methods, which every program would carry.
    /** The first ceiling of an outage. */
    first?(): number
    /** The largest ceiling under which no wait exceeds the bound. */
    limit?(boundMs: number): number
    /** The ceiling after a failed attempt. */
    grow?(proves: boolean, silentMs: number): void
    /** A wait under the ceiling, of which silence has left `leftMs`. */
    draw?(leftMs: number): number
    /** A wait in the slow lane. */
    slow?(): number

    constructor(policy: Policy, random: Random) {
        this.policy = policy
        this.random = random
        restart(this)
    }

    /**
     * The first wait of an outage: after a loss, a program start, Wi-Fi back, a hold's end. Forgets everything before.
     * `_lone`: the loss of a stable session.
     */
    begin(_lone?: boolean): number {
        restart(this)
        return wait(this, 0)
    }

    /**
     * An attempt failed, `tookMs` after it began: the wait from now until the next one, or -1 when there is to be none.
     */
    failed(verdict: Verdict, tookMs: number): number {
        return fail(this, verdict.lane, verdict.evidence, tookMs)
    }

    /** CONNACK with code 0 came. */
    accepted(nowMs: number): void {
        this.acceptedMs = nowMs
    }

    /** The session that accepted() began is over: the wait until the next attempt, or -1 when there is to be none. */
    ended(nowMs: number, verdict: Verdict): number {
        const lane = verdict.lane
        const evidence = verdict.evidence
        const flap = this.isFlap(nowMs)
        if (flap && evidence !== "refused") return fail(this, lane, "reset", 0)
        if (flap) {
            // Our own doing: a native, the network.
        } else if (lane === "slow") {
            // The slow lane's waits go on growing after a session no longer than what two of them may take.
            const slowCapMs = this.policy.slowCapMs
            const moreMs = nowMs - this.acceptedMs - slowCapMs
            if (this.slowMs === 0 || moreMs >= slowCapMs) restart(this)
        } else if (
            lane === "stop" ||
            evidence === "busy" ||
            evidence === "stalled"
        )
            restart(this)
        // A mere close proves nothing here: brokers restart.
        else return this.begin(true)
        return this.failed(verdict, 0)
    }

    /** The operator said "go now": the next attempt is made at once, and what follows it starts at the cap or below. */
    retryNow(): void {
        const p = this.policy
        this.proven = false
        // Halved, not cut: devices that all get the same command keep their own phases.
        const limit = limitNow(this)
        while (this.ceilingMs > limit) this.ceilingMs >>= 1
        if (p.spreadMs > 0 || this.ceilingMs < p.minMs)
            this.ceilingMs = firstCeiling(this)
    }

    /**
     * Another policy from now on. A wait that runs stays as it was drawn, and the outage goes on with what it has proven: news
     * at every connection must not keep the waits from growing. The ceiling comes within the new policy's bounds.
     */
    adopt(policy: Policy): void {
        this.policy = policy
        if (this.lastMs > 0) this.lastMs = 0
        const first = firstCeiling(this)
        const limit = limitNow(this)
        // Halved, not cut, as in retryNow.
        while (this.ceilingMs > limit) this.ceilingMs >>= 1
        if (this.ceilingMs < first) this.ceilingMs = first
    }

    /** Whether a session that ends now is a failed attempt. True without a session, so that no order of calls reconnects at once. */
    isFlap(nowMs: number): boolean {
        if (this.acceptedMs < 0) return true
        const ageMs = nowMs - this.acceptedMs
        if (ageMs < this.policy.stableMs) return true
        if (!this.proven) return false
        if (ageMs < PROVEN_STABLE_MS) return true
        return ageMs < this.ceilingMs
    }
}

/** The start values. */
export function restart(b: AdaptiveBackoff) {
    b.attempts = 0
    b.proven = false
    b.connackWaitMs = b.policy.connackMs
    b.slowMs = 0
    b.lastMs = 0
    b.acceptedMs = -1
    b.silences = 0
    b.ceilingMs = firstCeiling(b)
}

function fail(
    b: AdaptiveBackoff,
    lane: Lane,
    evidence: Evidence,
    tookMs: number,
): number {
    const p = b.policy
    b.acceptedMs = -1
    b.attempts++
    if (lane === "stop") return -1
    if (p.maxAttempts > 0 && b.attempts >= p.maxAttempts) return -1
    b.connackWaitMs = p.connackOverloadMs
    if (lane === "slow") {
        if (b.slow) return b.slow()
        return drawSlow(b)
    }
    // Stalled, busy and reset show a broker with too much to do, and not one that is away.
    const proves = evidence !== "refused" && evidence !== "silent"
    let silentMs = 0
    if (tookMs > p.minMs && !proves) silentMs = tookMs
    if (b.grow) b.grow(proves, silentMs)
    else grow(b, proves, silentMs)
    return wait(b, silentMs)
}

function firstCeiling(b: AdaptiveBackoff): number {
    if (b.first) return b.first()
    const minMs = b.policy.minMs
    return span(minMs, minMs, limitNow(b), b.random)
}

/** What no ceiling may exceed now. */
export function limitNow(b: AdaptiveBackoff): number {
    const p = b.policy
    let boundMs = p.capMs
    if (b.proven) boundMs = p.overloadCapMs
    if (b.limit) return b.limit(boundMs)
    return limitOf(boundMs)
}

/** The ceiling after a failed attempt, of `silentMs` of silence. */
export function grow(b: AdaptiveBackoff, proves: boolean, silentMs: number) {
    if (proves) b.proven = true
    const limit = limitNow(b)
    let c = b.ceilingMs
    if (silentMs === 0) b.silences = 0
    else if (b.silences > 0 && silentMs <= c) {
        if (++b.silences <= SILENCES) return
        b.silences = 1
    } else {
        b.silences = 1
        // Doubled or halved to between once and twice the silence; never halved once overload is proven.
        while (c < silentMs && c <= limit - c) c += c
        while (!b.proven && c >> 1 >= silentMs) c >>= 1
        b.ceilingMs = c
        return
    }
    b.ceilingMs = doubled(b, c, limit, b.proven)
}

/** A wait in the slow lane, so that none is shorter than slowMin. */
export function drawSlow(b: AdaptiveBackoff): number {
    const minMs = b.policy.slowMinMs
    const limit = limitOf(b.policy.slowCapMs)
    if (b.slowMs === 0) b.slowMs = span(minMs, minMs, limit, b.random)
    else b.slowMs = doubled(b, b.slowMs, limit, false)
    return stretched(b, b.slowMs)
}

/** A wait under the ceiling, of which silence has already taken so much. */
export function wait(b: AdaptiveBackoff, silentMs: number): number {
    const c = b.ceilingMs
    let lowMs = b.policy.minMs
    if (lowMs > c) lowMs = c
    let leftMs = c - silentMs
    if (leftMs < lowMs) leftMs = lowMs
    if (b.draw) return b.draw(leftMs)
    return leftMs - c + stretched(b, c)
}

/** Twice the ceiling where the limit allows; else the limit, or the ceiling it has. */
export function doubled(
    b: AdaptiveBackoff,
    ceilingMs: number,
    limitMs: number,
    toLimit: boolean,
): number {
    if (ceilingMs <= limitMs - ceilingMs) return ceilingMs + ceilingMs
    if (ceilingMs > limitMs) return limitMs
    if (toLimit) return limitMs
    if (b.policy.jitter === "none") return limitMs
    return ceilingMs
}

/** The largest ceiling under which no wait, stretched, exceeds the bound. */
export function limitOf(boundMs: number): number {
    // The largest c with c + floor(c / 10) <= bound.
    const c = boundMs - div(boundMs, 11)
    if (c + div(c, 10) > boundMs) return c - 1
    return c
}

/** low + below(count), the range narrowed so that it ends at high. */
export function span(
    low: number,
    count: number,
    high: number,
    random: Random,
): number {
    if (low >= high) return high
    const room = high - low + 1
    if (count > room) count = room
    return low + below(count, random)
}

/** The ceiling and up to a tenth on top. */
export function stretched(b: AdaptiveBackoff, ceilingMs: number): number {
    return ceilingMs + below(div(ceilingMs, 10) + 1, b.random)
}
