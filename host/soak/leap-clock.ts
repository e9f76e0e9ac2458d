// A device's own view of the clock, which can be moved on: a device that has run for weeks, without the weeks.
import type { Clock, Timer } from "../vm/clock"

export class LeapClock implements Clock {
    private offsetMs = 0

    constructor(private readonly clock: Clock) {}

    nowMs() {
        return this.clock.nowMs() + this.offsetMs
    }

    setTimeout(run: () => void, delayMs: number): Timer {
        return this.clock.setTimeout(run, delayMs)
    }

    clearTimeout(timer: Timer | undefined) {
        this.clock.clearTimeout(timer)
    }

    /** Moves on at once; timers keep their time in the world. */
    leap(byMs: number) {
        this.offsetMs += byMs
    }
}
