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
import type { Line } from "./line"
import {
    retry,
    slow,
    socketVerdict,
    type Evidence,
    type Lane,
    type Phase,
    type SocketFault,
    type Verdict,
} from "./verdict"

/** Where the connection is; each state carries only its own data. Times are `nowMs` values. */
export type State =
    | { name: "halted"; reason: string }
    | { name: "noLink" }
    | { name: "holdOff"; dueMs: number }
    | { name: "connecting"; sinceMs: number; dueMs: number }
    | { name: "awaitingConnack"; sinceMs: number; dueMs: number }
    | { name: "connected"; sinceMs: number }
    | { name: "disconnecting"; dueMs: number }
    /** `dueMs`: when the wait that goes on meanwhile is over; -1 for a first wait. */
    | { name: "parked"; dueMs: number }

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
    log(line: Line): void
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

/** Between closing a socket and opening the next: a late close would hit the new one (ESP32). */
const REOPEN_MS = 100

/** How long DISCONNECT is given to leave before the socket is closed. */
const LINGER_MS = 100

/** @devsWhenUsed */
export class Connection {
    state: State = { name: "halted", reason: "not started" }
    /** Whether there is a network. Starts true: a device without a Wi-Fi service has one. */
    hasLink = true
    private closedMs = 0
    /** The lane of the last wait. */
    private lane: Lane = "retry"
    /** Sees each failure before anything is made of it. */
    reviewer: Reviewer | undefined = undefined
    /** A start that came while disconnecting. */
    startAgain = false
    /** The socket is lent out, or will be once DISCONNECT has left. */
    lent = false

    constructor(
        readonly endpoint: Endpoint,
        readonly backoff: Backoff,
        private readonly port: Port,
    ) {}

    /** When to send the next `tick`, or -1 for never. */
    dueMs(): number {
        const s = this.state
        switch (s.name) {
            case "holdOff":
            case "connecting":
            case "awaitingConnack":
            case "disconnecting":
                return s.dueMs
            default:
                return -1
        }
    }

    start(nowMs: number): boolean {
        if (this.state.name === "disconnecting") {
            this.startAgain = true
            return true
        }
        if (this.state.name !== "halted") return false
        // At a program start the device has just closed what a crash left open.
        this.closedMs = nowMs
        if (this.hasLink) this.begin("start", nowMs)
        else this.enter({ name: "noLink" })
        return true
    }

    stop(nowMs: number): boolean {
        const changed = this.startAgain
        this.startAgain = false
        switch (this.state.name) {
            case "halted":
            case "disconnecting":
                return changed
            case "connected":
                this.enter({ name: "disconnecting", dueMs: nowMs + LINGER_MS })
                this.port.disconnect()
                return true
            default:
                this.close(nowMs)
                this.halt("stopped")
                return true
        }
    }

    /** Lends the socket out: says goodbye first. It is free once the state is parked, halted or noLink. */
    park(nowMs: number) {
        this.lent = true
        switch (this.state.name) {
            case "connected":
                this.enter({ name: "disconnecting", dueMs: nowMs + LINGER_MS })
                this.port.disconnect()
                this.startAgain = true
                return
            case "disconnecting":
            case "halted":
            case "noLink":
            case "parked":
                return
            case "holdOff":
                return this.giveAway(this.state.dueMs)
            default:
                this.cutOff(nowMs)
        }
    }

    /** Parks from within an attempt: a failure that says nothing about the broker, on the schedule it was on. */
    private cutOff(nowMs: number) {
        const reason = "the socket is lent out"
        const verdict = this.lane === "slow" ? slow(reason) : retry(reason)
        this.close(nowMs)
        const delayMs = this.backoff.failed(verdict, 0)
        if (delayMs < 0) this.retry(delayMs, verdict, nowMs)
        else this.giveAway(nowMs + delayMs)
    }

    /**
     * The socket is back, and closed. What was connected connects after a first wait, anything else when its wait is over.
     * `urgent`: at once, unless it waits in the slow lane or for a broker with proven overload.
     */
    unpark(urgent: boolean, nowMs: number) {
        this.lent = false
        if (this.state.name !== "parked") return
        const { dueMs } = this.state
        const reason = "socket is back"
        this.closedMs = nowMs
        const waits = dueMs >= 0
        const mustWait = waits && (this.backoff.proven || this.lane === "slow")
        if (urgent && !mustWait) this.hold(0, "retry", "none", reason, nowMs)
        else if (waits)
            this.hold(
                dueMs > nowMs ? dueMs - nowMs : 0,
                this.lane,
                "none",
                reason,
                nowMs,
            )
        else this.begin(reason, nowMs)
    }

    linkUp(nowMs: number): boolean {
        if (this.hasLink) return false
        this.hasLink = true
        if (this.state.name === "noLink") this.begin("network is up", nowMs)
        return true
    }

    linkDown(nowMs: number): boolean {
        if (!this.hasLink) return false
        this.hasLink = false
        switch (this.state.name) {
            case "halted":
            case "noLink":
                return true
            case "disconnecting":
                this.close(nowMs)
                this.stopped(nowMs)
                return true
            case "connected":
                this.logLost(retry("network lost"), false, nowMs)
        }
        this.close(nowMs)
        this.enter({ name: "noLink" })
        return true
    }

    opened(nowMs: number): boolean {
        if (this.state.name !== "connecting") return false
        const sinceMs = this.state.sinceMs
        const dueMs = nowMs + this.backoff.connackWaitMs
        this.enter({ name: "awaitingConnack", sinceMs, dueMs })
        const problem = this.port.connect()
        if (problem !== undefined) this.socketFailed("native", problem, nowMs)
        return true
    }

