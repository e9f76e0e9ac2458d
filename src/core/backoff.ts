// When to try again: the reconnect policy. Adaptive with proportional jitter is in adaptive.ts; here are the other
// strategies, and what holds for all. Pure: it takes the time, a random source and what went
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

import {
    AdaptiveBackoff,
    doubled,
    drawSlow,
    grow,
    limitNow,
    limitOf,
    restart,
    span,
    stretched,
    wait,
} from "./adaptive"
import { below, div, MAX_INT } from "./int"
import type { Policy } from "./policy"
import type { Random } from "./random"

/** `lastMs` while the coming attempt is the one before the spread. */
const FAST = -1

/** Backoff with every strategy that a policy can ask for. */
export class Backoff extends AdaptiveBackoff {
    override begin(lone?: boolean): number {
        const p = this.policy
        restart(this)
        if (lone && p.fastFirst && p.spreadMs > 0) {
            this.lastMs = FAST
            return span(p.minMs, p.minMs, this.ceilingMs, this.random)
        }
        return wait(this, 0)
    }

    override first(): number {
        const { spreadMs, minMs, jitter } = this.policy
        const limit = limitNow(this)
        if (spreadMs > 0) {
            const w = spreadMs > minMs ? spreadMs : minMs
            return w > limit ? limit : w
        }
        // none gets a range of one value, which takes no random number.
        if (jitter === "none") return span(minMs, 1, limit, this.random)
        const low = jitter === "decorrelated" ? lowerEnd(minMs, limit) : minMs
        return span(low, minMs, limit, this.random)
    }

    override limit(boundMs: number): number {
        const { spreadMs, jitter, overloadCapMs } = this.policy
        if (spreadMs > 0) return limitOf(overloadCapMs)
        return jitter === "proportional" ? limitOf(boundMs) : boundMs
    }

    override grow(proves: boolean, silentMs: number) {
        if (this.policy.spreadMs > 0) {
            const known = this.proven
            if (proves) this.proven = true
            if (this.proven) this.ceilingMs = widen(this, known)
        } else grow(this, proves, silentMs)
    }

    override draw(leftMs: number): number {
        const random = this.random
        const ceilingMs = this.ceilingMs
        const { jitter, spreadMs, minMs, overloadCapMs } = this.policy
        const half = leftMs >> 1
        if (spreadMs > 0 && (this.attempts === 0 || this.lastMs === FAST)) {
            this.lastMs = 0
            return span(minMs, ceilingMs, overloadCapMs, random)
        }
        switch (spreadMs > 0 ? "proportional" : jitter) {
            case "equal":
                return leftMs - half + below(half + 1, random)
            case "full":
                return 1 + below(leftMs, random)
            case "decorrelated":
                this.lastMs = drawDecorrelated(this, leftMs)
                return this.lastMs
            case "none":
                return leftMs
            default:
                return leftMs - ceilingMs + stretched(this, ceilingMs)
        }
    }

    /** All strategies but none draw alike there. */
    override slow(): number {
        const { jitter, slowMinMs, slowCapMs } = this.policy
        if (jitter !== "none") return drawSlow(this)
        this.slowMs =
            this.slowMs === 0
                ? span(slowMinMs, 1, slowCapMs, this.random)
                : doubled(this, this.slowMs, slowCapMs, false)
        return this.slowMs
    }
}

/** The part of `startClient` for a policy with a spread or another jitter than proportional. */
export function allStrategies(policy: Policy, random: Random): AdaptiveBackoff {
    return new Backoff(policy, random)
}

/** The next W once overload is proven. */
function widen(b: Backoff, known: boolean): number {
    const limit = limitNow(b)
    const w = b.ceilingMs
    if (!known) return span(w, (w >> 1) + 1, limit, b.random)
    const wider = w + (w >> 1)
    return wider > limit ? limit : wider
}

function drawDecorrelated(b: Backoff, c: number): number {
    const last = b.lastMs
    if (last <= 0) return c
    const high = last > div(c, 3) ? c : last + last + last
    return span(lowerEnd(b.policy.minMs, c), MAX_INT, high, b.random)
}

/** Where decorrelated draws from: min, or lower so that a tenth of the ceiling is left to draw in. */
function lowerEnd(minMs: number, ceilingMs: number): number {
    const low = ceilingMs - div(ceilingMs, 10)
    return minMs < low ? minMs : low
}
