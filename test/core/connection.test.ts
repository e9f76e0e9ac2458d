// Runs the table of connection.cases.ts under Node; then random events at random times against
// what must hold in every order: one socket, no storm of ticks, a line for each decision.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { defaultPolicy, type Jitter } from "../../src/core/policy"
import {
    formatLine,
    LINE_MAX_BYTES,
    parseLine,
    type Line,
} from "../../src/core/line"
import { Sfc32 } from "../../src/core/random"
import { connackVerdict311, type Verdict } from "../../src/core/verdict"
import { runCases } from "../node-cases"
import {
    allAtOnce,
    cases,
    closed,
    error,
    type Event,
    flapping,
    happen,
    orders,
    refusals,
    World,
    worldIn,
} from "./connection.cases"

runCases(cases())

const verdict: fc.Arbitrary<Verdict> = fc.oneof(
    fc.integer({ min: 1, max: 6 }).map(connackVerdict311),
    fc.constant<Verdict>({
        lane: "overload",
        evidence: "reset",
        reason: "MQTT-3.2.0-2 second CONNACK",
    }),
)

const event: fc.Arbitrary<Event> = fc.oneof(
    { weight: 8, arbitrary: fc.constant<Event>({ on: "opened" }) },
    {
        weight: 5,
        arbitrary: fc.constantFrom<Event>(
            { on: "accepted", sessionPresent: false },
            closed(),
            error(),
            { on: "tick" },
        ),
    },
    {
        weight: 2,
        arbitrary: fc.constantFrom<Event>(
            { on: "start" },
            { on: "linkUp" },
            { on: "linkDown" },
            { on: "retryNow" },
            { on: "socket", fault: "timeout", text: "" },
        ),
    },
    { weight: 1, arbitrary: fc.constant<Event>({ on: "stop" }) },
    {
        weight: 2,
        arbitrary: verdict.map((verdict): Event => ({ on: "broken", verdict })),
    },
)

/** `opened` stands for whatever a broker that is well does next. */
function eventNow(w: World, event: Event): Event {
    return event.on === "opened" && w.name() === "awaitingConnack"
        ? { on: "accepted", sessionPresent: false }
        : event
}

/** As long as a wait lasts; no time when nothing is waited for but the other side. */
const UNTIL_DUE = -1

function waitMs(w: World, afterMs: number): number {
    if (afterMs !== UNTIL_DUE) return afterMs
    return w.name() === "holdOff" ? w.connection.dueMs - w.nowMs : 0
}

/** What happens: an event, how long after the one before, and what the natives say meanwhile. */
interface Step {
    event: Event
    afterMs: number
    dialFault: string | undefined
    writeFault: string | undefined
}

const fault = fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant("network not available") },
)

const step: fc.Arbitrary<Step> = fc.record({
    event,
    afterMs: fc.oneof(
        { weight: 8, arbitrary: fc.constant(UNTIL_DUE) },
        { weight: 8, arbitrary: fc.nat(200) },
        { weight: 2, arbitrary: fc.nat(40_000) },
        { weight: 1, arbitrary: fc.nat(5_000_000) },
    ),
    dialFault: fault,
    writeFault: fault,
})

const policy = fc
    .record({
        minMs: fc.constantFrom(1, 50, 1000),
        jitter: fc.constantFrom<Jitter>(
            "proportional",
            "equal",
            "full",
            "none",
        ),
        spreadMs: fc.constantFrom(0, 0, 120_000),
        maxAttempts: fc.constantFrom(0, 0, 5),
    })
    .map(p => ({
        ...defaultPolicy(),
        ...p,
        spreadMs: p.jitter === "none" ? 0 : p.spreadMs,
    }))

/** The line that must be the last one before each change to a state; undefined: none of ours. */
const LINE_OF: Record<string, string | undefined> = {
    halted: "halt",
    holdOff: "retry",
    connecting: "attempt",
    connected: "connected",
}

