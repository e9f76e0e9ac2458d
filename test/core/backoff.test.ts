// Backoff: its timelines, an independent oracle for any policy and any failures, and what a fleet of it does.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { AdaptiveBackoff } from "../../src/core/adaptive"
import { Backoff } from "../../src/core/backoff"
import {
    checkPolicy,
    defaultPolicy,
    Jitter,
    Policy,
} from "../../src/core/policy"
import { below } from "../../src/core/int"
import { Random, seededRandom, Sfc32 } from "../../src/core/random"
import type { Evidence, Lane, Verdict } from "../../src/core/verdict"
import { runCases } from "../node-cases"
import { cases } from "./backoff.cases"
import { chiSquare } from "./chi-square"

runCases(cases())

const MAX = 2 ** 31 - 1
const jitters: Jitter[] = [
    "proportional",
    "equal",
    "full",
    "decorrelated",
    "none",
]
const jittered = jitters.filter(j => j !== "none")

function verdict(evidence: Evidence, lane: Lane = "retry"): Verdict {
    return { lane, evidence, reason: "test" }
}

/** The design's rules again, from its text, in doubles and with nothing shared but the draws. */
class Oracle {
    ceiling = 0
    proven = false
    connack = 0
    attempts = 0
    slow = 0
    last = 0
    fast = false
    silences = 0
    since: number | undefined

    constructor(
        private p: Policy,
        private random: Random,
    ) {
        this.reset()
    }

    /** low + below(count) where the result may not exceed high. */
    private range(low: number, count: number, high: number): number {
        if (low >= high) return high
        return low + below(Math.min(count, high - low + 1), this.random)
    }

    private limit(bound: number, jitter: Jitter): number {
        if (jitter !== "proportional") return bound
        let c = Math.ceil((bound * 10) / 11)
        while (c + Math.floor(c / 10) > bound) --c
        return c
    }

    private first(min: number, limit: number): number {
        if (this.p.jitter === "none") return Math.min(min, limit)
        return this.range(min, min, limit)
    }

    private reset() {
        this.proven = false
        this.connack = this.p.connackMs
        this.attempts = 0
        this.slow = 0
        this.last = 0
        this.fast = false
        this.silences = 0
        this.since = undefined
        this.ceiling = this.p.spreadMs
            ? Math.min(
                  Math.max(this.p.minMs, this.p.spreadMs),
                  this.limit(this.p.overloadCapMs, "proportional"),
              )
            : this.first(
                  this.p.jitter === "decorrelated"
                      ? Math.min(this.p.minMs, Math.ceil(this.p.capMs * 0.9))
                      : this.p.minMs,
                  this.limit(this.p.capMs, this.p.jitter),
              )
    }

    private tenth(c: number): number {
        return c + below(Math.floor(c / 10) + 1, this.random)
    }

    private draw(took: number): number {
        const c = this.ceiling
        const e = Math.max(Math.min(c, this.p.minMs), c - took)
        if (this.p.spreadMs) return this.tenth(c) - c + e
        switch (this.p.jitter) {
            case "proportional":
                return this.tenth(c) - c + e
            case "equal":
                return (
                    Math.ceil(e / 2) + below(Math.floor(e / 2) + 1, this.random)
                )
            case "full":
                return 1 + below(e, this.random)
            case "none":
                return e
            case "decorrelated": {
                const low = Math.min(this.p.minMs, Math.ceil(e * 0.9))
                const high = Math.min(3 * this.last, e)
                this.last = this.last ? this.range(low, MAX, high) : e
                return this.last
            }
            default:
                throw new Error(this.p.jitter)
        }
    }

    begin(): number {
        this.reset()
        return this.drawFirst()
    }

    private drawFirst(): number {
        if (this.p.spreadMs)
            return this.range(this.p.minMs, this.ceiling, this.p.overloadCapMs)
        return this.draw(0)
    }

