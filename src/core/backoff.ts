// When to try again: the reconnect policy. Pure: it takes the time, a random source and what went
// wrong, and answers with a number of milliseconds. The device and the fleet simulator drive this same class.
//
// Why it is like this. N devices lose a broker that completes C connections a second. No policy is back
// before M = N/C seconds; and a broker whose queue is longer than its clients' patience serves connections
// that nobody waits for any more, for good, as long as attempts arrive faster than C. So a ceiling that stops at a
// fixed cap is a time bomb for a big enough fleet, and one that always climbs makes a lone device wait an hour for
// a cable. What tells the two apart is evidence: a broker that is down refuses or is silent; one that is
// overloaded takes the TCP connection and then stalls, says busy, or closes it.
//
// Adaptive (spreadMs 0, the default)
//
// | when                                        | ceiling                                             | wait     |
// |---------------------------------------------|-----------------------------------------------------|----------|
// | begin: loss, start, Wi-Fi back, hold's end  | min + below(min); proven no; CONNACK wait short     | draw     |
// | failed                                      | CONNACK wait long, then as below                    |          |
// | failed, stalled or busy or reset            | proven, then as below                               |          |
// | failed, not proven, 2 ceiling <= cap        | doubled (but see silence)                           | draw     |
// | failed, not proven, otherwise               | kept: each device's own, in (cap/2, cap]            | draw     |
// | failed, proven                              | doubled, at most overloadCap                        | draw     |
// | failed in the slow lane                     | untouched; its own, from slowMin to slowCap         | its own  |
// | failed in the stop lane, or attempts used up | untouched                                           | -1       |
// | session ended, not a flap                   | begin                                               |          |
// | session ended, a flap                       | as if CONNACK had not come: failed, evidence reset, |          |
// |                                             | or refused where our own network or socket failed   |          |
//
// A flap is a session younger than stable; once overload is proven, one younger than max(10 min, ceiling) too.
//
// The random first ceiling is drawn once for an outage and only ever doubled. It keeps the phases of a fleet
// apart through every doubling, which is why 10 % of jitter on top is enough.
//
// Silence. Where a refusal takes milliseconds, a broker that says nothing takes the whole dial timeout, ours or the system's,
// and the attempt is most of the pause. So after an attempt longer than min that met nobody (refused or silent),
// - the wait counts from its start: under the ceiling c it is drawn from what the attempt left of it, e = max(min, c - took);
// - the first time in a row, and when c < took, c is doubled until it is no shorter than the attempt: a shorter one
//   spreads nothing. One that refusals have made longer is halved to less than twice the attempt, unless overload is proven;
// - four attempts are made under a ceiling before it is doubled. A broker that drops what it can't queue is silent, too: that
//   costs it nothing, and a fleet that asks again soon keeps it busy. (Not so for attempts that stall: a queue longer than
//   its clients' patience has to be left alone, and a simulated fleet that is as slow to give way there never comes back.)
//
// | jitter       | draw under the ceiling c; e = c, but after silence max(min, c - took)                     |
// |--------------|-------------------------------------------------------------------------------------------|
// | proportional | e + below(c/10 + 1)                                                                       |
// | equal        | e - e/2 + below(e/2 + 1)                                                                  |
// | full         | 1 + below(e)                                                                              |
// | decorrelated | first e, then min + below(min(3 last wait, e) - min + 1)                                  |
// | none         | e, and the first ceiling is min, doubled up to the cap: exponential with no randomness    |
//
// Fitted (spreadMs > 0), for a fleet that knows N/C: the ceiling is W = max(min, spread)
//
// | when                      | W                                     | wait                                    |
// |---------------------------|---------------------------------------|-----------------------------------------|
// | begin                     | max(min, spread)                      | min + below(W)                          |
// | failed, not proven        | kept                                  | W + below(W/10 + 1), after silence      |
// | failed, overload proven   | the first time + below(W/2 + 1)       | max(min, W - took) + below(W/10 + 1)    |
// | failed after that         | times 3/2, at most overloadCap        |                                         |
//
// The cap does not apply to a spread, overloadCap does. Fitted always draws as written; `jitter` has no say.
//
// Fast first (fastFirst, with a spread): the first wait after losing a stable session is min + below(min), for the
// device that lost its connection alone and need not wait W/2. When that attempt fails, the wait is the spread's first,
// min + below(W). A program start and a network that is back are never fast: whole fleets have those together.
//
// Where the design leaves room:
// - Bounds are true bounds: every wait is an integer in [1, bound], where the bound is cap, overloadCap once
//   overload is proven or for a spread, slowCap in the slow lane. Where jitter comes on top of the ceiling, the
//   ceiling's own limit is the largest c with c + c/10 <= bound. So with min near its cap a wait can be up to a tenth
//   below min, in the slow lane too: jitter matters more.
// - Near a limit the range of a draw is narrowed; a drawn value is never cut to the limit, where a fleet would pile up.
// - decorrelated waits c at first: drawing under c, itself a draw from the same min, would bring a third of a fleet
//   back in the first tenth of the window. And it draws from 9/10 of the ceiling where min is higher than that: a
//   ceiling kept next to min would leave it nothing to draw.
// - Every failure makes the next CONNACK wait long, `refused` too: a broker that was down has the whole fleet to serve when
//   it is back. Devices that stay in its queue are served once, and a queue shorter than their patience can't collapse.
// - Nothing is reset at CONNACK. Whether the session was stable is known when it ends, and until then no
//   delay is asked for: the reset and its taking back come to the same as deciding then.
// - A stable session that the broker ends with a reason of its own is a loss, and then that reason counts: busy proves
//   overload (stalled too: a broker that answers pings but no PUBLISH would else be asked every half minute for ever), and the slow lane (taken over, banned) is not answered with a reconnect in a second.
// - Two devices with one client id throw each other out in sessions that are as long as the other's wait, and so count as
//   stable. Therefore the slow lane's waits go on growing from one session to the next while a session that ends there
//   was shorter than twice slowCap: both come to slowCap, and stay there.
// - `attempts` counts since the last begin. A flap doesn't begin anything, so it counts on.

