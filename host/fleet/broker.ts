// The simulated broker: completes C connections a second, in order, whether or not anybody still
// waits for them. That is what makes collapse possible, and it is what real brokers do: the work
// for a connection is done before it is known that the other side has gone.

/** How a broker treats what it can't serve at once. */
export type BrokerKind = "queue" | "busy" | "fragile"

export interface BrokerOptions {
    kind: BrokerKind
    /** Connections completed a second. */
    rate: number
    /** Seconds of service that may be queued; an attempt beyond is dropped without an answer. */
    backlogS: number
}

/** What an attempt met: served after so long, told at once that the broker is busy, or no answer. */
export type Answer = "dropped" | "busy" | number

/** A `busy` broker says so when this much service is queued. */
const BUSY_S = 2

/** A `fragile` broker dies when more than this is queued ... */
const FRAGILE_S = 5
/** ... for this long, */
const FRAGILE_FOR_MS = 1000
/** and is away for this long. */
export const DEAD_MS = 10_000

export class SimBroker {
    private readonly serviceMs: number
    /** When all that is queued will have been served. */
    private freeMs = 0
    /** Since when a fragile broker has too much to do; -1 when it has not. */
    private strainedMs = -1
    deaths = 0

    constructor(private readonly options: BrokerOptions) {
        this.serviceMs = 1000 / options.rate
    }

    /** An attempt arrives while the broker is up. */
    arrive(nowMs: number): Answer {
        const queuedMs = Math.max(0, this.freeMs - nowMs)
        const { kind, backlogS } = this.options
        if (queuedMs > backlogS * 1000) return "dropped"
        if (kind === "busy" && queuedMs > BUSY_S * 1000) return "busy"
        this.freeMs = Math.max(this.freeMs, nowMs) + this.serviceMs
        return this.freeMs - nowMs
    }

    /** Whether a fragile broker dies now; then its queue is gone. */
    dies(nowMs: number): boolean {
        if (this.options.kind !== "fragile") return false
        const queuedMs = this.freeMs - nowMs
        if (queuedMs <= FRAGILE_S * 1000) {
            this.strainedMs = -1
            return false
        }
        if (this.strainedMs < 0) this.strainedMs = nowMs
        if (nowMs - this.strainedMs < FRAGILE_FOR_MS) return false
        this.strainedMs = -1
        this.freeMs = nowMs + DEAD_MS
        this.deaths++
        return true
    }
}