    failed(v: Verdict, tookMs: number): number {
        this.attempts++
        this.since = undefined
        if (v.lane === "stop") return -1
        if (this.p.maxAttempts && this.attempts >= this.p.maxAttempts) return -1
        this.connack = this.p.connackOverloadMs
        if (v.lane === "slow") return this.drawSlow()
        const first = !this.proven
        const down = v.evidence === "refused" || v.evidence === "silent"
        const took = down && tookMs > this.p.minMs ? tookMs : 0
        if (["stalled", "busy", "reset"].includes(v.evidence))
            this.proven = true
        this.grow(first, took)
        const fast = this.fast
        this.fast = false
        return fast ? this.drawFirst() : this.draw(took)
    }

    private grow(first: boolean, took: number) {
        const fits = took > 0 && this.ceiling >= took
        if (this.p.spreadMs || !took) this.silences = 0
        else if (!this.silences || !fits) {
            this.silences = 1
            const bound = this.proven ? this.p.overloadCapMs : this.p.capMs
            const top = this.limit(bound, this.p.jitter)
            while (this.ceiling < took && 2 * this.ceiling <= top)
                this.ceiling *= 2
            while (!this.proven && this.ceiling >= 2 * took)
                this.ceiling = Math.floor(this.ceiling / 2)
            return
        } else if (++this.silences <= 4) return
        else this.silences = 1
        this.ceiling = this.grown(this.ceiling, first)
    }

    private grown(c: number, first: boolean): number {
        const top = this.limit(
            this.p.overloadCapMs,
            this.p.spreadMs ? "proportional" : this.p.jitter,
        )
        if (this.p.spreadMs) {
            if (!this.proven) return c
            if (first) return this.range(c, Math.floor(c / 2) + 1, top)
            return Math.min(Math.floor(c * 1.5), top)
        }
        if (this.proven) return Math.min(2 * c, top)
        const cap = this.limit(this.p.capMs, this.p.jitter)
        if (this.p.jitter === "none") return Math.min(2 * c, cap)
        return 2 * c <= cap ? 2 * c : c
    }

    private drawSlow(): number {
        const none = this.p.jitter === "none"
        const limit = none
            ? this.p.slowCapMs
            : this.limit(this.p.slowCapMs, "proportional")
        if (!this.slow) this.slow = this.first(this.p.slowMinMs, limit)
        else if (2 * this.slow <= limit) this.slow *= 2
        else if (none) this.slow = limit
        return none ? this.slow : this.tenth(this.slow)
    }

    accepted(now: number) {
        this.since = now
    }

    ended(now: number, v: Verdict): number {
        const age = this.since === undefined ? -1 : now - this.since
        let needed = this.p.stableMs
        if (this.proven) needed = Math.max(needed, 600000, this.ceiling)
        const flap = age < 0 || age < needed
        const broker = v.lane === "retry" || v.lane === "overload"
        if (flap && broker && v.evidence !== "refused")
            return this.failed(verdict("reset", v.lane), 0)
        if (!flap && v.lane !== "slow" && v.lane !== "stop")
            if (!["busy", "stalled"].includes(v.evidence)) return this.lost()
        const again = v.lane === "slow" && age < 2 * this.p.slowCapMs
        if (!flap && !(again && this.slow)) this.reset()
        return this.failed(v, 0)
    }

    private lost(): number {
        if (!this.p.spreadMs || !this.p.fastFirst) return this.begin()
        this.reset()
        this.fast = true
        return this.range(this.p.minMs, this.p.minMs, this.ceiling)
    }
}

/** Milliseconds from 1, as often small, at 2^31 - 1 or at a usual value as anywhere else. */
const ms = fc.oneof(
    fc.integer({ min: 1, max: MAX }),
    fc.integer({ min: 1, max: 100 }),
    fc.integer({ min: MAX - 5, max: MAX }),
    fc.constantFrom(1000, 60000, 300000, 3600000),
)

