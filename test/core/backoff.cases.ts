// Backoff as timelines: what a device waits, from which failures. Golden rows pin every strategy to the
// millisecond, so that a run of the lab or the fleet can be replayed by any later version.
import { Backoff } from "../../src/core/backoff"
import {
    checkPolicy,
    defaultPolicy,
    Jitter,
    Policy,
} from "../../src/core/policy"
import { Random, Sfc32 } from "../../src/core/random"
import type { Evidence, Lane, Verdict } from "../../src/core/verdict"
import { Case, equal, throws } from "../cases"

const MAX = 0x7fffffff

/** Every draw is the lowest of its range. */
class Lowest implements Random {
    next(): number {
        return 0
    }
}

/** For strategies that must not draw at all. */
class Forbidden implements Random {
    next(): number {
        throw new Error("drew a random number")
    }
}

function verdict(lane: Lane, evidence: Evidence): Verdict {
    return { lane, evidence, reason: "test" }
}

const refused = verdict("retry", "refused")
const closed = verdict("overload", "reset")
const slow = verdict("slow", "refused")

/** What a letter of a script stands for; see waits(). */
function step(letter: string): Verdict {
    switch (letter) {
        case "r":
            return refused
        case "s":
            return verdict("retry", "silent")
        case "t":
            return verdict("overload", "stalled")
        case "u":
            return verdict("overload", "busy")
        case "x":
            return closed
        case "l":
            return slow
        default:
            return verdict("stop", "refused")
    }
}

/** How long an attempt in capitals took. */
const LONG_MS = 10000

/**
 * The waits after each letter of a script: b begin, n retry now (no wait); else a failure: r refused, s silent,
 * t stalled, u busy, x reset, l slow lane, p stop. It took no time at all, in capitals LONG_MS.
 */
function waits(backoff: Backoff, script: string): string {
    let out = ""
    for (let i = 0; i < script.length; ++i) {
        if (script[i] === "n") {
            backoff.retryNow()
            continue
        }
        const letter = script[i].toLowerCase()
        const tookMs = letter === script[i] ? 0 : LONG_MS
        const wait =
            letter === "b"
                ? backoff.begin()
                : backoff.failed(step(letter), tookMs)
        out += (out === "" ? "" : " ") + wait
    }
    return out
}

function policyOf(jitter: Jitter): Policy {
    const p = defaultPolicy()
    p.jitter = jitter
    return p
}

function fitted(spreadMs: number): Policy {
    const p = defaultPolicy()
    p.spreadMs = spreadMs
    return p
}

function fastFitted(): Policy {
    const p = fitted(120000)
    p.fastFirst = true
    return p
}

/** Every draw is in the middle of its range. */
class Middle implements Random {
    next(): number {
        return 0x55555555
    }
}

function lowest(
    name: string,
    policy: Policy,
    script: string,
    expected: string,
): Case {
    return {
        name,
        run: () =>
            equal(waits(new Backoff(policy, new Lowest()), script), expected),
    }
}

/** Begin and 39 failures: down is refused throughout; overload is refused 8 times, then stalled. */
function golden(
    policy: Policy,
    seed: number,
    down: string,
    overload: string,
): Case {
    return {
        name: `${policy.spreadMs > 0 ? "fitted" : policy.jitter}, seed ${seed}: the first 40 waits are as ever`,
        run: () => {
            const one = new Backoff(policy, new Sfc32(seed, 0, 0, 1))
            equal(
                waits(one, "brrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"),
                down,
                "down",
            )
            equal(one.proven, false, "proven")
            const two = new Backoff(policy, new Sfc32(seed, 0, 0, 1))
            equal(
                waits(two, "brrrrrrrrttttttttttttttttttttttttttttttt"),
                overload,
                "overload",
            )
            equal(two.proven, true, "proven")
        },
    }
}

/** One failure of a kind after begin: whether it proves overload. The next CONNACK may take longer after any. */
function evidence(letter: string, proven: boolean): Case {
    const connackMs = 30000
    const v = step(letter)
    return {
        name: `${v.evidence} in the ${v.lane} lane ${proven ? "proves overload" : "proves nothing"}; CONNACK then has ${connackMs} ms`,
        run: () => {
            const backoff = new Backoff(defaultPolicy(), new Lowest())
            backoff.begin()
            equal(backoff.connackWaitMs, 10000, "CONNACK wait at first")
            backoff.failed(v, 0)
            equal(backoff.proven, proven, "proven")
            equal(backoff.connackWaitMs, connackMs, "CONNACK wait")
            backoff.failed(refused, 0)
            equal(backoff.proven, proven, "proven later")
            equal(backoff.connackWaitMs, connackMs, "CONNACK wait later")
            backoff.begin()
            equal(backoff.proven, false, "proven in the next outage")
            equal(
                backoff.connackWaitMs,
                10000,
                "CONNACK wait in the next outage",
            )
        },
    }
}

