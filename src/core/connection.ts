// The connection as a state machine: events in, effects out through a port, and `dueMs` says
// when it wants to be called next. Pure: it is given the time, never waits, and owns no socket.
//
// | state           | it waits for              | leaves it                                          |
// |-----------------|---------------------------|----------------------------------------------------|
// | halted          | start                     | start -> noLink, or holdOff when there is a link   |
// | noLink          | a network                 | link up -> holdOff (a first wait)                  |
// | holdOff         | its time                  | due -> connecting; retry now -> due at once        |
// | connecting      | the socket to open        | opened -> awaitingConnack                          |
// | awaitingConnack | CONNACK                   | accepted -> connected                              |
// | connected       | nothing                   | any failure -> holdOff                             |
// | disconnecting   | DISCONNECT to leave       | due or closed -> halted, or parked                 |
// | parked          | the socket, lent out      | unpark -> holdOff (what was left of the wait)      |
//
// While the socket is lent out (park until unpark), what would begin an attempt enters parked. A wait goes on while
// parked, and an attempt cut off is a failed one: a fleet that lends its sockets often must back off all the same. Only what
// was connected, or began meanwhile, comes back after a first wait.
// From everywhere: stop -> halted (through disconnecting when connected), link down -> noLink.
// A failure in connecting or awaitingConnack -> holdOff, or halted when the verdict or the
// attempt limit says so. A start while disconnecting is kept for later, and a retry now during an
// attempt eases the wait after it. What is not written here changes nothing, and the method returns
// false. A state is entered before its effects begin: should one throw, the state's deadline stands.

import type { Backoff } from "./backoff"
import { Why, type Reason } from "./reason"
import {
    retry,
    slow,
    socketVerdict,
    stop,
    type Cause,
    type Lane,
    type Phase,
    type SocketFault,
    type Verdict,
} from "./verdict"

/** Where the connection is, as in the table above. */
export type State =
    | "halted"
    | "noLink"
    | "holdOff"
    | "connecting"
    | "awaitingConnack"
    | "connected"
    | "disconnecting"
    | "parked"

/** Decisions that a log tells; each is the `ev` of a line. */
export type Decision = "attempt" | "connected" | "lost" | "retry" | "halt"

/** The effects of a connection. Each does its work at once and does not call back. */
export interface Port {
    /** Opens the socket; returns what went wrong, or undefined. */
    dial(): string | undefined
    /** Sends CONNECT; returns what went wrong, or undefined. */
    connect(): string | undefined
    /** Sends DISCONNECT if it can. */
    disconnect(): void
    /** Closes the socket; harmless when there is none. */
    close(): void
    /**
     * Tells a decision; the rest is in the connection (see journal.ts). `cause` is why it lost, waits or halts; `flag`
     * whether there was a session (connected) or a flap (lost).
     */
    log(what: Decision, nowMs: number, cause?: Cause, flag?: boolean): void
    /** The state has changed. */
    changed(): void
}

/** What a connection needs to know for its lines and verdicts. */
export interface Endpoint {
    host: string
    port: number
    tls: boolean
}

/** Who may judge a failure otherwise. */
export interface Reviewer {
    /** Returns what to make of it. `phase` is how far it had come, `flap` whether a session was too short to count. */
    review?(
        verdict: Verdict,
        phase: Phase,
        flap: boolean,
        nowMs: number,
    ): Verdict
}

/** Makes a verdict of what the runtime says in words; socket-text.ts has the one there is. */
export type Explain = (
    phase: Phase,
    what: SocketFault,
    tls: boolean,
    text: string,
) => Verdict

/** Between closing a socket and opening the next: a late close would hit the new one (ESP32). */
const REOPEN_MS = 100

/**
 * The same after a dial that was given up: its native may be about to answer, which shows that it isn't blocked, and
 * the next dial would silence it.
 */
const REDIAL_MS = 1000

/** How long DISCONNECT is given to leave before the socket is closed. */
const LINGER_MS = 100

/** @devsWhenUsed */
export class Connection {
    state: State = "halted"
    /** When to send the next `tick`, or -1 for never. */
    dueMs = -1
    /** When the attempt or the session began that is under way. */
    sinceMs = 0
    /** Whether there is a network. Starts true: a device without a Wi-Fi service has one. */
    hasLink = true
    /** No socket is opened before. */
    freeMs = 0
    /** The lane of the last wait. */
    lane: Lane = "retry"
    /** Sees each failure before anything is made of it. */
    reviewer: Reviewer | undefined
    explain: Explain | undefined
    /** A start that came while disconnecting. */
    startAgain: boolean | undefined
    /** The socket is lent out, or will be once DISCONNECT has left. */
    lent: boolean | undefined
    /** When the wait that goes on while parked is over; -1 for a first wait. */
    parkedMs!: number

