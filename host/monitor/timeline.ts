// The whole fleet over time, second by second: how many attempts began, how many devices were connected. Pure.
import type { Desk } from "./desk"

/** Seconds kept. */
export const TIMELINE_S = 120

export interface Second {
    attempts: number
    connected: number
}

export class Timeline {
    private readonly seconds: Second[] = []
    private before = 0

    constructor(private readonly desk: Desk) {}

    /** A second is over. */
    tick() {
        let attempts = 0
        let connected = 0
        for (const { counters, state } of this.desk.views.values()) {
            attempts += counters.attempts
            if (state === "connected") connected++
        }
        this.seconds.push({
            // A device that was swapped for another begins at zero.
            attempts: Math.max(attempts - this.before, 0),
            connected,
        })
        this.before = attempts
        if (this.seconds.length > TIMELINE_S) this.seconds.shift()
    }

    /** Oldest first. */
    get all(): readonly Second[] {
        return this.seconds
    }
}