import { below, div, MAX_INT } from "./int"
import type { Random } from "./random"
import type { Evidence, Lane, Verdict } from "./verdict"

/** How a wait is drawn under the ceiling; see the table at the top of this file. */
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

/** So many silent attempts are made under a ceiling no shorter than they. */
const SILENCES = 4

/** Once overload was proven, a session has to last this long to count as stable. */
const PROVEN_STABLE_MS = 600000

/**
 * One connection's backoff. Call begin() for the first wait, failed() after each failed attempt, accepted() at
 * CONNACK 0 and ended() when that session is over; each wait returned is in milliseconds. The policy is shared,
 * not copied, and has passed checkPolicy. No method allocates.
 */
export class Backoff {
    /** adopt() replaces it. */
    policy: Policy
    /** Failures in a row since begin. */
    attempts: number
    /** Under which the last wait was drawn; W when fitted. */
    ceilingMs: number
    /** Overload was proven in this outage. */
    proven: boolean
    /** How long the next attempt waits for CONNACK. */
    connackWaitMs: number
    random: Random
    /** The slow lane's ceiling; 0 while this outage has not been there. */
    slowMs: number
    /** The last wait drawn, for decorrelated; 0 before the first. */
    lastMs: number
    /** When CONNACK came; -1 when there is no session. */
    acceptedMs: number
    /** The coming attempt is the one before the spread. */
    fast: boolean
    /** Silent attempts in a row under this ceiling. */
    silences: number

    constructor(policy: Policy, random: Random) {
        this.policy = policy
        this.random = random
        this.attempts = 0
        this.proven = false
        this.connackWaitMs = policy.connackMs
        this.slowMs = 0
        this.lastMs = 0
        this.acceptedMs = -1
        this.fast = false
        this.silences = 0
        this.ceilingMs = firstCeiling(this)
    }

    /** The first wait of an outage: after a loss, a program start, Wi-Fi back, a hold's end. Forgets everything before. */
    begin(): number {
        restart(this)
        return drawFirst(this)
    }

    /**
     * An attempt failed, `tookMs` after it began: the wait from now until the next one, or -1 when there is to be none.
     */
    failed(verdict: Verdict, tookMs: number): number {
        return fail(this, verdict, verdict.evidence, tookMs)
    }

    /** CONNACK with code 0 came. */
    accepted(nowMs: number): void {
        this.acceptedMs = nowMs
    }

    /** The session that accepted() began is over: the wait until the next attempt, or -1 when there is to be none. */
    ended(nowMs: number, verdict: Verdict): number {
        const flap = this.isFlap(nowMs)
        const lane = verdict.lane
        if (flap) {
            // What was our own doing (a native, the network) stays refused.
            if (lane === "slow" || verdict.evidence === "refused")
                return this.failed(verdict, 0)
            return fail(this, verdict, "reset", 0)
        }
        if (lane === "slow" || lane === "stop" || isOverload(verdict)) {
            if (!isSlowAgain(this, nowMs, lane)) restart(this)
            return this.failed(verdict, 0)
        }
        restart(this)
        const p = this.policy
        this.fast = p.fastFirst && p.spreadMs > 0
        return this.fast
            ? span(p.minMs, p.minMs, this.ceilingMs, this.random)
            : drawFirst(this)
    }

