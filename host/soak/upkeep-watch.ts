// Watches what a device does to itself: deaths and resets that nobody caused, heap, fibers, flash.
import type { Report } from "./invariants"

/** The illegal instruction by which the soak kills a program. */
const KILLED = 60102

/** Fibers of the largest program here, with some to spare; a leak passes it soon. */
const MAX_FIBERS = 16

/** Bytes that the lowest of an hour's looks may lie above the lowest of the first. */
const MAX_GROWTH_BYTES = 6000
const WINDOW_MS = 1_800_000
/** Looks needed to judge a window. */
const MIN_LOOKS = 20

/** A reset that was asked for comes within this: a queue of handlers may be before it. */
const RESET_MS = 120_000

/** Flash writes for each program start, and as a whole. */
const WRITES_PER_START = 2
const WRITES_ONCE = 4

export class UpkeepWatch {
    /** Program starts so far. */
    starts = 0
    writes = 0
    panics = 0
    lowestBytes = Infinity
    mostFibers = 0
    private kills = 0
    /** Until when each reset that was asked for may come. */
    private resetsUntilMs: number[] = []
    private firstLowBytes = Infinity
    private windowLowBytes = Infinity
    private windowFromMs = 0
    private looks = 0
    private windows = 0

    constructor(private readonly report: Report) {}

    /** The soak kills the program; it dies once, or once more at its next start. */
    mayPanic() {
        this.kills += 1
    }

    /** The soak makes the chip reset once. */
    mayReset(atMs: number) {
        this.resetsUntilMs.push(atMs + RESET_MS)
    }

    /** A line of the world's log about this device. */
    event(atMs: number, text: string) {
        if (text.startsWith("panic ")) this.panic(Number(text.slice(6)))
        else if (text === "reboot" || text.startsWith("abort "))
            this.wasReset(atMs, text)
        else if (text === "flash") this.wrote()
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

    private wrote() {
        this.writes++
        const budget = WRITES_PER_START * (this.starts + 1) + WRITES_ONCE
        if (this.writes > budget)
            this.report(
                "flash",
                `${this.writes} writes in ${this.starts} starts`,
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
        if (grown > MAX_GROWTH_BYTES)
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
