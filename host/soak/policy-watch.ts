// Reads a device's lines and holds them against the policy (policy-bounds.ts); it is told about the
// wire, so that lines and deeds are compared.
import type { Policy } from "../../src/core/policy"
import type {
    ConnectedLine,
    Line,
    LostLine,
    RetryLine,
} from "../../src/core/line"
import { SLACK_MS, type Report } from "./invariants"
import {
    easedCeiling,
    firstCeiling,
    firstWait,
    fit,
    halved,
    isIn,
    nextCeiling,
    proves,
    REDIAL_MS,
    silence,
    SILENCES,
    slowCeiling,
    slowWait,
    waitUnder,
    type Range,
} from "./policy-bounds"

/** What a program has promised: its policy and its patience with a session. */
export interface Promises {
    policy: Policy
    keepAliveMs: number
    pingMs: number
}

/** Where a device is, as its lines say. */
export type Phase =
    /** No power, or dead. */
    | "off"
    | "booted"
    | "waiting"
    | "attempting"
    | "connected"
    /** After `lost`, before what comes of it. */
    | "lost"
    | "noLink"
    | "halted"
    | "held"

/** Once overload was proven, a session has to last this long. */
const PROVEN_STABLE_MS = 600_000
/** The longest hold. */
const MAX_HOLD_MS = 3_600_000

/** A line that must come because something happened comes within this. */
const LINE_MS = 1000

export class PolicyWatch {
    phase: Phase = "off"
    /** When the current phase began, world's time. */
    sinceMs = 0
    /** The device's clock when the current phase began. */
    private sinceDeviceMs = 0
    /** When the next attempt is due, by the device's clock. */
    private dueDeviceMs = 0
    /** The same in the world's time; only in phase waiting. */
    dueMs = 0
    private n = 0
    ceilingMs = 0
    private proven = false
    /** Silent attempts in a row under this ceiling; -1 when that is not sure. */
    private silences = 0
    private longWait = false
    private hasLink = true
    private lost: LostLine | undefined
    /** The socket opened for this attempt, world's time; -1 before. */
    private openedMs = -1
    private dialled = false
    private connackSeen = false
    /** The connection ended and a line has to say so until then; -1 for none. */
    private owedMs = -1
    lastInMs = 0
    /** What was left of the hold at its last line. */
    private heldMs = 0
    /** A retry command may take effect until then. */
    private easedUntilMs = -1
    /** A retry command may have taken effect without a line of its own. */
    private told = false
    /** The slow lane's ceiling; 0 while this outage has not been there. */
    private slowMs = 0
    /** A reboot command may take effect until then. */
    private leavesUntilMs = -1
    /** The device's clock leapt, so its times tell nothing until the next line. */
    private leapt = false

    constructor(
        private readonly promises: Promises,
        private readonly report: Report,
    ) {}

    /** The device has died, lost power, or is about to. */
    died() {
        this.phase = "off"
        this.owedMs = -1
        this.hasLink = true
    }

    /** The program was told to retry now, and may yet do so. */
    toldToRetry(atMs: number) {
        this.easedUntilMs = atMs + 120_000
        this.told = true
        this.silences = -1
    }

    /** The program was told to say goodbye and reboot. */
    toldToReboot(atMs: number) {
        this.leavesUntilMs = atMs + 120_000
    }

    /** The device's clock was moved on. */
    clockLeapt() {
        this.leapt = true
    }

    // ---- what happens on the wire ----

    dial(atMs: number) {
        // A program that is about to die is not judged.
        if (this.phase === "off") return
        if (this.phase !== "attempting" || this.dialled)
            this.report(
                "line",
                `a dial without an attempt line (${this.phase})`,
            )
        else if (atMs - this.sinceMs > SLACK_MS)
            this.report("line", "the dial is not where its line was")
        this.dialled = true
    }

    opened(atMs: number) {
        this.openedMs = atMs
    }

    /** CONNACK 0 has reached the device whole. */
    connack() {
        this.connackSeen = true
    }

    received(atMs: number) {
        this.lastInMs = atMs
    }

    /** The connection ended, whoever did it. */
    ended(atMs: number) {
        if (this.phase === "attempting" || this.phase === "connected")
            this.owedMs = atMs + LINE_MS
    }

    // ---- time ----