/** A policy that must be refused, by what its message says. */
function invalid(
    name: string,
    change: (p: Policy) => void,
    message: string,
): Case {
    return {
        name: `a policy with ${name} is refused`,
        run: () => {
            const p = defaultPolicy()
            change(p)
            throws(() => checkPolicy(p), message)
        },
    }
}

/** A session of a given age, and the wait after it ends. */
function session(backoff: Backoff, ageMs: number, v: Verdict): number {
    backoff.accepted(5000)
    return backoff.ended(5000 + ageMs, v)
}

function timelines(): Case[] {
    const short = defaultPolicy()
    short.maxAttempts = 3
    const shortCap = defaultPolicy()
    shortCap.capMs = 9000
    const tight = defaultPolicy()
    tight.minMs = tight.capMs
    const equalCaps = policyOf("none")
    equalCaps.overloadCapMs = equalCaps.capMs
    return [
        lowest(
            "a broker that is down is tried after 1, 2, 4, 8, 16, 32 s, and then every 32 s: its own value under the cap",
            defaultPolicy(),
            "brrrrrrrr",
            "1000 2000 4000 8000 16000 32000 32000 32000 32000",
        ),
        lowest(
            "an overloaded broker is given up to an hour",
            defaultPolicy(),
            "btxutrrrrrrrrrr",
            "1000 2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000 2048000 3272728 3272728 3272728",
        ),
        lowest(
            "overload shown at the cap lifts it from there",
            defaultPolicy(),
            "brrrrrrrtr",
            "1000 2000 4000 8000 16000 32000 32000 32000 64000 128000",
        ),
        lowest(
            "silence is not overload",
            defaultPolicy(),
            "bsssssssss",
            "1000 2000 4000 8000 16000 32000 32000 32000 32000 32000",
        ),
        lowest(
            "after silence a wait counts from the start of the attempt, and a ceiling shorter than that is doubled until it is not",
            defaultPolicy(),
            "bSrr",
            "1000 6000 32000 32000",
        ),
        lowest(
            "while silence takes 10 s of each attempt four are made under a ceiling",
            defaultPolicy(),
            "bSSSSSSSSSS",
            "1000 6000 6000 6000 6000 22000 22000 22000 22000 22000 22000",
        ),
        lowest(
            "a ceiling that refusals have made longer is halved to one that fits: a broker that dropped the attempt is back",
            defaultPolicy(),
            "brrrrrSSrSS",
            "1000 2000 4000 8000 16000 32000 6000 6000 32000 6000 6000",
        ),
        lowest(
            "an attempt that stalled or was closed late changes nothing of that: overload doubles, and counts from the end",
            defaultPolicy(),
            "bTXTXT",
            "1000 2000 4000 8000 16000 32000",
        ),
        lowest(
            "a refusal that takes as long, the system's own timeout, is silence",
            defaultPolicy(),
            "bRRRRRsr",
            "1000 6000 6000 6000 6000 22000 32000 32000",
        ),
        lowest(
            "silence of a broker with proven overload is silence all the same, but nothing is halved",
            defaultPolicy(),
            "bTTSSSSStS",
            "1000 2000 4000 6000 6000 6000 6000 22000 64000 54000",
        ),
        lowest(
            "an attempt longer than the cap allows is followed by min",
            shortCap,
            "bSSSS",
            "1000 1000 1000 1000 1000",
        ),
        lowest(
            "equal draws from what the attempt left of the ceiling",
            policyOf("equal"),
            "bSSTT",
            "500 3000 3000 16000 32000",
        ),
        lowest(
            "equal waits at least half of the ceiling",
            policyOf("equal"),
            "brrrrrrr",
            "500 1000 2000 4000 8000 16000 16000 16000",
        ),
        lowest(
            "full waits at least 1 ms",
            policyOf("full"),
            "brrrrrrr",
            "1 1 1 1 1 1 1 1",
        ),
        lowest(
            "decorrelated waits at least min",
            policyOf("decorrelated"),
            "brrrrrrr",
            "1000 1000 1000 1000 1000 1000 1000 1000",
        ),
        {
            name: "none doubles from min to the cap and draws nothing at all",
            run: () =>
                equal(
                    waits(
                        new Backoff(policyOf("none"), new Forbidden()),
                        "brrrrrrrlllllll",
                    ),
                    "1000 2000 4000 8000 16000 32000 60000 60000 300000 600000 1200000 2400000 3600000 3600000 3600000",
                ),
        },
        {
            name: "none goes on to overloadCap once overload is proven",
            run: () =>
                equal(
                    waits(
                        new Backoff(policyOf("none"), new Forbidden()),
                        "brrrrrrrtrrrrrrrn" + "r",
                    ),
                    "1000 2000 4000 8000 16000 32000 60000 60000 120000 240000 480000 960000 1920000 3600000 3600000 3600000 60000",
                ),
        },
        lowest(
            "overloadCap equal to the cap: overload changes nothing",
            equalCaps,
            "btttttttt",
            "1000 2000 4000 8000 16000 32000 60000 60000 60000",
        ),
        lowest(
            "min equal to the cap leaves the last tenth for jitter",
            tight,
            "brrtr",
            "54546 54546 54546 109092 218184",
        ),
        lowest(
            "bad credentials wait 5, 10, 20, 40 min and then each its own, without moving the schedule",
            defaultPolicy(),
            "brllllllrl",
            "1000 2000 300000 600000 1200000 2400000 2400000 2400000 4000 2400000",
        ),
        lowest(
            "a new outage starts the slow lane from 5 min again",
            defaultPolicy(),
            "blllbl",
            "1000 300000 600000 1200000 1000 300000",
        ),
        lowest(
            "what we got wrong ourselves is not tried again",
            defaultPolicy(),
            "bp",
            "1000 -1",
        ),
        lowest(
            "three attempts allowed: the third failure ends it, in any lane",
            short,
            "brrrrbrllb",
            "1000 2000 4000 -1 -1 1000 2000 300000 -1 1000",
        ),
        lowest(
            "fitted: the first wait is anywhere in the spread, and a broker that is down is tried once a spread",
            fitted(120000),
            "brrrr",
            "1000 120000 120000 120000 120000",
        ),
        lowest(
            "fitted: the spread counts from the start of an attempt",
            fitted(120000),
            "bSSTTS",
            "1000 110000 110000 120000 180000 260000",
        ),
        lowest(
            "fitted: an attempt longer than the spread is followed by min",
            fitted(5000),
            "bSS",
            "1000 1000 1000",
        ),
        lowest(
            "fitted: overload widens the spread by half each time, up to overloadCap",
            fitted(120000),
            "brttrrrrrrrrrr",
            "1000 120000 120000 180000 270000 405000 607500 911250 1366875 2050312 3075468 3272728 3272728 3272728",
        ),
        lowest(
            "fitted, fast first: a start and a network that is back are never fast",
            fastFitted(),
            "brr",
            "1000 120000 120000",
        ),
        lowest(
            "fitted: a spread below min is min",
            fitted(10),
            "brr",
            "1000 1000 1000",
        ),
    ]
}

