// The connection as timelines: every event in every state, and what devices met in the field. The
// port only records; time and random numbers are scripted, so that each delay is exact.
import { Backoff } from "../../src/core/backoff"
import { defaultPolicy, type Policy } from "../../src/core/policy"
import {
    Connection,
    type Decision,
    type Port,
    type State,
} from "../../src/core/connection"
import { lineOf } from "../../src/core/journal"
import type { Random } from "../../src/core/random"
import {
    connackVerdict311,
    type Cause,
    type Lane,
    type SocketFault,
    type Verdict,
} from "../../src/core/verdict"
import { type Case, equal } from "../cases"

/** What can happen to a connection. */
export type Event =
    | { on: "start" | "stop" | "linkUp" | "linkDown" | "opened" }
    | { on: "tick" | "retryNow" }
    | { on: "socket"; fault: SocketFault; text: string }
    | { on: "accepted"; sessionPresent: boolean }
    | { on: "broken"; verdict: Verdict }

/** Tells the connection; false when it means nothing now. */
export function happen(c: Connection, event: Event, nowMs: number): boolean {
    switch (event.on) {
        case "start":
            return c.start(nowMs)
        case "stop":
            return c.stop(nowMs)
        case "linkUp":
            return c.linkUp(nowMs)
        case "linkDown":
            return c.linkDown(nowMs)
        case "opened":
            return c.opened(nowMs)
        case "socket":
            return c.socketFailed(event.fault, event.text, nowMs)
        case "accepted":
            return c.accepted(event.sessionPresent, nowMs)
        case "broken":
            return c.broken(event.verdict, nowMs)
        case "tick":
            return c.tick(nowMs)
        case "retryNow":
            return c.retryNow(nowMs)
    }
}

/** Every draw is the lowest of its range: ceilings are 1, 2, 4 s and so on, and waits are equal to them. */
class Lowest implements Random {
    next(): number {
        return 0
    }
}

type StateName = State

/** A connection and its world: what it did is in `journal`, when it dialled in `dials`. */
export class World implements Port {
    readonly connection: Connection
    /** Effects in order: `dial`, `connect`, `disconnect`, `close`, a line's `ev`, `>` and a new state. */
    journal = ""
    nowMs = 0
    /** When it dialled, and whether that socket is still there. */
    dials: number[] = []
    isOpen = false
    lastLine: any = undefined
    lostLine: any = undefined
    /** `delayMs` of all retry lines. */
    delays = ""
    /** What the natives say. */
    dialFault: string | undefined = undefined
    writeFault: string | undefined = undefined
    /** A port that breaks its word. */
    dialThrows = false
    writeThrows = false

    constructor(random?: Random, policy?: Policy) {
        const backoff = new Backoff(
            policy ? policy : defaultPolicy(),
            random ? random : new Lowest(),
        )
        const endpoint = { host: "broker", port: 1883, tls: false }
        this.connection = new Connection(endpoint, backoff, this)
    }

    private note(what: string) {
        this.journal += this.journal ? " " + what : what
    }

    dial(): string | undefined {
        this.note("dial")
        equal(this.isOpen, false, `a socket open at the dial at ${this.nowMs}`)
        this.dials.push(this.nowMs)
        this.isOpen = true
        if (this.dialThrows) throw new Error("native threw")
        return this.dialFault
    }

    connect(): string | undefined {
        this.note("connect")
        if (this.writeThrows) throw new Error("native threw")
        return this.writeFault
    }

    disconnect() {
        this.note("disconnect")
        if (this.writeThrows) throw new Error("native threw")
    }

    close() {
        this.note("close")
        this.isOpen = false
    }

    log(what: Decision, nowMs: number, cause?: Cause, flag?: boolean) {
        const line = lineOf(what, this.connection, nowMs, cause, flag, 4)
        this.note(line.ev)
        this.lastLine = line
        if (line.ev === "lost") this.lostLine = line
        if (line.ev === "retry")
            this.delays += (this.delays ? " " : "") + line.delayMs
    }

    changed() {
        this.note(">" + this.connection.state)
    }

    /** The state's name. */
    name(): StateName {
        return this.connection.state
    }

    /** Takes what is in the journal out. */
    did(): string {
        const done = this.journal
        this.journal = ""
        return done
    }