/** Any policy that checkPolicy lets through. */
const anyPolicy: fc.Arbitrary<Policy> = fc
    .record({
        main: fc.array(ms, { minLength: 3, maxLength: 3 }),
        spread: fc.oneof(fc.constant(0), ms),
        connack: fc.array(ms, { minLength: 2, maxLength: 2 }),
        slow: fc.array(ms, { minLength: 2, maxLength: 2 }),
        stableMs: fc.oneof(fc.constantFrom(0, 10000), ms),
        maxAttempts: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40 })),
        jitter: fc.constantFrom(...jitters),
        fastFirst: fc.boolean(),
    })
    .map(x => {
        const up = (a: number, b: number) => a - b
        const [minMs, capMs, overloadCapMs] = x.main.sort(up)
        const [connackMs, connackOverloadMs] = x.connack.sort(up)
        const [slowMinMs, slowCapMs] = x.slow.sort(up)
        const { jitter, stableMs, maxAttempts, fastFirst } = x
        const spreadMs =
            jitter === "none" ? 0 : Math.min(x.spread, overloadCapMs)
        return {
            ...{ minMs, capMs, overloadCapMs, spreadMs, jitter, stableMs },
            ...{ connackMs, connackOverloadMs, dialMs: 30000 },
            ...{ slowMinMs, slowCapMs, maxAttempts, fastFirst },
        }
    })

const anyVerdict: fc.Arbitrary<Verdict> = fc.record({
    lane: fc.constantFrom<Lane>("retry", "retry", "overload", "slow", "stop"),
    evidence: fc.constantFrom<Evidence>(
        ...(["refused", "refused", "refused", "silent"] as Evidence[]),
        ...(["stalled", "busy", "reset"] as Evidence[]),
    ),
    reason: fc.constant("test"),
})

/** How long an attempt took. */
const anyTookMs = fc.oneof(
    fc.constant(20),
    fc.nat(100_000),
    fc.constantFrom(0, 1000, 1001, 10_000, 30_000, MAX),
)

type Step =
    | { kind: "begin" }
    | { kind: "failed"; v: Verdict; tookMs: number }
    | { kind: "session"; ageMs: number; v: Verdict }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
    { weight: 1, arbitrary: fc.constant<Step>({ kind: "begin" }) },
    {
        weight: 14,
        arbitrary: fc
            .tuple(anyVerdict, anyTookMs)
            .map<Step>(([v, tookMs]) => ({ kind: "failed", v, tookMs })),
    },
    {
        weight: 4,
        arbitrary: fc
            .tuple(
                fc.oneof(
                    fc.integer({ min: 0, max: 1000000 }),
                    fc.constantFrom(9999, 10000, 599999, 600000),
                ),
                anyVerdict,
            )
            .map<Step>(([ageMs, v]) => ({ kind: "session", ageMs, v })),
    },
)

const anyWords = fc.array(fc.integer(), { minLength: 4, maxLength: 4 })

function generator(words: number[]): Sfc32 {
    return new Sfc32(words[0], words[1], words[2], words[3])
}

/** One step of both; what each answered. */
function both(
    ours: AdaptiveBackoff,
    oracle: Oracle,
    step: Step,
    nowMs: number,
): [number, number] {
    switch (step.kind) {
        case "begin":
            return [ours.begin(), oracle.begin()]
        case "failed":
            return [
                ours.failed(step.v, step.tookMs),
                oracle.failed(step.v, step.tookMs),
            ]
        case "session":
            ours.accepted(nowMs)
            oracle.accepted(nowMs)
            return [
                ours.ended(nowMs + step.ageMs, step.v),
                oracle.ended(nowMs + step.ageMs, step.v),
            ]
    }
}

function agree(ours: AdaptiveBackoff, steps: Step[], words: number[]) {
    const oracle = new Oracle(ours.policy, generator(words))
    steps.forEach((step, i) => {
        const [got, expected] = both(ours, oracle, step, i * 1e7)
        assert.equal(got, expected, JSON.stringify(step))
        assert.equal(ours.ceilingMs, oracle.ceiling, "ceiling")
        assert.equal(ours.proven, oracle.proven, "proven")
        assert.equal(ours.connackWaitMs, oracle.connack, "CONNACK")
        assert.equal(ours.attempts, oracle.attempts, "attempts")
    })
}

const PLAIN: Jitter = "proportional"

test("any policy, any failures: waits, ceiling, proof and CONNACK wait are those of the design", () => {
    fc.assert(
        fc.property(
            anyPolicy,
            fc.array(anyStep, { minLength: 1, maxLength: 60 }),
            anyWords,
            (policy, steps, words) => {
                checkPolicy(policy)
                agree(new Backoff(policy, generator(words)), steps, words)
                // All that a program without `allStrategies` carries, and all that it needs for such a policy.
                const own = { ...policy, spreadMs: 0, jitter: PLAIN }
                agree(new AdaptiveBackoff(own, generator(words)), steps, words)
            },
        ),
        { numRuns: 4000, seed: 1 },
    )
})