function sessions(): Case[] {
    return [
        {
            name: "CONNACK, then FIN, 50 times: the gaps still grow, to overloadCap",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                let last = backoff.begin()
                for (let i = 0; i < 50; ++i) {
                    const wait = session(backoff, 20, closed)
                    equal(
                        wait > last || wait === 3272728,
                        true,
                        `gap ${i} grew`,
                    )
                    last = wait
                }
                equal(last, 3272728)
                equal(backoff.attempts, 50, "attempts")
                equal(backoff.proven, true, "proven")
            },
        },
        {
            name: "a session of 9,999 ms is a failed attempt; one of 10,000 ms is a loss",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                equal(waits(backoff, "brr"), "1000 2000 4000")
                equal(session(backoff, 9999, refused), 8000, "flap")
                equal(backoff.attempts, 3, "attempts")
                const other = new Backoff(defaultPolicy(), new Lowest())
                equal(waits(other, "brr"), "1000 2000 4000")
                equal(session(other, 10000, closed), 1000, "loss")
                equal(other.attempts, 0, "attempts")
                equal(other.proven, false, "proven")
            },
        },
        {
            name: "once overload is proven a session of 9:59 min is a failed attempt; one of 10 min is a loss",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                equal(waits(backoff, "bt"), "1000 2000")
                equal(session(backoff, 599999, closed), 4000, "flap")
                equal(session(backoff, 600000, closed), 1000, "loss")
            },
        },
        {
            name: "sessions of 32 s that end for a late PUBACK: the ceiling climbs; for silence after an hour: a loss",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                let gaps = ""
                for (let i = 0; i < 12; ++i)
                    gaps += session(backoff, 32000, step("t")) + " "
                equal(
                    gaps,
                    "2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000 2048000 3272728 ",
                )
                session(backoff, 7200000, closed)
                equal(session(backoff, 3600000, step("s")), 1000, "silence")
                equal(backoff.proven, false, "proven")
            },
        },
        {
            name: "once overload is proven a session shorter than the ceiling is a failed attempt",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                waits(backoff, "btttttttttt")
                equal(backoff.ceilingMs, 1024000)
                equal(session(backoff, 1023999, closed), 2048000, "flap")
                equal(session(backoff, 2048000, closed), 1000, "loss")
            },
        },
        {
            name: "after a flap, our own doing or not, the next attempt waits 30 s for CONNACK, after a loss 10 s",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                session(backoff, 1, refused)
                equal(backoff.connackWaitMs, 30000, "our own network failed")
                session(backoff, 1, closed)
                equal(backoff.connackWaitMs, 30000, "flap")
                session(backoff, 600000, closed)
                equal(backoff.connackWaitMs, 10000, "loss")
            },
        },
        {
            name: "fast first: a lone loss waits 1 to 2 s; a failure leads into the spread, as if it had begun there",
            run: () => {
                const backoff = new Backoff(fastFitted(), new Middle())
                equal(waits(backoff, "b"), "88381", "a start")
                equal(session(backoff, 10000, closed), 1341, "a loss")
                equal(backoff.failed(refused, 0), 88381, "the spread begins")
                equal(backoff.failed(refused, 0), 125461, "and goes on")
            },
        },
        {
            name: "fast first: a broker that shows overload at once finds its devices in a wider spread",
            run: () => {
                const backoff = new Backoff(fastFitted(), new Lowest())
                backoff.begin()
                equal(session(backoff, 10000, closed), 1000, "a loss")
                equal(backoff.failed(step("t"), 0), 1000, "the spread begins")
                equal(backoff.failed(step("t"), 0), 180000, "and grows")
            },
        },
        {
            name: "fast first: a young session, a busy broker and the adaptive policy know nothing of it",
            run: () => {
                const backoff = new Backoff(fastFitted(), new Lowest())
                backoff.begin()
                equal(session(backoff, 9999, closed), 120000, "flap")
                const busy = new Backoff(fastFitted(), new Lowest())
                equal(session(busy, 86400000, step("u")), 120000, "busy")
                const p = defaultPolicy()
                p.fastFirst = true
                const adaptive = new Backoff(p, new Lowest())
                equal(session(adaptive, 10000, closed), 1000, "adaptive")
                equal(adaptive.failed(refused, 0), 2000, "adaptive goes on")
            },
        },
        {
            name: "a clock past 2^31 ms still tells a flap from a loss",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                backoff.accepted(MAX - 4000)
                equal(backoff.ended(MAX + 6000, closed), 1000, "loss")
                backoff.accepted(MAX + 7000)
                equal(backoff.ended(MAX + 16999, closed), 2000, "flap")
            },
        },
        {
            name: "an end without a session is a failed attempt",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                equal(backoff.ended(1000000, closed), 2000)
                session(backoff, 600000, closed)
                equal(backoff.ended(2000000, closed), 2000, "ended twice")
            },
        },
        {
            name: "a session taken over waits 5 min, however long it was",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                equal(session(backoff, 1, slow), 300000, "young")
                equal(backoff.proven, false, "proven")
                equal(session(backoff, 86400000, slow), 300000, "old")
                equal(backoff.attempts, 1, "attempts")
            },
        },
        {
            name: "taken over again and again, by a device that waits as long: 5, 10, 20, 40 min and no sooner",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                equal(session(backoff, 300000, slow), 300000, "first")
                equal(session(backoff, 300000, slow), 600000, "second")
                equal(session(backoff, 1200000, slow), 1200000, "third")
                equal(session(backoff, 3600000, slow), 2400000, "fourth")
                equal(session(backoff, 7199999, slow), 2400000, "fifth")
                equal(session(backoff, 7200000, slow), 300000, "after 2 h")
                equal(session(backoff, 300000, closed), 1000, "a loss")
                equal(session(backoff, 300000, slow), 300000, "after a loss")
            },
        },
        {
            name: "a broker that ends an old session as busy has proven overload",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                equal(session(backoff, 86400000, step("u")), 2000)
                equal(backoff.proven, true, "proven")
                equal(backoff.connackWaitMs, 30000, "CONNACK wait")
            },
        },
        {
            name: "a flap is no way out of stop",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                backoff.begin()
                equal(session(backoff, 1, step("p")), -1, "young")
                equal(session(backoff, 86400000, step("p")), -1, "old")
            },
        },
        {
            name: "flaps use up the attempts, a stable session gives them back",
            run: () => {
                const p = defaultPolicy()
                p.maxAttempts = 2
                const backoff = new Backoff(p, new Lowest())
                backoff.begin()
                equal(session(backoff, 1, closed), 2000, "first flap")
                equal(session(backoff, 600000, closed), 1000, "loss")
                equal(session(backoff, 1, closed), 2000, "first flap again")
                equal(session(backoff, 1, closed), -1, "second flap")
            },
        },
    ]
}