    /** Gives an event now; its effects, or `true` or `false` when it had none. */
    give(event: Event): string {
        this.journal = ""
        const taken = happen(this.connection, event, this.nowMs)
        const done = this.did()
        if (done === "") return taken ? "true" : "false"
        return taken ? done : "false, but " + done
    }

    /** Lets time pass: a tick whenever one is due, up to `untilMs`. */
    runTo(untilMs: number) {
        while (true) {
            const dueMs = this.connection.dueMs
            if (dueMs < 0 || dueMs > untilMs) break
            if (dueMs > this.nowMs) this.nowMs = dueMs
            equal(this.give({ on: "tick" }) !== "false", true, "tick at due")
        }
        this.nowMs = untilMs
    }

    /** Waits for the next dial. */
    runToDial() {
        const dueMs = this.connection.dueMs
        this.runTo(dueMs > this.nowMs ? dueMs : this.nowMs)
        equal(this.name(), "connecting", "state")
    }

    /** The dial's socket opens after 10 ms. */
    open() {
        this.nowMs += 10
        this.give({ on: "opened" })
        equal(this.name(), "awaitingConnack", "state")
    }

    /** From start or any wait to a CONNACK 0. */
    comeUp() {
        this.runToDial()
        this.open()
        this.nowMs += 5
        this.give({ on: "accepted", sessionPresent: false })
        equal(this.name(), "connected", "state")
    }

    /** Times between dials, in ms. */
    gaps(): string {
        let out = ""
        for (let i = 1; i < this.dials.length; ++i)
            out += (i > 1 ? " " : "") + (this.dials[i] - this.dials[i - 1])
        return out
    }

    /** All that an event which means nothing may not change. */
    snapshot(): string {
        const { state, dueMs, sinceMs, hasLink, startAgain, backoff } =
            this.connection
        const { attempts, ceilingMs, proven, connackWaitMs } = backoff
        return JSON.stringify([
            state,
            dueMs,
            sinceMs,
            hasLink,
            !!startAgain,
            attempts,
            ceilingMs,
            proven,
            connackWaitMs,
        ])
    }
}

/** A world that was started and is now in a state, with an overload proven where that is possible. */
export function worldIn(name: StateName, policy?: Policy): World {
    const w = new World(undefined, policy)
    if (name === "halted") return w
    w.give({ on: "start" })
    if (name === "noLink") w.give({ on: "linkDown" })
    else {
        w.runToDial()
        w.open()
        w.give(closed()) // attempt 1 fails: overload is proven
        if (name !== "holdOff") w.runToDial()
        if (name === "connected" || name === "disconnecting") {
            w.open()
            w.give({ on: "accepted", sessionPresent: false })
            w.nowMs += 20
        } else if (name === "awaitingConnack") w.open()
        if (name === "disconnecting") w.give({ on: "stop" })
    }
    equal(w.name(), name, "state to begin with")
    w.did()
    return w
}

export function closed(): Event {
    return { on: "socket", fault: "closed", text: "" }
}

export function error(): Event {
    return { on: "socket", fault: "error", text: "ECONNRESET" }
}

function returnCode(code: number): Event {
    return { on: "broken", verdict: connackVerdict311(code) }
}

/** The ten kinds of events, and both kinds of ticks: `early` at once, `tick` when it is due. */
export const EVENTS = [
    "start",
    "stop",
    "linkUp",
    "linkDown",
    "opened",
    "socket",
    "accepted",
    "broken",
    "retryNow",
    "early",
    "tick",
]

function eventOf(on: string): Event {
    switch (on) {
        case "socket":
            return closed()
        case "accepted":
            return { on: "accepted", sessionPresent: true }
        case "broken":
            return returnCode(3)
        case "early":
            return { on: "tick" }
        default:
            return { on } as Event
    }
}

/** Checks what each of EVENTS does in a state, one row each, in order. */
function everyEvent(name: StateName, rows: string[]): Case {
    return {
        name: `in state ${name} each event does this and nothing else`,
        run: () => {
            equal(rows.length, EVENTS.length, "rows")
            for (let i = 0; i < EVENTS.length; ++i) {
                const on = EVENTS[i]
                const w = worldIn(name)
                if (on === "tick" && w.connection.dueMs >= 0)
                    w.nowMs = w.connection.dueMs
                const before = w.snapshot()
                equal(w.give(eventOf(on)), rows[i], `${name} + ${on}`)
                equal(
                    w.snapshot() === before,
                    rows[i] === "false",
                    `${name} + ${on} changes nothing`,
                )
            }
        },
    }
}