/** A world that checks its own rules at each effect. */
class StrictWorld extends World {
    /** Lines since the last change of state. */
    private lines: string[] = []
    private from = "halted"
    /** What the last retry line promised. */
    private promisedMs = -1
    private closedMs = -100

    override log(...told: Parameters<World["log"]>) {
        super.log(...told)
        const line: Line = this.lastLine
        const text = formatLine(line)
        assert.ok(text.length <= LINE_MAX_BYTES)
        assert.ok(parseLine(`# 1 ${text}`), text)
        this.lines.push(line.ev)
        if (line.ev === "retry") {
            assert.equal(line.delayMs | 0, line.delayMs)
            const asked = line.reason === "asked to retry now"
            assert.ok(line.delayMs >= (asked ? 0 : 1), text)
            const p = this.connection.backoff.policy
            const bound =
                line.lane === "slow"
                    ? p.slowCapMs
                    : line.proven || p.spreadMs > 0
                      ? p.overloadCapMs
                      : p.capMs
            assert.ok(line.delayMs <= bound, text)
            this.promisedMs = this.nowMs + line.delayMs
        }
    }

    override dial() {
        assert.equal(this.connection.state, "connecting")
        assert.ok(this.promisedMs >= 0, "dialled without a retry line")
        assert.ok(this.nowMs >= this.promisedMs, "dialled early")
        assert.ok(this.nowMs - this.closedMs >= 100, "reopened too soon")
        return super.dial()
    }

    override close() {
        super.close()
        this.closedMs = this.nowMs
    }

    override changed() {
        super.changed()
        const to = this.connection.state
        const wanted = LINE_OF[to]
        if (wanted)
            assert.equal(this.lines.at(-1), wanted, `${this.from}>${to}`)
        const leftSession = this.from === "connected" && to !== "disconnecting"
        assert.equal(this.lines.includes("lost"), leftSession)
        this.lines = []
        this.from = to
    }
}

/** States with a socket. */
const WITH_SOCKET = [
    "connecting",
    "awaitingConnack",
    "connected",
    "disconnecting",
]

/** States that end by themselves. */
const WITH_DEADLINE = [
    "holdOff",
    "connecting",
    "awaitingConnack",
    "disconnecting",
]

/** The rules that hold between two events. */
function check(w: StrictWorld) {
    const { connection } = w
    const { state } = connection
    assert.equal(w.isOpen, WITH_SOCKET.includes(state), "socket")
    assert.equal(connection.dueMs >= 0, WITH_DEADLINE.includes(state))
    if (!connection.hasLink)
        assert.ok(["halted", "noLink"].includes(state), state)
    else assert.notEqual(state, "noLink")
    if (connection.startAgain) assert.equal(state, "disconnecting")
}

function handle(w: StrictWorld, event: Event) {
    const before = w.snapshot()
    const { state } = w.connection
    w.did()
    const taken = happen(w.connection, event, w.nowMs)
    if (!taken) {
        assert.equal(w.did(), "", "effects of what meant nothing")
        assert.equal(w.snapshot(), before)
        assert.equal(w.connection.state, state)
    }
    check(w)
    return taken
}

/** Ticks as a device does, as soon as they are due; each must move on. */
function tickWhileDue(w: StrictWorld) {
    for (let ticks = 0; ; ++ticks) {
        const dueMs = w.connection.dueMs
        if (dueMs < 0 || dueMs > w.nowMs) return
        assert.ok(ticks < 2, `storm of ticks in ${w.name()}`)
        assert.ok(
            handle(w, { on: "tick" }),
            "a tick at its time does something",
        )
    }
}