    /** The operator said "go now": the next attempt is made at once, and what follows it starts at the cap or below. */
    retryNow(): void {
        const p = this.policy
        this.proven = false
        if (p.spreadMs > 0) {
            this.ceilingMs = firstCeiling(this)
            return
        }
        // Halved, not cut: devices that all get the same command keep their own phases.
        const limit = limitOf(p.jitter, p.capMs)
        while (this.ceilingMs > limit) this.ceilingMs >>= 1
        if (this.ceilingMs < p.minMs) this.ceilingMs = firstCeiling(this)
    }

    /**
     * Another policy from now on. A wait that runs stays as it was drawn, and the outage goes on with what it has proven: news
     * at every connection must not keep the waits from growing. The ceiling comes within the new policy's bounds.
     * @devsWhenUsed
     */
    adopt(policy: Policy): void {
        this.policy = policy
        this.lastMs = 0
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
        return (
            this.proven && (ageMs < PROVEN_STABLE_MS || ageMs < this.ceilingMs)
        )
    }
}

/** The slow lane's waits go on growing: the session was no longer than what two of them may take. */
function isSlowAgain(b: Backoff, nowMs: number, lane: Lane): boolean {
    const { slowCapMs } = b.policy
    return (
        lane === "slow" &&
        b.slowMs > 0 &&
        nowMs - b.acceptedMs - slowCapMs < slowCapMs
    )
}

/** The start values. */
function restart(b: Backoff) {
    b.attempts = 0
    b.proven = false
    b.connackWaitMs = b.policy.connackMs
    b.slowMs = 0
    b.lastMs = 0
    b.acceptedMs = -1
    b.fast = false
    b.silences = 0
    b.ceilingMs = firstCeiling(b)
}

function firstCeiling(b: Backoff): number {
    const p = b.policy
    if (p.spreadMs > 0) {
        const limit = limitOf("proportional", p.overloadCapMs)
        const w = p.spreadMs > p.minMs ? p.spreadMs : p.minMs
        return w > limit ? limit : w
    }
    const limit = limitOf(p.jitter, p.capMs)
    const low = p.jitter === "decorrelated" ? lowerEnd(p.minMs, limit) : p.minMs
    return firstOf(low, limit, p.jitter, b.random)
}

function fail(
    b: Backoff,
    verdict: Verdict,
    evidence: Evidence,
    tookMs: number,
): number {
    const p = b.policy
    b.acceptedMs = -1
    b.attempts++
    if (verdict.lane === "stop") return -1
    if (p.maxAttempts > 0 && b.attempts >= p.maxAttempts) return -1
    b.connackWaitMs = p.connackOverloadMs
    if (verdict.lane === "slow") return drawSlow(b)
    const silentMs = tookMs > p.minMs && !provesOverload(evidence) ? tookMs : 0
    grow(b, evidence, silentMs)
    if (!b.fast) return draw(b, silentMs)
    b.fast = false
    return drawFirst(b)
}

/** The ceiling after a failed attempt, of `silentMs` of silence. */
function grow(b: Backoff, evidence: Evidence, silentMs: number) {
    const p = b.policy
    const known = b.proven
    if (provesOverload(evidence)) b.proven = true
    if (p.spreadMs > 0) {
        if (b.proven) b.ceilingMs = widen(b, known)
        return
    }
    if (silentMs === 0) b.silences = 0
    else if (b.silences > 0 && silentMs <= b.ceilingMs) {
        if (++b.silences <= SILENCES) return
        b.silences = 1
    } else {
        b.silences = 1
        b.ceilingMs = fit(b, silentMs)
        return
    }
    b.ceilingMs = doubled(b, b.ceilingMs, limitNow(b), b.proven)
}

/** The ceiling, doubled or halved to between once and twice the silence; never halved once overload is proven. */
function fit(b: Backoff, silentMs: number): number {
    const limit = limitNow(b)
    let c = b.ceilingMs
    while (c < silentMs && c <= limit - c) c += c
    while (!b.proven && c >> 1 >= silentMs) c >>= 1
    return c
}

/** What no ceiling may exceed now. */
function limitNow(b: Backoff): number {
    const p = b.policy
    if (p.spreadMs > 0) return limitOf("proportional", p.overloadCapMs)
    return limitOf(p.jitter, b.proven ? p.overloadCapMs : p.capMs)
}

