// What waits to be sent: packets that are ready, bounded in entries and in bytes. Pure.
// When something does not fit, the oldest go: what is new is worth more to a monitoring system. A program
// that wants another rule imports one of those below.
import { topicOf } from "./encode"

/** A packet that waits. */
export interface Entry {
    packet: Buffer
    /** Of a PUBLISH, for MQTT 5; see `Session.send`. */
    properties?: Buffer
    /** Since when it waits, ms; its expiry counts from there. */
    sinceMs: number
}

/**
 * Says what goes before `entry` is added to `waiting`: an index in it, or its length for the new one itself, or -1
 * for nothing. It is asked again until it says one of the last two, and must not say -1 when the outbox is `full`.
 */
export type Overflow = (waiting: Entry[], entry: Entry, full: boolean) => number

/** The oldest go for the new one. The default. */
export function dropOldest(
    _waiting: Entry[],
    _entry: Entry,
    full: boolean,
): number {
    return full ? 0 : -1
}

/** The new one goes: what was accepted stays, and `publish` answers "refused". */
export function dropNewest(
    waiting: Entry[],
    _entry: Entry,
    full: boolean,
): number {
    return full ? waiting.length : -1
}

/** One message a topic waits, the latest: for states, of which old ones are worth nothing. Then the oldest go. */
export function latestPerTopic(
    waiting: Entry[],
    entry: Entry,
    full: boolean,
): number {
    const topic = topicOf(entry.packet)
    for (let i = 0; i < waiting.length; ++i)
        if (topicOf(waiting[i].packet) === topic) return i
    return full ? 0 : -1
}

/** @devsWhenUsed */
export class Outbox<T extends Entry> {
    readonly waiting: T[] = []
    /** Bytes of all packets in it. */
    bytes = 0
    /** Packets that have left it and still count, and their bytes: those in flight. */
    held = 0
    heldBytes = 0

    /**
     * @param maxEntries most packets, at least 1
     * @param maxBytes most bytes of all packets together
     * @param overflow what goes when one does not fit; by default the oldest
     */
    constructor(
        readonly maxEntries: number,
        readonly maxBytes: number,
        private readonly overflow?: Overflow,
    ) {}

    /** Packets in it. */
    entries(): number {
        return this.waiting.length
    }

    /**
     * Appends a packet of at most `maxBytes`.
     * @returns what was dropped for it, if anything; the new one itself is the last of them when it was not taken
     */
    push(entry: T): T[] | undefined {
        const { waiting, overflow } = this
        let dropped: T[] | undefined = undefined
        while (true) {
            const full = this.isFull(entry.packet.length)
            const oldest = full ? 0 : -1
            const at = overflow ? overflow(waiting, entry, full) : oldest
            if (at < 0) break
            if (dropped === undefined) dropped = []
            if (at >= waiting.length) {
                dropped.push(entry)
                return dropped
            }
            dropped.push(this.take(at))
        }
        waiting.push(entry)
        this.bytes += entry.packet.length
        return dropped
    }

    /** Whether something has to go for a packet of so many bytes. */
    isFull(newBytes: number): boolean {
        const entries = this.waiting.length + this.held
        const bytes = this.bytes + this.heldBytes + newBytes
        return (
            entries >= this.maxEntries || (entries > 0 && bytes > this.maxBytes)
        )
    }

    /** The packet that is sent next; undefined when it is empty. */
    oldest(): T | undefined {
        return this.waiting[0]
    }

    /** Takes the oldest packet out; undefined when it is empty. */
    shift(): T | undefined {
        return this.waiting.length > 0 ? this.take(0) : undefined
    }

    private take(at: number): T {
        const { waiting } = this
        const entry = waiting[at]
        for (let i = at + 1; i < waiting.length; ++i)
            waiting[i - 1] = waiting[i]
        waiting.pop()
        this.bytes -= entry.packet.length
        return entry
    }
}