    /** What should have happened by now? */
    look(nowMs: number) {
        const { policy, keepAliveMs, pingMs } = this.promises
        if (this.owedMs >= 0 && nowMs > this.owedMs) {
            this.owedMs = -1
            this.report("line", `a connection ended and no line says so`)
        }
        switch (this.phase) {
            case "waiting":
                if (!this.leapt && nowMs > this.dueMs + SLACK_MS)
                    this.report(
                        "gap",
                        `no dial ${nowMs - this.dueMs} ms after it was due`,
                    )
                return
            case "attempting": {
                const opened = this.openedMs >= 0
                const limitMs = opened
                    ? this.openedMs + this.connackWaitMs()
                    : this.sinceMs + policy.dialMs
                if (nowMs > limitMs + SLACK_MS)
                    this.report(
                        "patience",
                        `the attempt still waits for ${opened ? "CONNACK" : "TCP"} after ${nowMs - this.sinceMs} ms`,
                    )
                return
            }
            case "connected":
                if (!keepAliveMs || this.leapt) return
                if (nowMs > this.lastInMs + keepAliveMs + pingMs + SLACK_MS)
                    this.report(
                        "silence",
                        `nothing came for ${nowMs - this.lastInMs} ms`,
                    )
        }
    }

    private connackWaitMs() {
        const { policy } = this.promises
        return this.longWait ? policy.connackOverloadMs : policy.connackMs
    }

    // ---- lines ----

    line(atMs: number, deviceMs: number, line: Line) {
        if (line.ev === "boot") {
            this.hasLink = true
            this.reset()
            return this.enter("booted", atMs, deviceMs)
        }
        if (this.phase === "off") return
        this.look(atMs)
        switch (line.ev) {
            case "link":
                return this.link(line.up, atMs, deviceMs)
            case "attempt":
                return this.attempt(line.n, atMs, deviceMs)
            case "connected":
                return this.connected(line, atMs, deviceMs)
            case "lost":
                return this.wasLost(line, atMs, deviceMs)
            case "retry":
                return this.retry(line, atMs, deviceMs)
            case "held":
                return this.held(line.leftMs, atMs, deviceMs)
            case "halt":
                if (atMs > this.leavesUntilMs)
                    this.report("gives up", line.reason)
                return this.enter("halted", atMs, deviceMs)
        }
    }

    /** A hold gets shorter, to its end. */
    private held(leftMs: number, atMs: number, deviceMs: number) {
        const longestMs = this.phase === "held" ? this.heldMs - 1 : MAX_HOLD_MS
        if (leftMs > longestMs)
            this.report("held", `${leftMs} ms left, after ${this.heldMs}`)
        if (this.phase !== "held" && this.phase !== "booted")
            this.report("held", `in phase ${this.phase}`)
        this.heldMs = leftMs
        this.enter("held", atMs, deviceMs)
    }

    private reset() {
        this.n = 0
        this.proven = false
        this.silences = 0
        this.longWait = false
        this.ceilingMs = 0
        this.slowMs = 0
    }

    private enter(phase: Phase, atMs: number, deviceMs: number) {
        this.phase = phase
        this.sinceMs = atMs
        this.sinceDeviceMs = deviceMs
        this.owedMs = -1
        this.leapt = false
    }

    private link(up: boolean, atMs: number, deviceMs: number) {
        const was = this.hasLink
        this.hasLink = up
        if (up || !was) return
        // From connected, `lost` follows.
        if (this.phase === "waiting" || this.phase === "attempting")
            this.enter("noLink", atMs, deviceMs)
    }

    private attempt(n: number, atMs: number, deviceMs: number) {
        if (this.phase !== "waiting")
            this.report("line", `attempt in phase ${this.phase}`)
        else if (!this.leapt) {
            const lateMs = deviceMs - this.dueDeviceMs
            if (lateMs < 0 || lateMs > SLACK_MS)
                this.report("gap", `an attempt ${lateMs} ms after it was due`)
        }
        if (n !== this.n + 1)
            this.report("line", `attempt ${n} after ${this.n} failures`)
        this.openedMs = -1
        this.dialled = false
        this.connackSeen = false
        this.enter("attempting", atMs, deviceMs)
    }

    private connected(line: ConnectedLine, atMs: number, deviceMs: number) {
        if (this.phase !== "attempting")
            this.report("line", `connected in phase ${this.phase}`)
        else if (!this.connackSeen)
            this.report("line", "connected without a CONNACK")
        if (line.n !== this.n + 1)
            this.report("line", `connected with n ${line.n}, not ${this.n + 1}`)
        this.enter("connected", atMs, deviceMs)
        this.lastInMs = Math.max(this.lastInMs, atMs)
    }