/** The longest wait that a policy promises, as things stand. */
function bound(backoff: Backoff, lane: Lane): number {
    const p = backoff.policy
    if (lane === "slow") return p.slowCapMs
    return backoff.proven || p.spreadMs > 0 ? p.overloadCapMs : p.capMs
}

function assertWait(wait: number, bound: number) {
    assert.ok(Number.isInteger(wait), `${wait} is no integer`)
    assert.ok(wait >= 1 && wait <= bound, `${wait} is not in 1..${bound}`)
}

test("1,000 failures of any kind under any policy: each wait is an integer in [1, its bound]", () => {
    fc.assert(
        fc.property(
            anyPolicy,
            fc.array(anyVerdict, { minLength: 1, maxLength: 20 }),
            fc.array(anyTookMs, { minLength: 1, maxLength: 20 }),
            fc.nat(1000),
            anyWords,
            (anyone, verdicts, times, goNow, words) => {
                const policy = { ...anyone, maxAttempts: 0 }
                const failures = verdicts.filter(v => v.lane !== "stop")
                fc.pre(failures.length > 0)
                const backoff = new Backoff(policy, generator(words))
                assertWait(backoff.begin(), bound(backoff, "retry"))
                for (let i = 0; i < 1000; ++i) {
                    const v = failures[i % failures.length]
                    const wait = backoff.failed(v, times[i % times.length])
                    assertWait(wait, bound(backoff, v.lane))
                    assert.ok(Number.isInteger(backoff.ceilingMs))
                    assert.ok(
                        backoff.ceilingMs >= 1 && backoff.ceilingMs <= MAX,
                        `ceiling ${backoff.ceilingMs}`,
                    )
                    if (i === goNow) {
                        backoff.retryNow()
                        assert.ok(
                            backoff.ceilingMs <= bound(backoff, "retry"),
                            `ceiling ${backoff.ceilingMs} after retry now`,
                        )
                    }
                }
                assert.equal(backoff.attempts, 1000)
            },
        ),
        { numRuns: 300, seed: 1 },
    )
})

test("a stuck random source still gives waits within their bounds", () => {
    fc.assert(
        fc.property(
            anyPolicy,
            fc.array(anyVerdict, { minLength: 1, maxLength: 40 }),
            anyTookMs,
            fc.integer(),
            (policy, verdicts, tookMs, word) => {
                const backoff = new Backoff(policy, { next: () => word })
                assertWait(backoff.begin(), bound(backoff, "retry"))
                for (const v of verdicts) {
                    const wait = backoff.failed(v, tookMs)
                    if (wait !== -1) assertWait(wait, bound(backoff, v.lane))
                }
            },
        ),
        { numRuns: 2000, seed: 1 },
    )
})

test("the slow lane never waits less than slowMin where its cap leaves a tenth", () => {
    fc.assert(
        fc.property(anyPolicy, anyWords, (anyone, words) => {
            const { slowMinMs, slowCapMs } = anyone
            fc.pre(slowMinMs <= Math.floor((slowCapMs * 10) / 11))
            const policy = { ...anyone, maxAttempts: 0 }
            const backoff = new Backoff(policy, generator(words))
            let last = 0
            for (let i = 0; i < 60; ++i) {
                const wait = backoff.failed(verdict("refused", "slow"), 20)
                assert.ok(wait >= slowMinMs && wait <= slowCapMs, `${wait}`)
                // Grows by doubling, or stays where its tenth of jitter takes it.
                assert.ok(wait * 11 > last * 10 - 11, `${last} then ${wait}`)
                last = wait
            }
        }),
        { numRuns: 500, seed: 1 },
    )
})

/** A thousand waits at the end of an outage's growth. */
function atTheCap(policy: Policy, evidence: Evidence, seed: number) {
    const backoff = new Backoff(policy, new Sfc32(seed, 0, 0, 1))
    backoff.begin()
    for (let i = 0; i < 60; ++i) backoff.failed(verdict(evidence), 0)
    const waits: number[] = []
    for (let i = 0; i < 1000; ++i)
        waits.push(backoff.failed(verdict(evidence), 0))
    return { waits, ceiling: backoff.ceilingMs }
}

