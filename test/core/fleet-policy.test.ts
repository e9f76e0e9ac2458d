// Runs the table of fleet-policy.cases.ts under Node; then any text from the broker and any from flash: never a
// throw, never a policy out of bounds, and always one that a newer message can replace.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { Backoff } from "../../src/core/backoff"
import { checkPolicy, defaultPolicy, type Policy } from "../../src/core/policy"
import {
    FleetPolicyState,
    formatFleetPolicy,
    isRefusal,
    MAX_ISSUE,
    MAX_WAIT_MS,
    MIN_WAIT_MS,
    parseFleetPolicy,
    type FleetPolicy,
} from "../../src/core/fleet-policy"
import {
    formatLine,
    LINE_MAX_BYTES,
    parseLine,
    type ConfigLine,
} from "../../src/core/line"
import { Sfc32 } from "../../src/core/random"
import { hash31 } from "../../src/core/record"
import type { Verdict } from "../../src/core/verdict"
import { runCases } from "../node-cases"
import { cases } from "./fleet-policy.cases"

runCases(cases())

const JITTERS = ["proportional", "equal", "full", "decorrelated", "none"]

/** Numbers about the bounds, and others. */
const number = fc.oneof(
    fc.constantFrom(0, 1, 499, 500, 501, 1000, 60_000, 3_600_000),
    fc.constantFrom(21_599_999, 21_600_000, 21_600_001, 2 ** 30, 2 ** 30 + 1),
    fc.integer({ min: 1, max: 21_600_000 }),
    fc.constantFrom(-1, 0.5, -0, 2 ** 31, 2 ** 32 + 1000, 1e300),
)

/** A message, or something like one. */
const likely = fc
    .record(
        {
            issue: number,
            minMs: number,
            capMs: number,
            spreadMs: number,
            overloadCapMs: number,
            jitter: fc.oneof(fc.constantFrom(...JITTERS), fc.string()),
            more: fc.jsonValue(),
        },
        {
            requiredKeys: [
                ...(["issue", "minMs", "capMs"] as const),
                ...(["spreadMs", "overloadCapMs", "jitter"] as const),
            ],
        },
    )
    .map(o => JSON.stringify(o))

/** Any message in bounds. */
const good: fc.Arbitrary<FleetPolicy> = fc
    .tuple(
        fc.oneof(
            fc.integer({ min: 1, max: MAX_ISSUE }),
            fc.constant(MAX_ISSUE),
        ),
        fc.array(
            fc.oneof(
                fc.integer({ min: MIN_WAIT_MS, max: MAX_WAIT_MS }),
                fc.constantFrom(MIN_WAIT_MS, MAX_WAIT_MS),
            ),
            { minLength: 4, maxLength: 4 },
        ),
        fc.boolean(),
        fc.constantFrom(...JITTERS),
    )
    .map(([issue, ms, spreads, jitter]) => {
        const [minMs, capMs, spreadMs, overloadCapMs] = ms.sort((a, b) => a - b)
        const policy = { issue, minMs, capMs, overloadCapMs, jitter }
        return {
            ...policy,
            spreadMs: spreads && jitter !== "none" ? spreadMs : 0,
        } as FleetPolicy
    })

const hostile = fc.oneof(
    likely,
    fc.json(),
    fc.string({ unit: "binary", maxLength: 500 }),
    fc
        .tuple(likely, fc.nat(200), fc.string({ maxLength: 3 }))
        .map(
            ([text, at, with_]) =>
                text.slice(0, at) + with_ + text.slice(at + 1),
        ),
    good.map(formatFleetPolicy),
)

function inBounds(p: Policy) {
    checkPolicy(p)
    for (const ms of [p.minMs, p.capMs, p.overloadCapMs])
        assert.ok(ms >= MIN_WAIT_MS && ms <= MAX_WAIT_MS)
    assert.ok(p.spreadMs >= 0 && p.spreadMs <= MAX_WAIT_MS)
}

function readable(line: ConfigLine | undefined) {
    if (!line) return
    const text = formatLine(line)
    assert.ok(text.length <= LINE_MAX_BYTES)
    assert.equal(parseLine(`# 1 ${text}`)?.line.ev, "config")
}

test("any text, from the broker or out of flash: a policy in bounds, and a line the host can read", () => {
    let taken = 0
    fc.assert(
        fc.property(hostile, hostile, (stored, text) => {
            const state = new FleetPolicyState(defaultPolicy())
            for (const flash of [stored, `[${hash31(stored)},${stored}]`]) {
                readable(state.restore(flash))
                inBounds(state.policy())
            }
            const before = JSON.stringify(state.policy())
            const line = state.offer(text)
            readable(line)
            inBounds(state.policy())
            inBounds(state.policy(true))
            if (isRefusal(parseFleetPolicy(text)))
                assert.equal(JSON.stringify(state.policy()), before)
            else taken++
        }),
        { numRuns: 20_000, seed: 1 },
    )
    assert.ok(taken > 500, `${taken} messages in bounds`)
})

test("any policy in bounds reads back, and can be corrected by another, whatever its number", () => {
    fc.assert(
        fc.property(good, good, (bad, next) => {
            assert.deepEqual(parseFleetPolicy(formatFleetPolicy(bad)), bad)
            const state = new FleetPolicyState(defaultPolicy())
            state.offer(formatFleetPolicy(bad))
            const issue = Math.min(bad.issue + 1, MAX_ISSUE)
            state.offer(formatFleetPolicy({ ...next, issue }))
            assert.deepEqual(state.current, { ...next, issue })
        }),
        { numRuns: 5000, seed: 1 },
    )
})

const EVIDENCE = ["refused", "silent", "stalled", "busy", "reset"] as const

/** Waits of an outage, with another policy adopted in its middle. */
const story = fc.array(
    fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...EVIDENCE) },
        { weight: 1, arbitrary: good },
    ),
    { minLength: 1, maxLength: 40 },
)

test("policies adopted in the middle of an outage: every wait is at most 6 h and in the bounds of its policy", () => {
    fc.assert(
        fc.property(good, story, fc.nat(), (first, events, seed) => {
            const state = new FleetPolicyState(defaultPolicy())
            const take = (p: FleetPolicy) => {
                state.reset()
                state.offer(formatFleetPolicy(p))
                return state.policy()
            }
            let policy = take(first)
            const backoff = new Backoff(policy, new Sfc32(seed, 1, 2, 3))
            backoff.begin()
            for (const event of events) {
                if (typeof event !== "string") {
                    policy = take(event)
                    const { proven, attempts } = backoff
                    backoff.adopt(policy)
                    assert.equal(backoff.proven, proven)
                    assert.equal(backoff.attempts, attempts)
                    continue
                }
                const verdict: Verdict = {
                    lane: "retry",
                    evidence: event,
                    reason: "",
                }
                const waitMs = backoff.failed(verdict, 5000)
                const patient = backoff.proven || policy.spreadMs > 0
                const boundMs = patient ? policy.overloadCapMs : policy.capMs
                assert.ok(Number.isInteger(waitMs) && waitMs >= 1)
                assert.ok(waitMs <= boundMs, `${waitMs} of ${boundMs}`)
                if (policy.jitter === "proportional")
                    assert.ok(waitMs >= policy.minMs - policy.minMs / 10 - 1)
            }
        }),
        { numRuns: 5000, seed: 1 },
    )
})
