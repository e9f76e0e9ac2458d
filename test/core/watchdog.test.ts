// The watchdog: its timelines, days of every trouble that is no reason, and how soon it sees a real one.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { Backoff } from "../../src/core/backoff"
import { defaultPolicy } from "../../src/core/policy"
import { Sfc32 } from "../../src/core/random"
import { explainSocket } from "../../src/core/socket-text"
import {
    connackVerdict311,
    socketVerdict,
    type Verdict,
} from "../../src/core/verdict"
import {
    NATIVE_MS,
    plannedRebootMs,
    VETO_MS,
    Watchdog,
} from "../../src/core/watchdog"
import { runCases } from "../node-cases"
import { chiSquare } from "./chi-square"
import { cases } from "./watchdog.cases"

runCases(cases())

const S = 1000
const MIN = 60 * S
const HOUR = 60 * MIN
const DAY = 24 * HOUR

/** One trouble: when an attempt fails for the connection, when the native has answered (-1: it never was asked), and what it is. */
interface Trouble {
    name: string
    failMs: number
    answerMs: number
    verdict: Verdict
}

const failed = (text: string) => explainSocket("dial", "error", false, text)
const troubles: Trouble[] = [
    {
        name: "broker down, refused",
        failMs: 20,
        answerMs: 20,
        verdict: failed("ECONNREFUSED"),
    },
    {
        // The connection has long gone on when the system gives up on the SYN.
        name: "broker down, silent",
        failMs: 30 * S,
        answerMs: 75 * S,
        verdict: socketVerdict("dial", "timeout", false),
    },
    {
        name: "DNS fails, slowly",
        failMs: 20 * S,
        answerMs: 20 * S,
        verdict: failed("getaddrinfo ENOTFOUND"),
    },
    {
        name: "bad credentials",
        failMs: 100,
        answerMs: 50,
        verdict: connackVerdict311(5),
    },
    {
        name: "TCP, and never a CONNACK",
        failMs: 10 * S,
        answerMs: 50,
        verdict: socketVerdict("connack", "timeout", false),
    },
    {
        name: "no network",
        failMs: 0,
        answerMs: -1,
        verdict: socketVerdict("dial", "native", false),
    },
]

/** A supervisor on the real schedule for three days of one trouble: its attempts, and what the watchdog wanted. */
function threeDays({ failMs, answerMs, verdict }: Trouble) {
    const backoff = new Backoff(defaultPolicy(), new Sfc32(1, 2, 3, 4))
    const dog = new Watchdog(0, 0)
    let dials = 0
    let wanted = 0
    let dialMs = backoff.begin()
    let answeredMs = -1
    // One worker: what is dialled before it has answered waits its turn.
    let queued = 0
    let dueMs = 0
    for (let nowMs = 0; nowMs < 3 * DAY; nowMs += S) {
        if (answeredMs >= 0 && nowMs >= answeredMs) {
            answeredMs = queued > 0 ? nowMs + answerMs : -1
            if (queued > 0) queued--
            dog.nativeDone()
        }
        if (nowMs >= dialMs) {
            dials++
            if (answerMs >= 0) {
                dog.nativeStarted(nowMs, NATIVE_MS)
                if (answeredMs >= 0) queued++
                else answeredMs = nowMs + answerMs
            }
            dialMs = nowMs + failMs + backoff.failed(verdict, failMs)
        }
        if (nowMs >= dueMs) {
            dueMs = Math.min(dialMs, nowMs + MIN)
            dog.beat(nowMs, dueMs)
        }
        if (nowMs % (10 * S) === 0 && dog.check(nowMs, true) !== "fine")
            wanted++
    }
    return { dials, wanted }
}

for (const trouble of troubles)
    test(`three days of this are no reason for anything: ${trouble.name}`, () => {
        const { dials, wanted } = threeDays(trouble)
        assert.ok(dials >= 70, `${dials} dials`)
        assert.equal(wanted, 0)
    })