    /** CONNACK 0 came. `mqtt` is the version for the line, where it is not 3.1.1. */
    accepted(session: boolean, nowMs: number, mqtt?: number): boolean {
        if (this.state.name !== "awaitingConnack") return false
        const tookMs = nowMs - this.state.sinceMs
        const n = this.backoff.attempts + 1
        this.backoff.accepted(nowMs)
        this.port.log({ ev: "connected", n, tookMs, session, mqtt })
        this.enter({ name: "connected", sinceMs: nowMs })
        return true
    }

    socketFailed(what: SocketFault, text: string, nowMs: number) {
        const phase = this.phase()
        if (phase === undefined) return this.closedWhileLeaving(nowMs)
        const verdict = socketVerdict(phase, what, this.endpoint.tls, text)
        return this.broken(verdict, nowMs)
    }

    private closedWhileLeaving(nowMs: number): boolean {
        if (this.state.name !== "disconnecting") return false
        this.close(nowMs)
        this.stopped(nowMs)
        return true
    }

    private phase(): Phase | undefined {
        switch (this.state.name) {
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

    broken(failure: Verdict, nowMs: number): boolean {
        let verdict = failure
        const phase = this.phase()
        if (phase !== undefined && this.reviewer && this.reviewer.review) {
            const flap = this.backoff.isFlap(nowMs)
            verdict = this.reviewer.review(failure, phase, flap, nowMs)
        }
        switch (this.state.name) {
            case "connecting":
            case "awaitingConnack": {
                const tookMs = nowMs - this.state.sinceMs
                this.close(nowMs)
                const delayMs = this.backoff.failed(verdict, tookMs)
                this.retry(delayMs, verdict, nowMs)
                return true
            }
            case "connected": {
                this.close(nowMs)
                this.logLost(verdict, this.backoff.isFlap(nowMs), nowMs)
                this.retry(this.backoff.ended(nowMs, verdict), verdict, nowMs)
                return true
            }
            default:
                return false
        }
    }

    tick(nowMs: number): boolean {
        const s = this.state
        const dueMs = this.dueMs()
        if (dueMs < 0 || nowMs < dueMs) return false
        switch (s.name) {
            case "holdOff":
                return this.dial(nowMs)
            case "connecting":
            case "awaitingConnack":
                return this.socketFailed("timeout", "", nowMs)
            default:
                return this.closedWhileLeaving(nowMs)
        }
    }

    private dial(nowMs: number): boolean {
        const { host, port, tls } = this.endpoint
        const n = this.backoff.attempts + 1
        const proto = tls ? "tls" : "tcp"
        this.port.log({ ev: "attempt", n, host, port, proto })
        const dueMs = nowMs + this.backoff.policy.dialMs
        this.enter({ name: "connecting", sinceMs: nowMs, dueMs })
        const problem = this.port.dial()
        if (problem !== undefined) this.socketFailed("native", problem, nowMs)
        return true
    }

    retryNow(nowMs: number): boolean {
        switch (this.state.name) {
            case "holdOff":
                // Asked again, as by a handler that answers each change of state: it is "now" already.
                if (this.state.dueMs <= this.reopenMs(nowMs)) return false
                this.backoff.retryNow()
                this.hold(0, "retry", "none", "asked to retry now", nowMs)
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
    private begin(reason: string, nowMs: number) {
        if (this.lent) return this.giveAway(-1)
        this.hold(this.backoff.begin(), "retry", "none", reason, nowMs)
    }

    /** After a failure: waits `delayMs`, or halts when that is -1. */
    private retry(delayMs: number, verdict: Verdict, nowMs: number) {
        const { lane, evidence, reason } = verdict
        if (delayMs >= 0) this.hold(delayMs, lane, evidence, reason, nowMs)
        else this.halt(lane === "stop" ? reason : "gave up: " + reason)
    }

    private hold(
        waitMs: number,
        lane: Lane,
        evidence: Evidence | "none",
        reason: string,
        nowMs: number,
    ) {
        this.lane = lane
        const reopenMs = this.reopenMs(nowMs)
        const dueMs = nowMs + waitMs > reopenMs ? nowMs + waitMs : reopenMs
        const { attempts: n, slowMs, proven } = this.backoff
        const ceilingMs = lane === "slow" ? slowMs : this.backoff.ceilingMs
        this.port.log({
            ev: "retry",
            n,
            delayMs: dueMs - nowMs,
            ceilingMs,
            lane,
            evidence,
            reason,
            proven,
        })
        this.enter({ name: "holdOff", dueMs })
    }

    /** The earliest time to open a socket again. */
    private reopenMs(nowMs: number): number {
        const dueMs = this.closedMs + REOPEN_MS
        return dueMs > nowMs ? dueMs : nowMs
    }

    private close(nowMs: number) {
        const name = this.state.name
        if (name === "holdOff" || name === "noLink" || name === "parked") return
        this.port.close()
        this.closedMs = nowMs
    }

    private stopped(nowMs: number) {
        const again = this.startAgain
        this.startAgain = false
        if (again && this.lent) return this.giveAway(-1)
        this.halt("stopped")
        if (!again) return
        this.start(nowMs)
    }

    private giveAway(dueMs: number) {
        this.port.log({ ev: "halt", reason: "the socket is lent out" })
        this.enter({ name: "parked", dueMs })
    }

    private halt(reason: string) {
        this.port.log({ ev: "halt", reason })
        this.enter({ name: "halted", reason })
    }

    private logLost(verdict: Verdict, flap: boolean, nowMs: number) {
        if (this.state.name !== "connected") return
        this.port.log({
            ev: "lost",
            upMs: nowMs - this.state.sinceMs,
            lane: verdict.lane,
            evidence: verdict.evidence,
            reason: verdict.reason,
            flap,
        })
    }

    private enter(state: State) {
        this.state = state
        this.port.changed()
    }
}