    constructor(
        readonly endpoint: Endpoint,
        readonly backoff: Backoff,
        readonly port: Port,
    ) {}

    start(nowMs: number): boolean {
        if (this.state === "disconnecting") {
            this.startAgain = true
            return true
        }
        if (this.state !== "halted") return false
        // At a program start the device has just closed what a crash left open.
        this.freeMs = nowMs + REOPEN_MS
        if (this.hasLink) begin(this, Why.start, nowMs)
        else enter(this, "noLink", -1)
        return true
    }

    stop(nowMs: number): boolean {
        const changed = !!this.startAgain
        this.startAgain = false
        switch (this.state) {
            case "halted":
            case "disconnecting":
                return changed
            case "connected":
                leave(this, nowMs)
                return true
            default:
                closeSocket(this, nowMs)
                halt(this, stop(Why.stopped), nowMs)
                return true
        }
    }

    /** Lends the socket out: says goodbye first. It is free once the state is parked, halted or noLink. */
    park(nowMs: number) {
        this.lent = true
        switch (this.state) {
            case "connected":
                leave(this, nowMs)
                this.startAgain = true
                return
            case "disconnecting":
            case "halted":
            case "noLink":
            case "parked":
                return
            case "holdOff":
                return giveAway(this, this.dueMs, nowMs)
            default:
                cutOff(this, nowMs)
        }
    }

    /**
     * The socket is back, and closed. What was connected connects after a first wait, anything else when its wait is over.
     * `urgent`: at once, unless it waits in the slow lane or for a broker with proven overload.
     */
    unpark(urgent: boolean, nowMs: number) {
        this.lent = false
        if (this.state !== "parked") return
        const { parkedMs, lane } = this
        this.freeMs = nowMs + REOPEN_MS
        const waits = parkedMs >= 0
        const mustWait = waits && (this.backoff.proven || lane === "slow")
        if (urgent && !mustWait)
            hold(this, 0, firstWait("retry", Why.socketBack), nowMs)
        else if (waits)
            hold(
                this,
                parkedMs > nowMs ? parkedMs - nowMs : 0,
                firstWait(lane, Why.socketBack),
                nowMs,
            )
        else begin(this, Why.socketBack, nowMs)
    }

    linkUp(nowMs: number): boolean {
        if (this.hasLink) return false
        this.hasLink = true
        if (this.state === "noLink") begin(this, Why.networkUp, nowMs)
        return true
    }

    linkDown(nowMs: number): boolean {
        if (!this.hasLink) return false
        this.hasLink = false
        switch (this.state) {
            case "halted":
            case "noLink":
                return true
            case "disconnecting":
                return closedWhileLeaving(this, nowMs)
            case "connected":
                this.port.log("lost", nowMs, retry(Why.networkLost), false)
        }
        closeSocket(this, nowMs)
        enter(this, "noLink", -1)
        return true
    }

    opened(nowMs: number): boolean {
        if (this.state !== "connecting") return false
        enter(this, "awaitingConnack", nowMs + this.backoff.connackWaitMs)
        const problem = this.port.connect()
        if (problem !== undefined) this.socketFailed("native", problem, nowMs)
        return true
    }

    /** CONNACK 0 came; `sessionPresent` is for the line. */
    accepted(sessionPresent: boolean, nowMs: number): boolean {
        if (this.state !== "awaitingConnack") return false
        this.backoff.accepted(nowMs)
        this.port.log("connected", nowMs, undefined, sessionPresent)
        this.sinceMs = nowMs
        enter(this, "connected", -1)
        return true
    }

    /** A socket failure; `text` is what the runtime says of it. */
    socketFailed(what: SocketFault, text: string, nowMs: number): boolean {
        const phase = phaseOf(this.state)
        if (phase === undefined) return closedWhileLeaving(this, nowMs)
        const { explain } = this
        const { tls } = this.endpoint
        return this.broken(
            explain
                ? explain(phase, what, tls, text)
                : socketVerdict(phase, what, tls),
            nowMs,
        )
    }

    /** An attempt failed, or a session ended. */
    broken(failure: Verdict, nowMs: number): boolean {
        const phase = phaseOf(this.state)
        if (phase === undefined) return false
        const { backoff, reviewer } = this
        const flap = backoff.isFlap(nowMs)
        const verdict =
            reviewer && reviewer.review
                ? reviewer.review(failure, phase, flap, nowMs)
                : failure
        closeSocket(this, nowMs)
        if (phase === "session") {
            this.port.log("lost", nowMs, verdict, flap)
            goOn(this, backoff.ended(nowMs, verdict), verdict, nowMs)
        } else {
            const delayMs = backoff.failed(verdict, nowMs - this.sinceMs)
            goOn(this, delayMs, verdict, nowMs)
        }
        return true
    }