test("a supervisor that keeps its word and natives that answer in time: never a reason, whatever the times", () => {
    const turn = fc.record({
        promiseMs: fc.integer({ min: 0, max: 10 * MIN }),
        lateMs: fc.integer({ min: 0, max: 110 * S }),
        nativeMs: fc.integer({ min: -1, max: NATIVE_MS }),
        mayReboot: fc.boolean(),
    })
    fc.assert(
        fc.property(
            fc.array(turn, { minLength: 1, maxLength: 50 }),
            fc.integer({ min: 0, max: 2 ** 32 - 12 * HOUR }),
            (turns, startMs) => {
                let nowMs = startMs
                const dog = new Watchdog(nowMs, 0)
                let checkMs = nowMs
                let answerMs = -1
                for (const {
                    promiseMs,
                    lateMs,
                    nativeMs,
                    mayReboot,
                } of turns) {
                    dog.beat(nowMs, nowMs + promiseMs)
                    if (nativeMs >= 0 && answerMs < 0) {
                        dog.nativeStarted(nowMs, NATIVE_MS)
                        answerMs = nowMs + nativeMs
                    }
                    nowMs += promiseMs + lateMs
                    for (; checkMs < nowMs; checkMs += 5 * S) {
                        if (answerMs >= 0 && checkMs >= answerMs) {
                            dog.nativeDone()
                            answerMs = -1
                        }
                        assert.equal(dog.check(checkMs, mayReboot), "fine")
                    }
                }
            },
        ),
        { numRuns: 500, seed: 1 },
    )
})

test("stuck at any moment: Wi-Fi within 13 min, a reboot 5 min and a check later, a veto holds for an hour", () => {
    fc.assert(
        fc.property(
            fc.integer({ min: 0, max: 2 ** 32 - 3 * HOUR }),
            fc.integer({ min: 0, max: 10 * MIN }),
            fc.boolean(),
            fc.boolean(),
            (nowMs, promiseMs, native, mayReboot) => {
                const dog = new Watchdog(nowMs, 0)
                if (native) dog.nativeStarted(nowMs, promiseMs)
                else dog.beat(nowMs, nowMs + promiseMs)
                const seen: Record<string, number> = {}
                for (let ms = 0; ms < 2 * HOUR; ms += 10 * S) {
                    if (native) dog.beat(nowMs + ms, nowMs + ms)
                    const remedy = dog.check(nowMs + ms, mayReboot)
                    seen[remedy] ??= ms
                }
                assert.ok(seen.wifi <= 13 * MIN, `${seen.wifi}`)
                const after = seen.reboot - seen.wifi
                assert.equal(after, 5 * MIN + (mayReboot ? 0 : VETO_MS))
            },
        ),
        { numRuns: 300, seed: 1 },
    )
})

test("planned reboots of a fleet: from day 40 to 45, evenly, with an hour to spare before the clock ends", () => {
    const counts = new Array<number>(20).fill(0)
    for (let i = 0; i < 20000; ++i) {
        const id = (0x240ac4123400n + BigInt(i)).toString(16).padStart(16, "0")
        const ms = plannedRebootMs(id)
        assert.ok(Number.isInteger(ms) && ms >= 40 * DAY && ms <= 45 * DAY)
        assert.ok(ms + VETO_MS < 2 ** 32 - HOUR)
        counts[Math.min(19, Math.floor((ms - 40 * DAY) / (DAY / 4)))]++
    }
    assert.ok(chiSquare(counts) < 4, counts.join())
})

test("any calls with any numbers: an answer, never an exception", () => {
    const anyNumber = fc.oneof(
        fc.double(),
        fc.integer(),
        fc.constantFrom(...[NaN, Infinity, -Infinity, 2 ** 31, 2 ** 32]),
    )
    fc.assert(
        fc.property(
            fc.array(fc.tuple(fc.nat(3), anyNumber, anyNumber)),
            anyNumber,
            (calls, reboots) => {
                const dog = new Watchdog(calls[0]?.[1] ?? 0, reboots)
                for (const [what, a, b] of calls)
                    if (what === 0) dog.beat(a, b)
                    else if (what === 1) dog.nativeStarted(a, b)
                    else if (what === 2) dog.nativeDone()
                    else
                        assert.ok(
                            ["fine", "wifi", "reboot"].includes(
                                dog.check(a, b > 0),
                            ),
                        )
                assert.ok(dog.reason.length <= 40)
            },
        ),
        { numRuns: 1000, seed: 1 },
    )
})