/** The band that a strategy promises under a ceiling. */
function band(policy: Policy, ceiling: number): [number, number] {
    switch (policy.jitter) {
        case "proportional":
            return [ceiling, ceiling + Math.floor(ceiling / 10)]
        case "equal":
            return [Math.ceil(ceiling / 2), ceiling]
        case "full":
            return [1, ceiling]
        case "decorrelated":
            return [Math.min(policy.minMs, Math.ceil(ceiling * 0.9)), ceiling]
        default:
            return [ceiling, ceiling]
    }
}

for (const jitter of jittered)
    for (const evidence of ["refused", "stalled"] as const)
        for (const minMs of [1000, 45000, 59999, 60000])
            test(`${jitter}, min ${minMs}, ${evidence}: jitter is alive at the cap, and in its band`, () => {
                const policy = { ...defaultPolicy(), jitter, minMs }
                for (let seed = 1; seed <= 5; ++seed) {
                    const { waits, ceiling } = atTheCap(policy, evidence, seed)
                    const [low, high] = band(policy, ceiling)
                    const cap = evidence === "refused" ? 60000 : 3600000
                    assert.ok(high <= cap, `${high} above ${cap}`)
                    assert.ok(ceiling > cap / 2, `ceiling ${ceiling}`)
                    for (const wait of waits)
                        assert.ok(wait >= low && wait <= high, `${wait}`)
                    assert.ok(new Set(waits).size > 700, "too many alike")
                    // They fill the band, not a corner of it.
                    const width = high - low
                    const min = Math.min(...waits)
                    const max = Math.max(...waits)
                    assert.ok(min < low + width / 20, `lowest ${min}`)
                    assert.ok(max > high - width / 20, `highest ${max}`)
                }
            })

for (const jitter of ["proportional", "equal", "full"] as const)
    test(`${jitter}: waits under one ceiling are equally likely`, () => {
        const policy = { ...defaultPolicy(), jitter }
        const { waits, ceiling } = atTheCap(policy, "refused", 7)
        const [low, high] = band(policy, ceiling)
        const counts = new Array<number>(20).fill(0)
        for (const wait of waits)
            counts[Math.floor(((wait - low) * 20) / (high - low + 1))]++
        assert.ok(chiSquare(counts) < 4, counts.join())
    })

/** One backoff for each device of a fleet with consecutive ids and dead entropy. */
function fleet(devices: number, policy: Policy): Backoff[] {
    const out: Backoff[] = []
    for (let i = 0; i < devices; ++i) {
        const id = (0x240ac4123400n + BigInt(i)).toString(16)
        const random = seededRandom(Buffer.alloc(8), id.padStart(16, "0"))
        out.push(new Backoff(policy, random))
    }
    return out
}

/** The largest share of times in any tenth of the window they span. */
function worstTenth(times: number[]): number {
    const low = Math.min(...times)
    const width = (Math.max(...times) - low) / 10
    return Math.max(
        ...times.map(
            from =>
                times.filter(t => t >= from && t < from + width).length /
                times.length,
        ),
    )
}

for (const jitter of jittered)
    for (const minMs of [1000, 40000, 60000])
        test(`200 devices, one broker restart, ${jitter}, min ${minMs}: fewer than 20 % come back in any tenth of the window`, () => {
            const policy = { ...defaultPolicy(), jitter, minMs }
            const losses = fleet(200, policy).map(b => {
                b.begin()
                b.accepted(0)
                return b.ended(3600000, verdict("reset", "overload"))
            })
            assert.ok(worstTenth(losses) < 0.2, `${worstTenth(losses)}`)
        })

test("200 devices powered on together, fitted: evenly over the whole spread", () => {
    const devices = fleet(200, { ...defaultPolicy(), spreadMs: 100000 })
    const counts = new Array<number>(10).fill(0)
    for (const b of devices) counts[Math.floor((b.begin() - 1000) / 10000)]++
    assert.ok(Math.max(...counts) < 40, counts.join())
    assert.ok(chiSquare(counts) < 4, counts.join())
})