const FAIL = "close retry >holdOff"

/** Counts its failures: the gaps from CONNACK withheld. */
function withhold(w: World, times: number) {
    for (let i = 0; i < times; ++i) {
        w.runToDial()
        w.open()
        const dueMs = w.connection.dueMs
        w.runTo(dueMs - 1)
        equal(w.name(), "awaitingConnack", "a millisecond early")
        w.runTo(dueMs)
        equal(w.lastLine.reason, "no CONNACK in time", "reason")
    }
}

/** B1: CONNACK 0, then FIN, a number of times. */
export function flapping(times: number) {
    const w = new World()
    w.give({ on: "start" })
    let last = 0
    for (let i = 0; i < times; ++i) {
        w.comeUp()
        w.nowMs += 20
        equal(w.give(closed()), "close lost retry >holdOff", "FIN")
        const { delayMs, n } = w.lastLine
        equal(n, i + 1, "failures in a row")
        equal(delayMs > last || i > 11, true, `growth at ${i}`)
        last = delayMs
    }
    equal(last, 3272728, "the last delay")
}

/** B4: a number of refusals. */
export function refusals(times: number) {
    const w = new World()
    w.give({ on: "start" })
    for (let i = 0; i < times; ++i) {
        w.runToDial()
        w.give(error())
        const { delayMs } = w.lastLine
        equal(delayMs >= 1 && delayMs <= 60000, true, "in bounds")
        equal((delayMs | 0) === delayMs, true, "an integer")
    }
    equal(w.lastLine.delayMs, 32000, "the last delay")
    equal(w.lastLine.proven, false, "overload proven")
}

/** All orders of four things. */
export function orders(): number[][] {
    const out: number[][] = []
    for (let a = 0; a < 4; ++a)
        for (let b = 0; b < 4; ++b)
            for (let c = 0; c < 4; ++c)
                if (a !== b && a !== c && b !== c)
                    out.push([a, b, c, 6 - a - b - c])
    return out
}

/**
 * B6: everything at once, from `name`, at the instant its deadline (if any) is due; in every order, or in
 * each `every`th.
 */
export function allAtOnce(name: StateName, every: number) {
    const all = orders()
    for (let at = 0; at < all.length; at += every) {
        const order = all[at]
        const w = worldIn(name)
        if (w.connection.dueMs >= 0) w.nowMs = w.connection.dueMs
        const dials = w.dials.length
        const { attempts } = w.connection.backoff
        w.delays = ""
        for (const i of order) {
            if (i === 0) w.give(error())
            else if (i === 1) w.give(closed())
            else w.give({ on: i === 2 ? "tick" : "start" })
        }
        const what = `${name} in order ${order.join("")}`
        equal(w.name(), "holdOff", what)
        equal(w.connection.backoff.attempts, attempts + 1, `failures, ${what}`)
        equal(w.dials.length, dials, `dials at once, ${what}`)
        equal(w.delays.indexOf(" "), -1, `one retry line, ${what}`)
        w.runTo(w.connection.dueMs)
        equal(w.dials.length, dials + 1, `dials, ${what}`)
    }
}

/** B7: stop in one state, an hour of events that should not matter, and start. */
function stopIn(name: StateName) {
    const w = worldIn(name)
    const dials = w.dials.length
    w.give({ on: "stop" })
    for (const on of ["opened", "socket", "accepted", "broken", "retryNow"])
        w.give(eventOf(on))
    w.runTo(w.nowMs + 3600000)
    w.give({ on: "linkDown" })
    w.give({ on: "linkUp" })
    w.runTo(w.nowMs + 3600000)
    equal(w.name(), "halted", `${name}, stopped`)
    equal(w.dials.length, dials, `dials after stop in ${name}`)
    equal(w.isOpen, false, `socket after stop in ${name}`)
    equal(w.give({ on: "start" }), "retry >holdOff", `start after ${name}`)
    w.comeUp()
}