    private wasLost(line: LostLine, atMs: number, deviceMs: number) {
        if (this.phase !== "connected")
            this.report("line", `lost in phase ${this.phase}`)
        const upMs = deviceMs - this.sinceDeviceMs
        if (Math.abs(upMs - line.upMs) > SLACK_MS)
            this.report("line", `lost after ${line.upMs} ms, not ${upMs}`)
        const flap = this.isFlap(line.upMs)
        // Wi-Fi that goes is nobody's flap.
        const isSure = line.reason !== "network lost" && !this.told
        if (flap !== line.flap && isSure)
            this.report(
                "ceiling",
                `a session of ${line.upMs} ms is ${flap ? "" : "not "}a flap`,
            )
        if (line.reason.includes("PINGRESP") && !this.leapt) {
            const silentMs = atMs - this.lastInMs
            if (silentMs < this.promises.pingMs)
                this.report("silence", `left after only ${silentMs} ms`)
        }
        this.lost = line
        const alone = line.reason === "network lost" && !this.hasLink
        this.enter(alone ? "noLink" : "lost", atMs, deviceMs)
    }

    private isFlap(upMs: number) {
        if (upMs < this.promises.policy.stableMs) return true
        return this.proven && (upMs < PROVEN_STABLE_MS || upMs < this.ceilingMs)
    }

    private retry(line: RetryLine, atMs: number, deviceMs: number) {
        const eased = line.reason.includes("retry now")
        if (eased) this.easedWait(line, atMs)
        else if (line.evidence === "none") {
            if (!["booted", "noLink", "halted", "held"].includes(this.phase))
                this.report("line", `a first wait in phase ${this.phase}`)
            this.reset()
            this.firstWait(line)
        } else if (this.phase === "attempting") {
            this.checkPatience(line, atMs)
            this.failure(line, line.evidence, deviceMs - this.sinceDeviceMs)
        } else if (this.phase === "lost") this.afterLoss(line)
        else this.report("line", `retry in phase ${this.phase}`)
        this.n = line.n
        if (line.lane === "slow") this.slowMs = line.ceilingMs
        else this.ceilingMs = line.ceilingMs
        if (atMs > this.easedUntilMs) this.told = false
        this.proven = line.proven
        this.dueDeviceMs = deviceMs + line.delayMs
        this.dueMs = atMs + line.delayMs
        this.enter("waiting", atMs, deviceMs)
    }

    /** Gave up waiting neither too early nor too late. */
    private checkPatience(line: RetryLine, atMs: number) {
        if (this.leapt) return
        const { reason } = line
        if (!reason.includes("in time")) return
        const [sinceMs, dueMs] = reason.includes("CONNACK")
            ? [this.openedMs, this.connackWaitMs()]
            : [this.sinceMs, this.promises.policy.dialMs]
        const tookMs = atMs - sinceMs
        if (tookMs < dueMs - 20 || tookMs > dueMs + SLACK_MS)
            this.report(
                "patience",
                `${reason} after ${tookMs}, not ${dueMs} ms`,
            )
    }

    private afterLoss(line: RetryLine) {
        const lost = this.lost!
        const { lane, evidence } = lost
        if (lost.flap) {
            const own = lane === "slow" || evidence === "refused"
            return this.failure(line, own ? evidence : "reset", 0)
        }
        // The slow lane goes on where sessions between are short.
        const { slowCapMs } = this.promises.policy
        if (lane === "slow" && this.slowMs && lost.upMs < 2 * slowCapMs)
            return this.failure(line, evidence, 0)
        this.reset()
        if (lane === "slow" || evidence === "busy" || evidence === "stalled") {
            this.ceilingMs = -1
            this.failure(line, evidence, 0)
        } else this.firstWait(line)
    }

    // ---- the policy's numbers ----

    private check(
        invariant: "gap" | "ceiling",
        what: string,
        value: number,
        range: Range,
    ) {
        if (!isIn(value, range))
            this.report(invariant, `${what} ${value}, not ${range.join("..")}`)
    }

    private firstWait({ n, proven, ceilingMs, delayMs }: RetryLine) {
        const p = this.promises.policy
        if (n !== 0 || proven)
            this.report("ceiling", `first wait with n ${n}, proven ${proven}`)
        this.check("ceiling", "first ceiling", ceilingMs, firstCeiling(p))
        this.check("gap", "first wait", delayMs, firstWait(p, ceilingMs))
    }