test("random events: one socket, no storm, a line for every decision, every wait in its bounds", () => {
    fc.assert(
        fc.property(
            fc.array(step, { maxLength: 80 }),
            policy,
            fc.integer(),
            (steps, policy, seed) => {
                const w = new StrictWorld(new Sfc32(seed, 1, 2, 3), policy)
                handle(w, { on: "start" })
                for (const s of steps) {
                    w.dialFault = s.dialFault
                    w.writeFault = s.writeFault
                    // The device wakes when it is due, or the event comes first.
                    const untilMs = w.nowMs + waitMs(w, s.afterMs)
                    for (let wakes = 0; wakes < 50; ++wakes) {
                        const dueMs = w.connection.dueMs
                        if (dueMs < 0 || dueMs > untilMs) break
                        w.nowMs = Math.max(w.nowMs, dueMs)
                        tickWhileDue(w)
                    }
                    w.nowMs = Math.max(w.nowMs, untilMs)
                    handle(w, eventNow(w, s.event))
                    tickWhileDue(w)
                }
            },
        ),
        { numRuns: 1500 },
    )
})

test("random events, then a broker that is well: every device that was not stopped comes back", () => {
    fc.assert(
        fc.property(
            fc.array(step, { maxLength: 40 }),
            fc.integer(),
            (steps, seed) => {
                const w = new StrictWorld(new Sfc32(seed, 4, 5, 6))
                for (const s of steps) {
                    w.dialFault = s.dialFault
                    w.writeFault = s.writeFault
                    w.nowMs += Math.max(0, waitMs(w, s.afterMs))
                    handle(w, eventNow(w, s.event))
                }
                w.dialFault = undefined
                w.writeFault = undefined
                handle(w, { on: "linkUp" })
                handle(w, { on: "start" })
                const endMs = w.nowMs + 3 * 3_600_000
                while (w.name() !== "connected" && w.nowMs < endMs) {
                    const dueMs = w.connection.dueMs
                    if (w.name() === "connecting") handle(w, { on: "opened" })
                    else if (w.name() === "awaitingConnack")
                        handle(w, { on: "accepted", sessionPresent: false })
                    else {
                        assert.ok(dueMs >= 0, `stuck in ${w.name()}`)
                        w.nowMs = Math.max(w.nowMs, dueMs)
                        handle(w, { on: "tick" })
                    }
                }
                assert.equal(w.name(), "connected")
            },
        ),
        { numRuns: 500 },
    )
})

test("B4: a thousand failures of every kind, each wait an integer in its bounds", () => {
    const w = new StrictWorld(new Sfc32(7, 8, 9, 10))
    const faults = [closed(), error(), { on: "tick" } as Event]
    handle(w, { on: "start" })
    for (let i = 0; i < 1000; ++i) {
        w.nowMs = Math.max(w.nowMs, w.connection.dueMs)
        handle(w, { on: "tick" })
        if (i % 3) handle(w, { on: "opened" })
        const fault = faults[i % faults.length]
        if (fault.on === "tick") w.nowMs = w.connection.dueMs
        assert.ok(handle(w, fault))
    }
    assert.equal(w.dials.length, 1000)
})

test("B1: CONNACK and FIN at once, 50 times: the gaps grow to the cap", () => {
    flapping(50)
})

test("B4: a thousand refusals, every delay from 1 ms to the cap", () => {
    refusals(1000)
})

test("B6: error, close, timer and start in one instant, in every order, make one attempt", () => {
    allAtOnce("connecting", 1)
    allAtOnce("awaitingConnack", 1)
    allAtOnce("connected", 1)
})

test("every order of four things is among the orders", () => {
    assert.equal(new Set(orders().map(o => o.join(""))).size, 24)
})

test("no pair of events, in any state, has more than one dial", () => {
    const names = [
        "halted",
        "noLink",
        "holdOff",
        "connecting",
        "awaitingConnack",
        "connected",
        "disconnecting",
    ] as const
    const all: Event[] = [
        { on: "start" },
        { on: "stop" },
        { on: "linkUp" },
        { on: "linkDown" },
        { on: "opened" },
        closed(),
        { on: "accepted", sessionPresent: true },
        { on: "broken", verdict: connackVerdict311(5) },
        { on: "tick" },
        { on: "retryNow" },
    ]
    for (const name of names)
        for (const one of all)
            for (const two of all) {
                const w = worldIn(name)
                const dials = w.dials.length
                w.give(one)
                w.give(two)
                assert.ok(w.dials.length <= dials + 1)
            }
})