function operator(): Case[] {
    return [
        lowest(
            "retry now: what fails next starts below the cap, by halving, and overload is no longer proven",
            defaultPolicy(),
            "bttttttttttnr",
            "1000 2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000 32000",
        ),
        lowest(
            "retry now below the cap leaves the ceiling",
            defaultPolicy(),
            "brrnr",
            "1000 2000 4000 8000",
        ),
        lowest(
            "retry now, fitted: back to the spread",
            fitted(120000),
            "btttnr",
            "1000 120000 180000 270000 120000",
        ),
        {
            name: "retry now never leaves a ceiling below min",
            run: () => {
                const p = policyOf("decorrelated")
                p.minMs = 40000
                p.overloadCapMs = 100000
                const backoff = new Backoff(p, new Lowest())
                waits(backoff, "btttn")
                equal(backoff.ceilingMs, 50000)
                p.overloadCapMs = 70000
                waits(backoff, "btttn")
                equal(backoff.ceilingMs, 40000)
                equal(waits(backoff, "r"), "36000")
            },
        },
        {
            name: "a policy replaced by one with a lower cap holds from the next wait on",
            run: () => {
                const backoff = new Backoff(defaultPolicy(), new Lowest())
                waits(backoff, "brrrrrr")
                const p = defaultPolicy()
                p.capMs = 11000
                backoff.policy = p
                equal(waits(backoff, "rr"), "10000 10000")
            },
        },
        {
            name: "a failure before the first begin is a failure like others",
            run: () =>
                equal(
                    waits(new Backoff(defaultPolicy(), new Lowest()), "r"),
                    "2000",
                ),
        },
    ]
}