    /** The time that `dueMs` named has come. */
    tick(nowMs: number): boolean {
        if (this.dueMs < 0 || nowMs < this.dueMs) return false
        return this.state === "holdOff"
            ? dial(this, nowMs)
            : this.socketFailed("timeout", "", nowMs)
    }

    /** The next attempt is made now, and what follows it starts at the cap or below. */
    retryNow(nowMs: number): boolean {
        switch (this.state) {
            case "holdOff":
                // Asked again, as by a handler that answers each change of state: it is "now" already.
                if (this.dueMs <= reopenMs(this, nowMs)) return false
                this.backoff.retryNow()
                hold(this, 0, firstWait("retry", Why.retryNow), nowMs)
                return true
            // "Now" is already under way, or done; what comes next starts from the cap or below.
            case "connecting":
            case "awaitingConnack":
            case "connected":
                this.backoff.retryNow()
                return true
            default:
                return false
        }
    }
}

function leave(connection: Connection, nowMs: number) {
    enter(connection, "disconnecting", nowMs + LINGER_MS)
    connection.port.disconnect()
}

/** Parks from within an attempt: a failure that says nothing about the broker, on the schedule it was on. */
function cutOff(connection: Connection, nowMs: number) {
    const verdict =
        connection.lane === "slow" ? slow(Why.lent) : retry(Why.lent)
    closeSocket(connection, nowMs)
    const delayMs = connection.backoff.failed(verdict, 0)
    if (delayMs < 0) goOn(connection, delayMs, verdict, nowMs)
    else giveAway(connection, nowMs + delayMs, nowMs)
}

function closedWhileLeaving(connection: Connection, nowMs: number): boolean {
    if (connection.state !== "disconnecting") return false
    closeSocket(connection, nowMs)
    const again = connection.startAgain
    connection.startAgain = false
    if (again && connection.lent) giveAway(connection, -1, nowMs)
    else {
        halt(connection, stop(Why.stopped), nowMs)
        if (again) connection.start(nowMs)
    }
    return true
}

function dial(connection: Connection, nowMs: number): boolean {
    connection.port.log("attempt", nowMs)
    connection.sinceMs = nowMs
    enter(connection, "connecting", nowMs + connection.backoff.policy.dialMs)
    const problem = connection.port.dial()
    if (problem !== undefined) connection.socketFailed("native", problem, nowMs)
    return true
}

/** The first wait of an outage that no failure of ours began. */
function begin(connection: Connection, reason: Reason, nowMs: number) {
    if (connection.lent) return giveAway(connection, -1, nowMs)
    hold(
        connection,
        connection.backoff.begin(),
        firstWait("retry", reason),
        nowMs,
    )
}

/** After a failure: waits `delayMs`, or halts when that is -1. */
function goOn(
    connection: Connection,
    delayMs: number,
    verdict: Verdict,
    nowMs: number,
) {
    if (delayMs >= 0) hold(connection, delayMs, verdict, nowMs)
    else halt(connection, verdict, nowMs)
}

function hold(
    connection: Connection,
    waitMs: number,
    cause: Cause,
    nowMs: number,
) {
    connection.lane = cause.lane
    const freeMs = reopenMs(connection, nowMs)
    const dueMs = nowMs + waitMs
    connection.dueMs = dueMs > freeMs ? dueMs : freeMs
    connection.port.log("retry", nowMs, cause)
    enter(connection, "holdOff", connection.dueMs)
}

/** The earliest time to open a socket again. */
function reopenMs(connection: Connection, nowMs: number): number {
    const { freeMs } = connection
    return freeMs > nowMs ? freeMs : nowMs
}

function closeSocket(connection: Connection, nowMs: number) {
    const { state } = connection
    if (state === "holdOff" || state === "noLink" || state === "parked") return
    const gaveUp = state === "connecting" && nowMs >= connection.dueMs
    connection.port.close()
    connection.freeMs = nowMs + (gaveUp ? REDIAL_MS : REOPEN_MS)
}

function giveAway(connection: Connection, dueMs: number, nowMs: number) {
    connection.parkedMs = dueMs
    connection.port.log("halt", nowMs, stop(Why.lent))
    enter(connection, "parked", -1)
}

function halt(connection: Connection, cause: Cause, nowMs: number) {
    connection.port.log("halt", nowMs, cause)
    enter(connection, "halted", -1)
}

function enter(connection: Connection, state: State, dueMs: number) {
    connection.state = state
    connection.dueMs = dueMs
    connection.port.changed()
}

/** How far a connection in this state has come; undefined when there is none. */
function phaseOf(state: State): Phase | undefined {
    switch (state) {
        case "connecting":
            return "dial"
        case "awaitingConnack":
            return "connack"
        case "connected":
            return "session"
        default:
            return undefined
    }
}

/** Why a wait began that no failure did. */
function firstWait(lane: Lane, reason: Reason): Cause {
    return { lane, evidence: "none", reason }
}