test("the phases of a fleet stay apart through every doubling", () => {
    const devices = fleet(200, defaultPolicy())
    const times = devices.map(b => b.begin())
    for (let i = 0; i < 8; ++i) {
        devices.forEach((b, k) => (times[k] += b.failed(verdict("stalled"), 0)))
        assert.ok(worstTenth(times) < 0.2, `${worstTenth(times)} at ${i}`)
    }
})

test("after a silent attempt of 10 s a fleet is spread over 10 s, where doubling alone would give it 2", () => {
    const devices = fleet(200, defaultPolicy())
    const times = devices.map(b => {
        const startMs = b.begin()
        return startMs + 10000 + b.failed(verdict("silent"), 10000)
    })
    const spreadMs = Math.max(...times) - Math.min(...times)
    assert.ok(spreadMs > 9000 && spreadMs < 13000, `${spreadMs}`)
    assert.ok(worstTenth(times) < 0.25, `${worstTenth(times)}`)
})

test("at the cap each device of a fleet keeps a ceiling of its own, over all of (cap/2, cap]", () => {
    const devices = fleet(1000, defaultPolicy())
    const counts = new Array<number>(10).fill(0)
    for (const b of devices) {
        b.begin()
        for (let i = 0; i < 20; ++i) b.failed(verdict("refused"), 20)
        assert.ok(b.ceilingMs > 54546 / 2 && b.ceilingMs <= 54546)
        counts[Math.floor((b.ceilingMs - 27273.5) / 2727.3)]++
    }
    assert.ok(Math.min(...counts) > 40, counts.join())
})

test("a CONNACK whose session flaps leaves everything as if it had not come", () => {
    fc.assert(
        fc.property(
            anyPolicy,
            fc.array(anyVerdict, { minLength: 0, maxLength: 20 }),
            anyWords,
            (anyone, verdicts, words) => {
                const policy = { ...anyone, stableMs: 10000, maxAttempts: 0 }
                const one = new Backoff(policy, generator(words))
                const two = new Backoff(policy, generator(words))
                assert.equal(one.begin(), two.begin())
                for (const v of verdicts)
                    assert.equal(one.failed(v, 5000), two.failed(v, 5000))
                one.accepted(5)
                const flap = one.ended(10004, verdict("stalled"))
                assert.equal(flap, two.failed(verdict("reset"), 0))
                assert.deepEqual(one, two)
            },
        ),
        { numRuns: 1000, seed: 1 },
    )
})

test("a stable session leaves nothing of the outage before it", () => {
    fc.assert(
        fc.property(
            anyPolicy,
            fc.array(anyVerdict, { minLength: 0, maxLength: 20 }),
            (policy, verdicts) => {
                const one = new Backoff(policy, new Sfc32(1, 2, 3, 4))
                for (const v of verdicts) one.failed(v, 20)
                one.accepted(0)
                // Longer than any ceiling.
                const wait = one.ended(2 ** 32, verdict("reset"))
                const two = new Backoff(policy, new Sfc32(1, 2, 3, 4))
                two.begin()
                assert.ok(wait <= bound(one, "retry"))
                assert.equal(one.attempts, 0)
                assert.equal(one.proven, false)
                assert.equal(one.connackWaitMs, two.connackWaitMs)
                assert.ok(one.ceilingMs < 2 * two.ceilingMs)
            },
        ),
        { numRuns: 500, seed: 1 },
    )
})

test("checkPolicy names the setting, its value and its range, and lets nothing strange through", () => {
    const strange = [
        NaN,
        Infinity,
        -Infinity,
        -1,
        1.5,
        2 ** 31,
        1e300,
        "5",
        null,
    ]
    const good = defaultPolicy()
    for (const key of Object.keys(good) as (keyof Policy)[])
        for (const value of [...strange, undefined, [], {}, true]) {
            if (key === "fastFirst" && value === true) continue
            assert.throws(
                () => checkPolicy({ ...good, [key]: value } as Policy),
                (e: Error) =>
                    e instanceof RangeError &&
                    e.message.includes(`${key} ${value}`) &&
                    /in \d+\.\.\d+|one of/.test(e.message),
                `${key} ${value}`,
            )
        }
})
