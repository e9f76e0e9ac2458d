// Watches what a device does to itself: deaths and resets that nobody caused, heap, fibers, flash.
import { ALLOWED_BYTES } from "../../src/core/write-budget"
import type { Report } from "./invariants"

/** The illegal instruction by which the soak kills a program. */
const KILLED = 60102

/** Fibers of the largest program here, with some to spare; a leak passes it soon. */
const MAX_FIBERS = 16

/** Bytes that the lowest of an hour's looks may lie above the lowest of the first. */
const MAX_GROWTH_BYTES = 6000
/** Full outboxes of QoS 1 come on top: 16 messages, with what their callers hold, are 6 kB (measured). */
const QOS1_BYTES = 8000
const WINDOW_MS = 1_800_000
/** Looks needed to judge a window. */
const MIN_LOOKS = 20

/** A reset that was asked for comes within this: a queue of handlers may be before it. */
const RESET_MS = 120_000

/** Flash writes for each start of the program: to count it, and to clear. One more before a reboot and after a hold. */
const WRITES_PER_START = 2

/** The least that a message in flash costs, with its two writes. */
const KEPT_BYTES = 96

/** A native that is stuck is noticed and answered with a reboot within this. */
const STUCK_MS = 3_600_000

/** What a start of the program follows. */
const STARTS = ["power on", "panic ", "reboot", "abort "]

export class UpkeepWatch {
    /** Program starts so far. */
    starts = 0
    writes = 0
    panics = 0
    lowestBytes = Infinity
    mostFibers = 0
    /** Times a program may have started, whether it came to its boot line or not. */
    private beginnings = 0
    /** Writes that are allowed besides: reasons for reboots, trials. */
    private extraWrites = 0
    /** Until then natives may have been stuck. */
    private stuckUntilMs = -1
    private kills = 0
    /** Until when each reset that was asked for may come. */
    private resetsUntilMs: number[] = []
    private firstLowBytes = Infinity
    private windowLowBytes = Infinity
    private windowFromMs = 0
    private looks = 0
    private windows = 0

    /** What clocks were moved on by, all together. */
    private leaptMs = 0

    /** @param usesQos1 the program publishes with QoS 1, with a flash-backed outbox and without a restart limit */
    constructor(
        private readonly report: Report,
        private readonly usesQos1 = false,
    ) {}

    /** The device's clock was moved on. */
    leapt(byMs: number) {
        this.leaptMs += byMs
    }

    /** The soak kills the program; it dies once, or once more at its next start. */
    mayPanic() {
        this.kills += 1
    }

    /** The soak makes the chip reset once; what asks for it may be held back for so long on its way. */
    mayReset(atMs: number, heldBackMs = 0) {
        this.resetsUntilMs.push(atMs + RESET_MS + heldBackMs)
    }

    /** The soak blocks natives. */
    mayStick(atMs: number) {
        this.stuckUntilMs = atMs + STUCK_MS
    }

    /** The device says that it will reboot. */
    reboots(atMs: number, cause: string) {
        this.extraWrites++
        if (cause === "watchdog" && atMs < this.stuckUntilMs)
            this.mayReset(atMs)
    }

    /** A hold is over. */
    released() {
        this.extraWrites++
    }

    /** A line of the world's log about this device. */
    event(atMs: number, text: string) {
        if (STARTS.some(start => text.startsWith(start))) this.beginnings++
        if (text.startsWith("panic ")) this.panic(Number(text.slice(6)))
        else if (text === "reboot" || text.startsWith("abort "))
            this.wasReset(atMs, text)
        else if (text === "flash") this.wrote(atMs)
    }

    private wasReset(atMs: number, text: string) {
        this.resetsUntilMs = this.resetsUntilMs.filter(ms => ms >= atMs)
        if (this.resetsUntilMs.shift() === undefined)
            this.report("no reset", text)
    }

    private panic(code: number) {
        this.panics++
        if (code === 0) return this.report("no reset", "ds.restart()")
        if (code === KILLED && this.kills > 0) this.kills--
        else this.report("no panic", `panic ${code}`)
    }

    /** The program printed its boot line. */
    started() {
        this.starts++
    }

    private wrote(atMs: number) {
        this.writes++
        const minutes = (atMs + this.leaptMs) / 60_000
        const budget = this.usesQos1
            ? Math.floor((2 * (ALLOWED_BYTES + minutes)) / KEPT_BYTES)
            : WRITES_PER_START * this.beginnings + this.extraWrites
        // A reason is written before the line that says so.
        if (this.writes > budget + 1)
            this.report(
                "flash",
                `${this.writes} writes, at most ${budget} in ${this.starts} starts`,
            )
    }

    /** Heap and fibers as they are now; garbage counts as used. */
    look(nowMs: number, usedBytes: number, fibers: number) {
        this.mostFibers = Math.max(this.mostFibers, fibers)
        if (fibers > MAX_FIBERS) this.report("fibers", `${fibers} fibers`)
        this.lowestBytes = Math.min(this.lowestBytes, usedBytes)
        this.windowLowBytes = Math.min(this.windowLowBytes, usedBytes)
        this.looks++
        if (nowMs - this.windowFromMs < WINDOW_MS || this.looks < MIN_LOOKS)
            return
        if (this.windows++ === 0) this.firstLowBytes = this.windowLowBytes
        const grown = this.windowLowBytes - this.firstLowBytes
        if (grown > MAX_GROWTH_BYTES + (this.usesQos1 ? QOS1_BYTES : 0))
            this.report(
                "heap",
                `${this.windowLowBytes} B at best, ${this.firstLowBytes} B at first`,
            )
        this.windowLowBytes = Infinity
        this.windowFromMs = nowMs
        this.looks = 0
    }

    /** What is known belongs to another start of the program. */
    restarted(nowMs: number) {
        this.windowLowBytes = Infinity
        this.windowFromMs = nowMs
        this.looks = 0
    }
}