/** H1: a return code ten times, then 0. */
function refusedWith(code: number, lane: Lane, reason: string, delays: string) {
    const w = worldIn("halted")
    w.give({ on: "start" })
    w.delays = ""
    for (let i = 0; i < 10; ++i) {
        w.runToDial()
        w.open()
        equal(w.give(returnCode(code)), FAIL, `after code ${code}`)
        equal(w.lastLine.lane, lane, "lane")
        equal(w.lastLine.reason, reason, "reason")
    }
    equal(w.delays, delays, `delays after code ${code}`)
    w.comeUp()
    equal(w.lastLine.n, 11, "attempt that came through")
}

const SLOW =
    "300000 600000 1200000 2400000 2400000 2400000 2400000 2400000 2400000 2400000"

/** A world whose connection is up. */
function connectedWorld(): World {
    const w = new World()
    w.give({ on: "start" })
    w.runToDial()
    w.open()
    w.give({ on: "accepted", sessionPresent: false })
    return w
}

export function cases(): Case[] {
    return [
        // start, stop, linkUp, linkDown, opened, socket, accepted, broken, retryNow, early, tick
        everyEvent("halted", [
            "retry >holdOff",
            "false",
            "false",
            "true",
            "false",
            "false",
            "false",
            "false",
            "false",
            "false",
            "false",
        ]),
        everyEvent("noLink", [
            "false",
            "halt >halted",
            "retry >holdOff",
            "false",
            "false",
            "false",
            "false",
            "false",
            "false",
            "false",
            "false",
        ]),
        everyEvent("holdOff", [
            "false",
            "halt >halted",
            "false",
            ">noLink",
            "false",
            "false",
            "false",
            "false",
            "retry >holdOff",
            "false",
            "attempt >connecting dial",
        ]),
        everyEvent("connecting", [
            "false",
            "close halt >halted",
            "false",
            "close >noLink",
            ">awaitingConnack connect",
            FAIL,
            "false",
            FAIL,
            "true",
            "false",
            FAIL,
        ]),
        everyEvent("awaitingConnack", [
            "false",
            "close halt >halted",
            "false",
            "close >noLink",
            "false",
            FAIL,
            "connected >connected",
            FAIL,
            "true",
            "false",
            FAIL,
        ]),
        everyEvent("connected", [
            "false",
            ">disconnecting disconnect",
            "false",
            "lost close >noLink",
            "false",
            "close lost retry >holdOff",
            "false",
            "close lost retry >holdOff",
            "true",
            "false",
            "false",
        ]),
        everyEvent("disconnecting", [
            "true",
            "false",
            "false",
            "close halt >halted",
            "false",
            "close halt >halted",
            "false",
            "false",
            "false",
            "false",
            "close halt >halted",
        ]),
        {
            name: "without a link a start waits for one, and a link without a start changes nothing else",
            run: () => {
                const w = new World()
                equal(w.give({ on: "linkDown" }), "true", "link down")
                equal(w.give({ on: "linkDown" }), "false", "down again")
                equal(w.give({ on: "linkUp" }), "true", "link up, not started")
                equal(w.give({ on: "linkUp" }), "false", "up again")
                w.give({ on: "linkDown" })
                equal(w.give({ on: "start" }), ">noLink", "start")
                equal(w.connection.dueMs, -1, "due")
            },
        },
        {
            name: "every failure of a socket says in its line what it was waiting for",
            run: () => {
                const expected = [
                    "connecting",
                    "closed",
                    "closed before it opened",
                    "connecting",
                    "error",
                    "connection refused",
                    "connecting",
                    "timeout",
                    "no TCP connection in time",
                    "awaitingConnack",
                    "closed",
                    "closed before CONNACK",
                    "connected",
                    "closed",
                    "connection closed",
                    "connected",
                    "timeout",
                    "no PINGRESP in time",
                ]
                for (let i = 0; i < expected.length; i += 3) {
                    const w = worldIn(expected[i] as StateName)
                    const fault = expected[i + 1] as any
                    w.give({ on: "socket", fault, text: "" })
                    equal(w.lastLine.reason, expected[i + 2], expected[i])
                }
            },
        },
        {
            name: "T1: CONNACK withheld five times, the delays grow, the sixth attempt connects",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                withhold(w, 5)
                // 10 ms to open and 10 s, then 30 s, for CONNACK; and 2, 4, 8, 16, 32 s of waiting.
                w.comeUp()
                equal(w.delays, "1000 2000 4000 8000 16000 32000", "delays")
                equal(w.gaps(), "12010 34010 38010 46010 62010", "gaps")
                equal(w.lastLine.n, 6, "attempt that came through")
                equal(w.lastLine.tookMs, 15, "took")
            },
        },
        {
            name: "B1: CONNACK and FIN at once, again and again: the gaps grow to the cap",
            run: () => flapping(20),
        },
        {
            name: "a session that lasted begins anew: the next attempt comes soon",
            run: () => {
                const w = worldIn("halted")
                w.give({ on: "start" })
                w.comeUp()
                w.nowMs += 10000
                w.give(error())
                equal(w.lastLine.delayMs, 1000, "delay")
                equal(w.lastLine.n, 0, "failures in a row")
                equal(w.lastLine.reason, "connection closed", "reason")
            },
        },
        {
            name: "a lost line calls a session a flap only when it was too short",
            run: () => {
                for (const ageMs of [0, 9999, 10000, 3600000]) {
                    const w = new World()
                    w.give({ on: "start" })
                    w.comeUp()
                    w.nowMs += ageMs
                    // The broker says why: such an end is a loss and yet counts as a failure.
                    w.give(returnCode(5))
                    const what = `flap after ${ageMs} ms`
                    equal(w.lostLine.flap, ageMs < 10000, what)
                }
            },
        },
        {
            name: "B4: refused again and again, every delay from 1 ms to the cap",
            run: () => refusals(50),
        },
        {
            name: "B6: error, close, timer and start in one instant while connecting make one attempt",
            run: () => allAtOnce("connecting", 4),
        },
        {
            name: "B6: error, close, timer and start in one instant while CONNACK is awaited make one attempt",
            run: () => allAtOnce("awaitingConnack", 4),
        },
        {
            name: "B6: error, close, timer and start in one instant of a session make one attempt",
            run: () => allAtOnce("connected", 4),
        },
        {
            name: "B7: stop before an attempt: no dial afterwards, and start works again",
            run: () => {
                stopIn("halted")
                stopIn("noLink")
                stopIn("holdOff")
            },
        },
        {
            name: "B7: stop during an attempt or a session: no dial afterwards, and start works again",
            run: () => {
                stopIn("connecting")
                stopIn("awaitingConnack")
                stopIn("connected")
                stopIn("disconnecting")
            },
        },
        {
            name: "stop gives DISCONNECT 100 ms to leave, or less when the broker closes first",
            run: () => {
                const w = worldIn("connected")
                w.give({ on: "stop" })
                const fromMs = w.nowMs
                w.runTo(fromMs + 99)
                equal(w.isOpen, true, "open after 99 ms")
                w.runTo(fromMs + 100)
                equal(w.isOpen, false, "open after 100 ms")
                equal(w.lastLine.reason, "stopped", "reason")
                const quick = worldIn("connected")
                quick.give({ on: "stop" })
                equal(quick.give(closed()), "close halt >halted", "closed")
            },
        },
        {
            name: "start while DISCONNECT leaves: closes, then begins again; stop takes it back",
            run: () => {
                const w = worldIn("disconnecting")
                w.give({ on: "start" })
                w.nowMs = w.connection.dueMs
                equal(
                    w.give({ on: "tick" }),
                    "close halt >halted retry >holdOff",
                    "due",
                )
                equal(w.connection.startAgain, false, "only once")
                const back = worldIn("disconnecting")
                back.give({ on: "start" })
                equal(back.give({ on: "stop" }), "true", "stop after start")
                equal(back.give({ on: "stop" }), "false", "stop again")
                back.runTo(back.nowMs + 3600000)
                equal(back.name(), "halted", "state")
                const down = worldIn("disconnecting")
                down.give({ on: "start" })
                equal(
                    down.give({ on: "linkDown" }),
                    "close halt >halted >noLink",
                    "link lost meanwhile",
                )
            },
        },
        {
            name: "H1: return code 1 goes to the slow lane and says why",
            run: () =>
                refusedWith(1, "slow", "unacceptable protocol version", SLOW),
        },
        {
            name: "H1: return code 2 goes to the slow lane and says why",
            run: () =>
                refusedWith(2, "slow", "client identifier rejected", SLOW),
        },
        {
            name: "H1: return code 4 goes to the slow lane and says why",
            run: () =>
                refusedWith(4, "slow", "bad user name or password", SLOW),
        },
        {
            name: "H1: return code 5 goes to the slow lane and says why",
            run: () => refusedWith(5, "slow", "not authorised", SLOW),
        },
        {
            name: "H1: return code 3 backs off",
            run: () =>
                refusedWith(
                    3,
                    "overload",
                    "server unavailable",
                    "2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000",
                ),
        },
        {
            name: "W1: three hours without a network: no dial, no growth; connects a first wait after it is up",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                w.give({ on: "linkDown" })
                w.runTo(3 * 3600000)
                equal(w.dials.length, 0, "dials")
                equal(w.give({ on: "linkUp" }), "retry >holdOff", "link up")
                equal(w.lastLine.ceilingMs, 1000, "ceiling")
                equal(w.lastLine.delayMs, 1000, "delay")
                equal(w.lastLine.evidence, "none", "evidence")
                w.comeUp()
                equal(w.nowMs, 3 * 3600000 + 1015, "connected at")
            },
        },
        {
            name: "W1: a network that comes and goes every second: no dial before a first wait, no growth",
            run: () => {
                const w = worldIn("holdOff")
                for (let i = 0; i < 60; ++i) {
                    w.give({ on: "linkDown" })
                    w.runTo(w.nowMs + 500)
                    w.give({ on: "linkUp" })
                    w.runTo(w.nowMs + 500)
                }
                equal(w.dials.length, 1, "dials: the one before it began")
                equal(w.lastLine.ceilingMs, 1000, "ceiling")
            },
        },
        {
            name: "the network goes during an attempt: the socket is closed at once and no failure is counted",
            run: () => {
                const w = worldIn("awaitingConnack")
                const { attempts } = w.connection.backoff
                w.give({ on: "linkDown" })
                equal(w.isOpen, false, "open")
                equal(w.connection.backoff.attempts, attempts, "failures")
            },
        },
        {
            name: "W5: the native refuses to open: an ordinary failure each time",
            run: () => {
                const w = new World()
                w.dialFault = "network not available"
                w.give({ on: "start" })
                w.nowMs = 1000
                equal(
                    w.give({ on: "tick" }),
                    "attempt >connecting dial close retry >holdOff",
                    "tick",
                )
                equal(w.lastLine.reason, "socket not opened", "reason")
                equal(w.lastLine.lane, "retry", "lane")
                equal(w.lastLine.proven, false, "overload proven")
                w.runTo(60000)
                equal(w.delays, "1000 2000 4000 8000 16000 32000", "delays")
                w.dialFault = undefined
                w.comeUp()
            },
        },
        {
            name: "W5: CONNECT can't be written: an ordinary failure each time",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                w.writeFault = "socket write returned -10"
                for (let i = 0; i < 3; ++i) {
                    w.runToDial()
                    equal(
                        w.give({ on: "opened" }),
                        ">awaitingConnack connect close retry >holdOff",
                        "opened",
                    )
                    equal(w.lastLine.reason, "socket write failed", "reason")
                }
                equal(w.delays, "1000 2000 4000 8000", "delays")
                equal(w.lastLine.proven, false, "overload proven")
                w.writeFault = undefined
                w.comeUp()
            },
        },
        {
            name: "an effect that throws against its word leaves a deadline, not a storm of dials",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                w.nowMs = 1000
                w.dialThrows = true
                let threw = 0
                try {
                    w.give({ on: "tick" })
                } catch (e) {
                    threw++
                }
                equal(w.connection.dueMs, 31000, "due after the dial")
                w.dialThrows = false
                w.writeThrows = true
                try {
                    w.give({ on: "opened" })
                } catch (e) {
                    threw++
                }
                equal(w.connection.dueMs, 11000, "due after CONNECT")
                w.give({ on: "accepted", sessionPresent: false })
                try {
                    w.give({ on: "stop" })
                } catch (e) {
                    threw++
                }
                equal(threw, 3, "threw")
                w.runTo(3600000)
                equal(w.name(), "halted", "stopped all the same")
            },
        },
        {
            name: "the attempt limit halts with the reason, and start begins anew",
            run: () => {
                const policy = defaultPolicy()
                policy.maxAttempts = 3
                const w = new World(undefined, policy)
                w.give({ on: "start" })
                for (let i = 0; i < 3; ++i) {
                    w.runToDial()
                    equal(w.name(), "connecting", `attempt ${i}`)
                    w.give(error())
                }
                equal(w.name(), "halted", "state")
                equal(w.lastLine.reason, "gave up: connection refused", "line")
                w.runTo(3600000)
                equal(w.dials.length, 3, "dials")
                w.give({ on: "start" })
                w.comeUp()
                equal(w.lastLine.n, 1, "attempt")
            },
        },
        {
            name: "the attempt limit counts sessions that were too short",
            run: () => {
                const policy = defaultPolicy()
                policy.maxAttempts = 1
                const w = worldIn("halted", policy)
                w.give({ on: "start" })
                w.comeUp()
                equal(w.give(closed()), "close lost halt >halted", "FIN")
                equal(w.lastLine.reason, "gave up: connection closed", "reason")
            },
        },
        {
            name: "what we got wrong ourselves halts at once",
            run: () => {
                const w = worldIn("awaitingConnack")
                const verdict = {
                    lane: "stop" as Lane,
                    evidence: "refused" as const,
                    reason: "bad option",
                }
                const done = w.give({ on: "broken", verdict })
                equal(done, "close halt >halted", "effects")
                equal(w.lastLine.reason, "bad option", "reason")
            },
        },
        {
            name: "retry now ends a wait, says so, and what follows starts below the cap",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                withhold(w, 10)
                equal(w.lastLine.delayMs, 1024000, "delay")
                w.nowMs += 5000
                equal(w.give({ on: "retryNow" }), "retry >holdOff", "effects")
                equal(w.lastLine.delayMs, 0, "delay")
                equal(w.lastLine.reason, "asked to retry now", "reason")
                equal(w.lastLine.ceilingMs, 32000, "ceiling")
                equal(w.lastLine.proven, false, "overload proven")
                equal(w.lastLine.n, 10, "failures in a row")
                equal(
                    w.give({ on: "tick" }),
                    "attempt >connecting dial",
                    "tick",
                )
                w.give(error())
                equal(w.lastLine.delayMs, 32000, "delay after the next failure")
            },
        },
        {
            name: "retry now during an attempt leaves it alone and eases the wait after it",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                withhold(w, 10)
                w.runToDial()
                const dueMs = w.connection.dueMs
                w.give({ on: "retryNow" })
                equal(w.connection.dueMs, dueMs, "due")
                w.open()
                w.give({ on: "retryNow" })
                w.give(closed())
                equal(w.lastLine.delayMs, 64000, "delay")
            },
        },
        {
            name: "a socket is not opened within 100 ms of the close of the last",
            run: () => {
                const policy = defaultPolicy()
                policy.minMs = 1
                policy.jitter = "none"
                const w = new World(undefined, policy)
                w.nowMs = 5000
                w.give({ on: "start" })
                equal(w.connection.dueMs, 5100, "after the program's start")
                w.runToDial()
                w.give(error())
                equal(w.connection.dueMs, 5200, "after a failure")
                equal(w.lastLine.delayMs, 100, "the line tells the truth")
                w.nowMs += 40
                equal(w.give({ on: "retryNow" }), "false", "it is now already")
                equal(w.connection.dueMs, 5200, "asked 40 ms later")
                w.runToDial()
                w.give({ on: "linkDown" })
                w.give({ on: "linkUp" })
                equal(w.connection.dueMs, 5300, "after another address")
            },
        },
        {
            name: "CONNACK is given 10 s, and 30 s after any failure",
            run: () => {
                const w = new World()
                w.give({ on: "start" })
                w.runToDial()
                equal(w.connection.dueMs - w.nowMs, 30000, "for the socket")
                w.open()
                equal(w.connection.dueMs - w.nowMs, 10000, "at first")
                w.runTo(w.connection.dueMs)
                w.runToDial()
                w.open()
                equal(w.connection.dueMs - w.nowMs, 30000, "after a stall")
                const other = new World()
                other.give({ on: "start" })
                other.runToDial()
                other.give(error())
                other.runToDial()
                other.open()
                equal(other.connection.dueMs - other.nowMs, 30000, "refused")
            },
        },
        {
            name: "the socket lent out while connected: goodbye, parked, back without a ramp; urgent, at once",
            run: () => {
                const w = connectedWorld()
                const c = w.connection
                c.park(w.nowMs)
                equal(c.state, "disconnecting", "says goodbye")
                w.runTo(c.dueMs)
                equal(c.state, "parked", "then")
                equal(w.isOpen, false, "the socket is free")
                equal(c.dueMs, -1, "no time of its own")
                c.unpark(false, w.nowMs)
                equal(w.lastLine.delayMs, 1000, "a first wait")
                w.runToDial()
                w.give(error())
                c.park(w.nowMs)
                equal(c.state, "parked", "from a hold-off, at once")
                c.unpark(true, w.nowMs)
                equal(w.lastLine.delayMs, 100, "the socket's own pause")
            },
        },
        {
            name: "the socket lent out once a minute to a broker that stalls: its wait goes on, and grows; urgent changes nothing",
            run: () => {
                for (const urgent of [false, true]) {
                    const w = worldIn("holdOff")
                    withhold(w, 8)
                    equal(w.lastLine.delayMs, 512000, "proven")
                    const { c, dueMs } = {
                        c: w.connection,
                        dueMs: w.nowMs + 512000,
                    }
                    for (let i = 0; i < 8; ++i) {
                        w.runTo(w.nowMs + 58000)
                        c.park(w.nowMs)
                        w.nowMs += 2000
                        c.unpark(urgent, w.nowMs)
                        equal(c.dueMs, dueMs, `due after loan ${i}`)
                    }
                    w.runToDial()
                    equal(w.nowMs, dueMs, "dials")
                    c.park(w.nowMs)
                    c.unpark(urgent, w.nowMs + 2000)
                    equal(c.dueMs, dueMs + 1024000, "an attempt cut off")
                    c.park(w.nowMs)
                    const laterMs = w.nowMs + 3600000
                    c.unpark(urgent, laterMs)
                    equal(c.dueMs, laterMs + 100, "over meanwhile")
                }
            },
        },
        {
            name: "the socket lent out in the slow lane, in its wait and in its attempt: it stays there, urgent or not",
            run: () => {
                const w = new World()
                const c = w.connection
                w.give({ on: "start" })
                w.runToDial()
                w.open()
                w.give(returnCode(5))
                const dueMs = w.nowMs + 300000
                c.park(w.nowMs)
                c.unpark(true, w.nowMs + 2000)
                equal(c.dueMs, dueMs, "in its wait")
                equal(w.lastLine.lane, "slow", "lane")
                w.runToDial()
                c.park(w.nowMs)
                c.unpark(true, w.nowMs + 2000)
                equal(c.dueMs, dueMs + 600000, "in its attempt")
            },
        },
        {
            name: "while the socket is lent out nothing dials: not start, not the link, not retry now",
            run: () => {
                const w = connectedWorld()
                const c = w.connection
                c.park(w.nowMs)
                w.runTo(c.dueMs)
                const dials = w.dials.length
                w.give({ on: "retryNow" })
                w.give({ on: "linkDown" })
                equal(c.state, "noLink", "without a network")
                w.give({ on: "linkUp" })
                equal(c.state, "parked", "with one")
                w.give({ on: "stop" })
                equal(c.state, "halted", "stopped")
                w.give({ on: "start" })
                equal(c.state, "parked", "started")
                w.runTo(w.nowMs + 600000)
                equal(w.dials.length, dials, "dials")
                c.unpark(false, w.nowMs)
                w.runToDial()
                equal(w.dials.length, dials + 1, "and then")
            },
        },
        {
            name: "stopped while it says goodbye for a loan: halted, and the loan's end changes nothing",
            run: () => {
                const w = connectedWorld()
                const c = w.connection
                c.park(w.nowMs)
                w.give({ on: "stop" })
                w.runTo(c.dueMs)
                equal(c.state, "halted", "stopped")
                c.unpark(true, w.nowMs)
                equal(c.state, "halted", "still")
            },
        },
    ]
}