    private easedWait(line: RetryLine, atMs: number) {
        const { ceilingMs, delayMs, proven } = line
        if (this.phase !== "waiting" || atMs > this.easedUntilMs)
            this.report("line", `a retry now that nobody asked for`)
        this.check("gap", "wait for nothing", delayMs, [0, REDIAL_MS])
        const eased = easedCeiling(this.promises.policy, this.ceilingMs)
        this.check("ceiling", "eased ceiling", ceilingMs, eased)
        if (proven) this.report("ceiling", "eased, and still proven")
    }

    private failure(line: RetryLine, evidence: string, tookMs: number) {
        const p = this.promises.policy
        const { ceilingMs, delayMs } = line
        if (line.n !== this.n + 1)
            this.report("ceiling", `failure ${line.n} after ${this.n}`)
        this.longWait = true
        if (line.lane === "slow") {
            const slow = slowCeiling(p, this.slowMs)
            this.check("ceiling", "slow lane's ceiling", ceilingMs, slow)
            this.check("gap", "slow wait", delayMs, slowWait(p, ceilingMs))
            return
        }
        // What a line says comes some milliseconds after what it is about.
        const slackMs = tookMs > 0 ? SLACK_MS : 0
        const silences = [tookMs, tookMs - slackMs, tookMs + slackMs].map(ms =>
            silence(p, evidence, ms),
        )
        this.checkWait(line, silences)
        const fits = silences.some(ms => this.fits(line, evidence, ms))
        this.countSilence(tookMs, silences[0])
        if (!fits)
            this.report(
                "ceiling",
                `${ceilingMs} (proven ${line.proven}) after ${this.ceilingMs} (proven ${this.proven}) and ${evidence} of ${tookMs} ms`,
            )
    }

    private checkWait({ ceilingMs, delayMs, proven }: RetryLine, ms: number[]) {
        const p = this.promises.policy
        const ranges = ms.map(silentMs =>
            waitUnder(p, ceilingMs, proven, silentMs),
        )
        const low = Math.min(...ranges.map(([from]) => from))
        const high = Math.max(...ranges.map(([, to]) => to))
        this.check("gap", "wait", delayMs, [low, high])
    }

    /** Whether a line's ceiling and proof may follow what was, and so much silence. */
    private fits(line: RetryLine, evidence: string, silentMs: number) {
        const { promises, ceilingMs: beforeMs } = this
        const p = promises.policy
        if (this.mayFollow(line, beforeMs, this.proven, evidence, silentMs))
            return true
        if (!this.told) return false
        const half = halved(p, beforeMs)
        if (this.mayFollow(line, half, false, evidence, silentMs)) return true
        // Eased after it had grown, while an attempt was under way.
        return isIn(line.ceilingMs, easedCeiling(p, beforeMs))
    }

    /** Whether a line's ceiling may follow this one. */
    private mayFollow(
        line: RetryLine,
        beforeMs: number,
        wasProven: boolean,
        evidence: string,
        silentMs: number,
    ): boolean {
        const proven = wasProven || proves(evidence)
        const p = this.promises.policy
        if (line.proven !== proven) return false
        const next =
            silentMs > 0 && p.spreadMs === 0
                ? this.afterSilence(beforeMs, proven, silentMs)
                : [nextCeiling(p, beforeMs, wasProven, proven)]
        return next.some(range => isIn(line.ceilingMs, range))
    }

    /** The ceilings that may follow one after silence. */
    private afterSilence(beforeMs: number, proven: boolean, silentMs: number) {
        const p = this.promises.policy
        const { silences } = this
        const fits = beforeMs >= silentMs
        const ranges: Range[] = []
        if (silences <= 0 || !fits)
            ranges.push(fit(p, beforeMs, proven, silentMs))
        if (fits && silences !== 0 && silences !== SILENCES)
            ranges.push([beforeMs, beforeMs])
        if (fits && (silences < 0 || silences === SILENCES))
            ranges.push(nextCeiling(p, beforeMs, proven, proven))
        return ranges
    }

    private countSilence(tookMs: number, silentMs: number) {
        const { policy } = this.promises
        const isClose = (ms: number) => Math.abs(ms - tookMs) <= SLACK_MS
        const isUnsure =
            tookMs > 0 && (isClose(policy.minMs) || isClose(this.ceilingMs))
        if (silentMs === 0) this.silences = isUnsure ? -1 : 0
        else if (isUnsure || this.silences < 0) this.silences = -1
        else if (this.silences === 0 || this.ceilingMs < silentMs)
            this.silences = 1
        else this.silences = this.silences < SILENCES ? this.silences + 1 : 1
    }
}
