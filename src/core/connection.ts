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
    private closedMs = 0
    /** The lane of the last wait. */
    private lane: Lane = "retry"
    /** Sees each failure before anything is made of it. */
    reviewer: Reviewer | undefined
    explain: Explain | undefined
    /** A start that came while disconnecting. */
    startAgain = false
    /** The socket is lent out, or will be once DISCONNECT has left. */
    lent = false
    /** When the wait that goes on while parked is over; -1 for a first wait. */
    private parkedMs = -1

    constructor(
        readonly endpoint: Endpoint,
        readonly backoff: Backoff,
        private readonly port: Port,
    ) {}

    start(nowMs: number): boolean {
        if (this.state === "disconnecting") {
            this.startAgain = true
            return true
        }
        if (this.state !== "halted") return false
        // At a program start the device has just closed what a crash left open.
        this.closedMs = nowMs
        if (this.hasLink) this.begin(Why.start, nowMs)
        else this.enter("noLink", -1)
        return true
    }

    stop(nowMs: number): boolean {
        const changed = this.startAgain
        this.startAgain = false
        switch (this.state) {
            case "halted":
            case "disconnecting":
                return changed
            case "connected":
                this.leave(nowMs)
                return true
            default:
                this.close(nowMs)
                this.halt(stop(Why.stopped), nowMs)
                return true
        }
    }

    private leave(nowMs: number) {
        this.enter("disconnecting", nowMs + LINGER_MS)
        this.port.disconnect()
    }

    /** Lends the socket out: says goodbye first. It is free once the state is parked, halted or noLink. */
    park(nowMs: number) {
        this.lent = true
        switch (this.state) {
            case "connected":
                this.leave(nowMs)
                this.startAgain = true
                return
            case "disconnecting":
            case "halted":
            case "noLink":
            case "parked":
                return
            case "holdOff":
                return this.giveAway(this.dueMs, nowMs)
            default:
                this.cutOff(nowMs)
        }
    }

    /** Parks from within an attempt: a failure that says nothing about the broker, on the schedule it was on. */
    private cutOff(nowMs: number) {
        const verdict = this.lane === "slow" ? slow(Why.lent) : retry(Why.lent)
        this.close(nowMs)
        const delayMs = this.backoff.failed(verdict, 0)
        if (delayMs < 0) this.retry(delayMs, verdict, nowMs)
        else this.giveAway(nowMs + delayMs, nowMs)
    }

    /**
     * The socket is back, and closed. What was connected connects after a first wait, anything else when its wait is over.
     * `urgent`: at once, unless it waits in the slow lane or for a broker with proven overload.
     */
    unpark(urgent: boolean, nowMs: number) {
        this.lent = false
        if (this.state !== "parked") return
        const { parkedMs, lane } = this
        this.closedMs = nowMs
        const waits = parkedMs >= 0
        const mustWait = waits && (this.backoff.proven || lane === "slow")
        if (urgent && !mustWait)
            this.hold(0, firstWait("retry", Why.socketBack), nowMs)
        else if (waits)
            this.hold(
                parkedMs > nowMs ? parkedMs - nowMs : 0,
                firstWait(lane, Why.socketBack),
                nowMs,
            )
        else this.begin(Why.socketBack, nowMs)
    }

    linkUp(nowMs: number): boolean {
        if (this.hasLink) return false
        this.hasLink = true
        if (this.state === "noLink") this.begin(Why.networkUp, nowMs)
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
                return this.closedWhileLeaving(nowMs)
            case "connected":
                this.port.log("lost", nowMs, retry(Why.networkLost), false)
        }
        this.close(nowMs)
        this.enter("noLink", -1)
        return true
    }

    opened(nowMs: number): boolean {
        if (this.state !== "connecting") return false
        this.enter("awaitingConnack", nowMs + this.backoff.connackWaitMs)
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
        this.enter("connected", -1)
        return true
    }

    /** A socket failure; `text` is what the runtime says of it. */
    socketFailed(what: SocketFault, text: string, nowMs: number): boolean {
        const phase = phaseOf(this.state)
        if (phase === undefined) return this.closedWhileLeaving(nowMs)
        const { explain } = this
        const { tls } = this.endpoint
        return this.broken(
            explain
                ? explain(phase, what, tls, text)
                : socketVerdict(phase, what, tls),
            nowMs,
        )
    }

    private closedWhileLeaving(nowMs: number): boolean {
        if (this.state !== "disconnecting") return false
        this.close(nowMs)
        const again = this.startAgain
        this.startAgain = false
        if (again && this.lent) this.giveAway(-1, nowMs)
        else {
            this.halt(stop(Why.stopped), nowMs)
            if (again) this.start(nowMs)
        }
        return true
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
        const tookMs = nowMs - this.sinceMs
        this.close(nowMs)
        if (phase === "session") {
            this.port.log("lost", nowMs, verdict, flap)
            this.retry(backoff.ended(nowMs, verdict), verdict, nowMs)
        } else this.retry(backoff.failed(verdict, tookMs), verdict, nowMs)
        return true
    }

    /** The time that `dueMs` named has come. */
    tick(nowMs: number): boolean {
        if (this.dueMs < 0 || nowMs < this.dueMs) return false
        return this.state === "holdOff"
            ? this.dial(nowMs)
            : this.socketFailed("timeout", "", nowMs)
    }

    private dial(nowMs: number): boolean {
        this.port.log("attempt", nowMs)
        this.sinceMs = nowMs
        this.enter("connecting", nowMs + this.backoff.policy.dialMs)
        const problem = this.port.dial()
        if (problem !== undefined) this.socketFailed("native", problem, nowMs)
        return true
    }

    /** The next attempt is made now, and what follows it starts at the cap or below. */
    retryNow(nowMs: number): boolean {
        switch (this.state) {
            case "holdOff":
                // Asked again, as by a handler that answers each change of state: it is "now" already.
                if (this.dueMs <= this.reopenMs(nowMs)) return false
                this.backoff.retryNow()
                this.hold(0, firstWait("retry", Why.retryNow), nowMs)
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

    /** The first wait of an outage that no failure of ours began. */
    private begin(reason: Reason, nowMs: number) {
        if (this.lent) return this.giveAway(-1, nowMs)
        this.hold(this.backoff.begin(), firstWait("retry", reason), nowMs)
    }

    /** After a failure: waits `delayMs`, or halts when that is -1. */
    private retry(delayMs: number, verdict: Verdict, nowMs: number) {
        if (delayMs >= 0) this.hold(delayMs, verdict, nowMs)
        else this.halt(verdict, nowMs)
    }

    private hold(waitMs: number, cause: Cause, nowMs: number) {
        this.lane = cause.lane
        const reopenMs = this.reopenMs(nowMs)
        const dueMs = nowMs + waitMs
        this.dueMs = dueMs > reopenMs ? dueMs : reopenMs
        this.port.log("retry", nowMs, cause)
        this.enter("holdOff", this.dueMs)
    }

    /** The earliest time to open a socket again. */
    private reopenMs(nowMs: number): number {
        const dueMs = this.closedMs + REOPEN_MS
        return dueMs > nowMs ? dueMs : nowMs
    }

    private close(nowMs: number) {
        const { state } = this
        if (state === "holdOff" || state === "noLink" || state === "parked")
            return
        this.port.close()
        this.closedMs = nowMs
    }

    private giveAway(dueMs: number, nowMs: number) {
        this.parkedMs = dueMs
        this.port.log("halt", nowMs, stop(Why.lent))
        this.enter("parked", -1)
    }

    private halt(cause: Cause, nowMs: number) {
        this.port.log("halt", nowMs, cause)
        this.enter("halted", -1)
    }

    private enter(state: State, dueMs: number) {
        this.state = state
        this.dueMs = dueMs
        this.port.changed()
    }
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