function policies(): Case[] {
    return [
        {
            name: "the default policy is valid, and a new one each time",
            run: () => {
                checkPolicy(defaultPolicy())
                defaultPolicy().minMs = 5
                equal(defaultPolicy().minMs, 1000)
            },
        },
        {
            name: "all of 2^31 - 1, and all of 1, are valid",
            run: () => {
                const p = defaultPolicy()
                for (const value of [MAX, 1]) {
                    p.minMs = p.capMs = p.overloadCapMs = p.spreadMs = value
                    p.connackMs = p.connackOverloadMs = p.dialMs = value
                    p.stableMs = p.slowMinMs = p.slowCapMs = value
                    p.maxAttempts = value
                    checkPolicy(p)
                }
            },
        },
        invalid(
            "min 0",
            p => (p.minMs = 0),
            "minMs 0 is not an integer in 1..60000",
        ),
        invalid(
            "min above cap",
            p => (p.minMs = 60001),
            "minMs 60001 is not an integer in 1..60000",
        ),
        invalid(
            "cap above overloadCap",
            p => (p.capMs = 3600001),
            "capMs 3600001 is not an integer in 1..3600000",
        ),
        invalid(
            "overloadCap 2^31",
            p => (p.overloadCapMs = MAX + 1),
            "overloadCapMs 2147483648 is not an integer in 1..2147483647",
        ),
        invalid(
            "spread above overloadCap",
            p => (p.spreadMs = 3600001),
            "spreadMs 3600001 is not an integer in 0..3600000",
        ),
        invalid("a negative spread", p => (p.spreadMs = -1), "spreadMs -1 is"),
        invalid(
            "CONNACK above its overload value",
            p => (p.connackMs = 30001),
            "connackMs 30001 is not an integer in 1..30000",
        ),
        invalid(
            "CONNACK overload 0",
            p => (p.connackOverloadMs = 0),
            "connackOverloadMs 0 is",
        ),
        invalid(
            "dial NaN",
            p => (p.dialMs = NaN),
            "dialMs NaN is not an integer in 1..2147483647",
        ),
        invalid(
            "half a millisecond",
            p => (p.stableMs = 1 / 2),
            "stableMs 0.5",
        ),
        invalid(
            "a negative stable",
            p => (p.stableMs = -1),
            "stableMs -1 is not an integer in 0..2147483647",
        ),
        invalid(
            "slowMin above slowCap",
            p => (p.slowMinMs = 3600001),
            "slowMinMs 3600001 is not an integer in 1..3600000",
        ),
        invalid(
            "slowCap infinite",
            p => (p.slowCapMs = Infinity),
            "slowCapMs Infinity is",
        ),
        invalid(
            "attempts -1",
            p => (p.maxAttempts = -1),
            "maxAttempts -1 is not an integer in 0..2147483647",
        ),
        invalid(
            "text for a number",
            p => ((p as any).capMs = "60"),
            "capMs 60 is not",
        ),
        invalid(
            "a number left out",
            p => ((p as any).capMs = undefined),
            "capMs undefined is not",
        ),
        invalid(
            "a jitter that does not exist",
            p => ((p as any).jitter = "some"),
            "jitter some is not one of",
        ),
        invalid(
            "a spread and no jitter",
            p => {
                p.jitter = "none"
                p.spreadMs = 5
            },
            "spreadMs 5 with jitter none",
        ),
    ]
}

