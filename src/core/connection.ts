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

import type { AdaptiveBackoff } from "./adaptive"
import { Why, type Reason } from "./reason"
import {
    retry,
    socketVerdict,
    type Cause,
    type Lane,
    type Phase,
    type SocketFault,
    type Verdict,
    verdict,
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
    /** What a close means once DISCONNECT is on its way; only a program that says goodbye carries it. */
    leaving: typeof closedWhileLeaving | undefined
    /** The socket is lent out, or will be once DISCONNECT has left: parks it, as only a program that lends can. */
    lent: typeof giveAway | undefined
    /** When the wait that goes on while parked is over; -1 for a first wait. */
    parkedMs!: number

    constructor(
        readonly endpoint: Endpoint,
        readonly backoff: AdaptiveBackoff,
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
                halt(this, verdict("stop", "refused", Why.stopped), nowMs)
                return true
        }
    }

    /** Lends the socket out: says goodbye first. It is free once the state is parked, halted or noLink. */
    park(nowMs: number) {
        this.lent = giveAway
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
        this.lent = undefined
        if (this.state !== "parked") return
        const parkedMs = this.parkedMs
        const lane = this.lane
        this.freeMs = nowMs + REOPEN_MS
        const waits = parkedMs >= 0
        const mustWait = waits && (this.backoff.proven || lane === "slow")
        if (urgent && !mustWait)
            hold(this, 0, verdict("retry", "none", Why.socketBack), nowMs)
        else if (waits)
            hold(
                this,
                parkedMs > nowMs ? parkedMs - nowMs : 0,
                verdict(lane, "none", Why.socketBack),
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
                if (this.leaving) this.leaving(this, nowMs)
                return true
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
        if (phase === undefined) {
            if (this.leaving) return this.leaving(this, nowMs)
            return false
        }
        const explain = this.explain
        const tls = this.endpoint.tls
        if (explain) return this.broken(explain(phase, what, tls, text), nowMs)
        return this.broken(socketVerdict(phase, what, tls), nowMs)
    }

    /** An attempt failed, or a session ended. */
    broken(failure: Verdict, nowMs: number): boolean {
        const phase = phaseOf(this.state)
        if (phase === undefined) return false
        const backoff = this.backoff
        const reviewer = this.reviewer
        const flap = backoff.isFlap(nowMs)
        let judged = failure
        if (reviewer && reviewer.review)
            judged = reviewer.review(failure, phase, flap, nowMs)
        closeSocket(this, nowMs)
        let delayMs: number
        if (phase === "session") {
            this.port.log("lost", nowMs, judged, flap)
            delayMs = backoff.ended(nowMs, judged)
        } else delayMs = backoff.failed(judged, nowMs - this.sinceMs)
        if (delayMs >= 0) hold(this, delayMs, judged, nowMs)
        else halt(this, judged, nowMs)
        return true
    }

    /** The time that `dueMs` named has come. */
    tick(nowMs: number): boolean {
        if (this.dueMs < 0) return false
        if (nowMs < this.dueMs) return false
        if (this.state === "holdOff") return dial(this, nowMs)
        return this.socketFailed("timeout", "", nowMs)
    }

    /** The next attempt is made now, and what follows it starts at the cap or below. */
    retryNow(nowMs: number): boolean {
        switch (this.state) {
            case "holdOff":
                // Asked again, as by a handler that answers each change of state: it is "now" already.
                if (this.dueMs <= reopenMs(this, nowMs)) return false
                this.backoff.retryNow()
                hold(this, 0, verdict("retry", "none", Why.retryNow), nowMs)
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
    connection.leaving = closedWhileLeaving
    enter(connection, "disconnecting", nowMs + LINGER_MS)
    connection.port.disconnect()
}

/** Parks from within an attempt: a failure that says nothing about the broker, on the schedule it was on. */
function cutOff(connection: Connection, nowMs: number) {
    const lane = connection.lane === "slow" ? "slow" : "retry"
    const why = verdict(lane, "refused", Why.lent)
    closeSocket(connection, nowMs)
    const delayMs = connection.backoff.failed(why, 0)
    if (delayMs < 0) halt(connection, why, nowMs)
    else giveAway(connection, nowMs + delayMs, nowMs)
}

function closedWhileLeaving(connection: Connection, nowMs: number): boolean {
    if (connection.state !== "disconnecting") return false
    closeSocket(connection, nowMs)
    const again = connection.startAgain
    connection.startAgain = false
    if (again && connection.lent) connection.lent(connection, -1, nowMs)
    else {
        halt(connection, verdict("stop", "refused", Why.stopped), nowMs)
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
    if (connection.lent) return connection.lent(connection, -1, nowMs)
    const delayMs = connection.backoff.begin()
    hold(connection, delayMs, verdict("retry", "none", reason), nowMs)
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
    const freeMs = connection.freeMs
    if (freeMs > nowMs) return freeMs
    return nowMs
}

function closeSocket(connection: Connection, nowMs: number) {
    let waitMs = REOPEN_MS
    switch (connection.state) {
        case "holdOff":
        case "noLink":
        case "parked":
            return
        case "connecting":
            if (nowMs >= connection.dueMs) waitMs = REDIAL_MS
    }
    connection.port.close()
    connection.freeMs = nowMs + waitMs
}

function giveAway(connection: Connection, dueMs: number, nowMs: number) {
    connection.parkedMs = dueMs
    connection.port.log("halt", nowMs, verdict("stop", "refused", Why.lent))
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