/** Twice the ceiling where the limit allows; else the limit, or the ceiling it has. */
function doubled(
    b: Backoff,
    ceilingMs: number,
    limitMs: number,
    toLimit: boolean,
) {
    if (ceilingMs <= limitMs - ceilingMs) return ceilingMs + ceilingMs
    if (toLimit || b.policy.jitter === "none" || ceilingMs > limitMs)
        return limitMs
    return ceilingMs
}

/** The next W once overload is proven. */
function widen(b: Backoff, known: boolean): number {
    const limit = limitOf("proportional", b.policy.overloadCapMs)
    const w = b.ceilingMs
    if (!known) return span(w, (w >> 1) + 1, limit, b.random)
    const wider = w + (w >> 1)
    return wider > limit ? limit : wider
}

/** The first wait under the ceiling. */
function drawFirst(b: Backoff): number {
    const p = b.policy
    if (p.spreadMs > 0)
        return span(p.minMs, b.ceilingMs, p.overloadCapMs, b.random)
    return draw(b, 0)
}

/** A wait under the ceiling, of which silence has already taken so much. */
function draw(b: Backoff, silentMs: number): number {
    const p = b.policy
    const c = b.ceilingMs
    const lowMs = p.minMs < c ? p.minMs : c
    const e = c - silentMs > lowMs ? c - silentMs : lowMs
    const half = e >> 1
    const jitter = p.spreadMs > 0 ? "proportional" : p.jitter
    switch (jitter) {
        case "equal":
            b.lastMs = e - half + below(half + 1, b.random)
            break
        case "full":
            b.lastMs = 1 + below(e, b.random)
            break
        case "decorrelated":
            b.lastMs = drawDecorrelated(b, e)
            break
        default:
            b.lastMs = e - c + stretched(c, jitter, b.random)
    }
    return b.lastMs
}

function drawDecorrelated(b: Backoff, c: number): number {
    const last = b.lastMs
    if (last === 0) return c
    const high = last > div(c, 3) ? c : last + last + last
    return span(lowerEnd(b.policy.minMs, c), MAX_INT, high, b.random)
}

/** A wait in the slow lane, which all strategies but none draw alike, so that none is shorter than slowMin. */
function drawSlow(b: Backoff): number {
    const p = b.policy
    const jitter = p.jitter === "none" ? "none" : "proportional"
    const limit = limitOf(jitter, p.slowCapMs)
    b.slowMs =
        b.slowMs === 0
            ? firstOf(p.slowMinMs, limit, jitter, b.random)
            : doubled(b, b.slowMs, limit, false)
    return stretched(b.slowMs, jitter, b.random)
}

/** Whether a stable session ended for overload. A close doesn't say so: brokers restart. */
function isOverload({ evidence }: Verdict): boolean {
    return evidence === "busy" || evidence === "stalled"
}

/** Whether the evidence shows a broker with too much to do, and not one that is away. */
function provesOverload(evidence: Evidence): boolean {
    return evidence === "stalled" || evidence === "busy" || evidence === "reset"
}

/** The largest ceiling under which no draw exceeds the bound. */
function limitOf(jitter: Jitter, boundMs: number): number {
    if (jitter !== "proportional") return boundMs
    // The largest c with c + floor(c / 10) <= bound.
    const c = boundMs - div(boundMs, 11)
    return c + div(c, 10) > boundMs ? c - 1 : c
}

/** Where decorrelated draws from: min, or lower so that a tenth of the ceiling is left to draw in. */
function lowerEnd(minMs: number, ceilingMs: number): number {
    const low = ceilingMs - div(ceilingMs, 10)
    return minMs < low ? minMs : low
}

/** A first ceiling from min .. 2 min - 1, within the limit. */
function firstOf(
    minMs: number,
    limitMs: number,
    jitter: Jitter,
    random: Random,
): number {
    // none gets a range of one value, which takes no random number.
    return span(minMs, jitter === "none" ? 1 : minMs, limitMs, random)
}

/** low + below(count), the range narrowed so that it ends at high. */
function span(
    low: number,
    count: number,
    high: number,
    random: Random,
): number {
    if (low >= high) return high
    const room = high - low + 1
    return low + below(count < room ? count : room, random)
}

/** The ceiling and, except for none, up to a tenth on top. */
function stretched(ceilingMs: number, jitter: Jitter, random: Random): number {
    if (jitter === "none") return ceilingMs
    return ceilingMs + below(div(ceilingMs, 10) + 1, random)
}