function proofs(): Case[] {
    return [
        evidence("r", false),
        evidence("s", false),
        evidence("t", true),
        evidence("u", true),
        evidence("x", true),
        evidence("l", false),
    ]
}

function goldens(): Case[] {
    return [
        golden(
            policyOf("proportional"),
            1,
            "1084 2345 4491 8851 17321 36314 37341 34656 36561 34879 37392 35822 34835 36586 37252 37715 35497 35161 35024 38049 35027 34704 34673 35470 35581 34686 36125 36938 36883 37741 35248 37408 37874 35403 34797 35402 37802 36253 37306 35987",
            "1084 2345 4491 8851 17321 36314 37341 34656 36561 69471 145264 282062 582387 1216100 2393139 3453857 3576264 3379659 3559560 3375209 3576710 3548149 3589653 3508546 3480344 3542250 3572547 3309797 3289922 3390979 3466901 3541682 3540363 3316246 3578860 3327881 3533863 3321592 3582499 3530590",
        ),
        golden(
            policyOf("proportional"),
            2,
            "1721 3254 6590 13481 28289 55761 52758 54550 51910 51950 54073 53385 51501 52104 53620 56239 54599 53448 55263 53443 56531 52849 54618 52272 53015 52664 52066 53885 52038 54664 51924 53418 53552 53284 56495 55323 56496 52213 52633 54502",
            "1721 3254 6590 13481 28289 55761 52758 54550 51910 111630 224921 418906 833897 1801123 3567653 3283052 3390527 3479483 3593577 3445544 3384724 3287585 3501138 3576410 3283317 3488896 3589389 3468204 3561378 3299368 3540907 3457959 3546899 3352962 3450827 3302312 3347181 3331217 3283608 3376567",
        ),
        golden(
            policyOf("proportional"),
            3,
            "2101 4036 8242 16215 32082 31626 33909 33141 31830 32091 32514 32701 32034 32552 33713 32334 33885 32406 34168 32455 32418 33375 31471 31677 33816 31925 32802 32362 31796 31567 31924 31816 31523 34016 32359 31457 31525 33429 33221 33009",
            "2101 4036 8242 16215 32082 31626 33909 33141 31830 67339 132147 253055 527986 1076088 2087673 3504665 3346341 3577014 3562181 3507454 3591396 3564847 3388682 3329632 3311815 3375447 3416613 3439232 3372682 3555996 3378752 3502519 3552028 3437232 3470543 3408201 3444355 3377405 3541208 3380816",
        ),
        golden(
            policyOf("equal"),
            1,
            "708 1284 2187 6046 8712 17583 24192 22622 31578 28148 32707 34585 25920 28945 25923 21473 26366 30573 17390 23738 20445 26144 28304 24674 22203 21597 34490 24106 20943 22787 28046 28516 25259 30630 33392 32155 19672 34454 17971 26272",
            "708 1284 2187 6046 8712 17583 24192 22622 31578 55641 110576 245299 379217 857454 1598558 2035818 2707507 2791888 2007616 3118098 2099819 2885645 3390058 2442539 2192330 3567037 2786687 2067635 2892094 2630420 2823771 3287894 2903729 2749600 1848864 2582150 2457736 2061145 3470768 2013766",
        ),
        golden(
            policyOf("equal"),
            2,
            "841 2418 4997 9161 14548 37162 50929 41406 30017 43398 28806 42550 34398 44713 32746 35833 48179 25757 50936 36068 38687 45239 35896 29519 35891 38979 41754 31369 31405 28874 34720 39436 40601 27271 34514 36333 50870 45304 47493 42564",
            "841 2418 4997 9161 14548 37162 50929 41406 30017 101910 171574 345678 529177 1092954 2706281 2619213 3332520 1810324 2140623 1917799 3579619 2241994 3169425 3247417 2133341 2818938 2497104 2960572 2339145 3177783 2552698 2627970 2859165 3234150 2540456 2116661 2144500 3206528 2519764 3137226",
        ),
        golden(
            policyOf("equal"),
            3,
            "1707 3893 7620 10797 28735 17054 21583 20311 20602 28338 30621 29853 16254 28803 29226 23115 19415 25317 28746 29264 27601 18137 23653 24950 26501 20926 22688 19213 22948 29167 16842 23328 21895 19991 28389 18240 24541 17226 16786 20316",
            "1707 3893 7620 10797 28735 17054 21583 20311 20602 43914 76581 223590 265485 904875 1698642 2954419 2295359 3169613 2812594 3058872 1893945 2031937 3446477 2104286 2089453 2559014 2708232 3245429 2118668 3140695 3488818 2905480 1839087 1902719 2468173 1966504 2948530 2718714 2954600 3078367",
        ),
        golden(
            policyOf("full"),
            1,
            "644 1768 168 8396 10942 65 22450 288 28916 21050 11650 24689 13278 32863 8849 11009 7379 17195 6811 3648 5492 32097 2377 32369 17159 24950 25007 33444 10519 26889 29268 12970 7284 7885 17108 2477 12091 17788 28064 30485",
            "644 1768 168 8396 10942 65 22450 288 28916 48180 41393 106932 303983 491615 1889790 2332971 3004660 991889 2304769 1318099 299820 1085646 2739692 392331 1767038 3083840 267636 3189247 830421 1023772 3585047 1103730 3046753 1834000 48865 2879303 657737 261146 2310919 1532278",
        ),
        golden(
            policyOf("full"),
            2,
            "840 3109 1805 11050 1677 11419 15663 27223 31218 4274 50423 3063 49575 8655 7003 10090 22436 32782 25193 10325 12944 42921 36544 10148 13236 48779 5626 5662 35899 41745 46461 14858 1528 31803 41539 10590 19561 16821 30273 26507",
            "840 3109 1805 11050 1677 11419 15663 27223 31218 4274 115959 199671 246183 926159 2738714 2366299 1058666 1988516 819214 1532521 2107477 340624 117800 1943465 2044852 441995 3466578 3544570 2430494 3116091 2794257 1160573 539146 1377784 2849851 1959065 2925123 1059166 1434151 2837609",
        ),
        golden(
            policyOf("full"),
            3,
            "1758 1947 3727 11202 13160 1479 6008 21120 5027 12763 14278 679 16270 13228 13651 7540 3840 26126 29555 13689 28410 2562 8078 9375 27310 5351 23497 3638 23757 29976 17651 24137 6320 4416 12814 2665 8966 1651 1211 21125",
            "1758 1947 3727 11202 13160 1479 6008 21120 5027 12763 14278 98983 278414 406444 701779 1154420 2592512 1369614 1012595 1258873 93946 2329090 2401439 289454 759015 3005385 1445430 2415821 1340696 1688819 1105481 39088 102720 668174 2263657 2040582 1148531 3015867 1856133 1154601",
        ),
        golden(
            policyOf("decorrelated"),
            1,
            "1081 1643 2767 8143 6047 9359 25779 11941 1064 2969 1287 3800 6326 15282 22049 12649 25688 14277 33862 9848 12008 8378 5907 5301 1810 4563 7810 4647 6491 11750 33096 3376 1774 1373 1351 1430 3816 1675 1427 1784",
            "1081 1643 2767 8143 6047 9359 25779 11941 1064 2969 1287 3800 6326 15282 44620 42392 12649 25688 42838 14277 33862 55781 122075 208616 270522 300819 38069 18194 53715 131186 195173 268635 44518 44988 56153 164168 262135 49864 48627 64909",
        ),
        golden(
            policyOf("decorrelated"),
            2,
            "1609 1839 4108 2804 3857 10971 28301 35444 12418 16662 28222 32217 5273 2270 4062 1422 1462 3585 8002 11089 23435 33781 26192 11324 13943 37543 11147 14235 6625 6661 4130 9976 14692 15857 2527 2176 1578 3397 9742 20560",
            "1609 1839 4108 2804 3857 10971 28301 35444 12418 16662 28222 32217 5273 2270 4062 1422 1462 3585 8002 11089 23435 33781 91728 11324 13943 37543 76683 210843 442994 334341 698104 1161572 540145 1378783 2850850 1960064 2926122 1060165 1435150 2838608",
        ),
        golden(
            policyOf("decorrelated"),
            3,
            "1947 2946 4726 12201 14159 2478 7007 6026 13762 15277 1678 4981 14227 14650 8539 4839 10741 30554 14688 29409 3561 9077 10374 28309 6350 4637 8372 18650 25136 7319 5415 13813 3664 9965 2650 2210 5740 8720 1415 1772",
            "1947 2946 4726 12201 14159 2478 7007 6026 13762 15277 34446 17269 14227 41307 103143 211296 94945 232937 598901 305286 290453 760014 1446429 2416820 1341695 1689818 1106480 40087 103719 144885 167504 468717 1149530 3016866 1857132 1155600 1279367 2377452 3039366 1214080",
        ),
        golden(
            policyOf("none"),
            1,
            "1000 2000 4000 8000 16000 32000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000 60000",
            "1000 2000 4000 8000 16000 32000 60000 60000 60000 120000 240000 480000 960000 1920000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000 3600000",
        ),
        golden(
            fitted(100000),
            1,
            "73156 102691 105863 107143 105047 108359 108395 104121 109914 100064 106065 100287 106896 105326 100905 104665 108624 108627 108304 104177 109070 100094 105629 106442 106387 103149 108848 107378 104907 104301 100810 103563 106810 103647 105491 107963 106001 102376 100774 108565",
            "73156 102691 105863 107143 105047 108359 108395 104121 109914 111005 166698 256512 403339 608686 890633 1313738 2047642 2950212 3559560 3375209 3576710 3548149 3589653 3508546 3480344 3542250 3572547 3309797 3289922 3390979 3466901 3541682 3540363 3316246 3578860 3327881 3533863 3321592 3582499 3530590",
        ),
        golden(
            fitted(100000),
            2,
            "3482 103681 101804 109971 101676 108801 104273 101270 103062 100422 108654 102585 107002 106051 100013 108808 103111 103775 109553 105625 105661 103130 108976 101527 109368 108770 108742 103176 105365 100436 109988 106035 105007 105752 108917 109337 103014 102581 100449 105138",
            "3482 103681 101804 109971 101676 108801 104273 101270 103062 158228 243330 343543 514900 779651 1168605 1714060 2634083 3390527 3479483 3593577 3445544 3384724 3287585 3501138 3576410 3283317 3488896 3589389 3468204 3561378 3299368 3540907 3457959 3546899 3352962 3450827 3302312 3347181 3331217 3283608",
        ),
        golden(
            fitted(100000),
            3,
            "2971 106042 103726 101478 106007 104735 105026 100678 107539 103839 109741 102561 108077 109374 105350 107112 103637 107372 101266 107752 106319 104415 102664 108965 101650 101210 104740 107720 100415 100772 107326 100664 100371 102864 101207 104401 107787 104469 106373 102069",
            "2971 106042 103726 101478 106007 104735 105026 100678 107539 146348 218598 335774 496376 733712 1064664 1677832 2468757 3591396 3564847 3388682 3329632 3311815 3375447 3416613 3439232 3372682 3555996 3378752 3502519 3552028 3437232 3470543 3408201 3444355 3377405 3541208 3380816 3502658 3494981 3345138",
        ),
    ]
}

export function cases(): Case[] {
    return [
        ...timelines(),
        ...sessions(),
        ...operator(),
        ...policies(),
        ...proofs(),
        ...goldens(),
    ]
}
