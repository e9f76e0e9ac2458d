// What waits to be sent: packets that are ready, bounded in entries and in bytes. Pure.
// When something does not fit, the oldest go: what is new is worth more to a monitoring system. A program
// that wants another rule imports one of those below.
import { topicOf } from "./encode"

/** A packet that waits. */
export interface Entry {
    packet: Buffer
    /** Of a PUBLISH, for MQTT 5; see `sendPacket`. */
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

/** Packets in the order they came, bounded. No class: what has one is its own outbox, which costs the heap no second object. */
export interface Outbox<T extends Entry> {
    /** What is in flight, then what waits. */
    readonly list: T[]
    /** How many of `list` are in flight: they count, and are never dropped to make room. */
    held: number
    /** Bytes of all packets in it. */
    bytes: number
    /** Most packets, at least 1. */
    readonly maxEntries: number
    /** Most bytes of all packets together. */
    readonly maxBytes: number
    /** What goes when one does not fit; by default the oldest. */
    readonly overflow?: Overflow
}

/**
 * Appends a packet of at most `maxBytes`.
 * @returns what was dropped for it, if anything; the new one itself is the last of them when it was not taken
 */
export function put<T extends Entry>(
    outbox: Outbox<T>,
    entry: T,
): T[] | undefined {
    const list = outbox.list
    const held = outbox.held
    const overflow = outbox.overflow
    const bytes = entry.packet.length
    let dropped: T[] | undefined = undefined
    while (true) {
        const full = isFull(outbox, bytes)
        if (!full && !overflow) break
        const waiting = held > 0 ? list.slice(held) : list
        const at = overflow ? overflow(waiting, entry, full) : 0
        if (at < 0) break
        if (dropped === undefined) dropped = []
        if (held + at >= list.length) {
            dropped.push(entry)
            return dropped
        }
        dropped.push(take(outbox, held + at))
    }
    list.push(entry)
    outbox.bytes += bytes
    return dropped
}

/** Whether something has to go for a packet of so many bytes. */
export function isFull(outbox: Outbox<Entry>, newBytes: number): boolean {
    const maxEntries = outbox.maxEntries
    const maxBytes = outbox.maxBytes
    const bytes = outbox.bytes
    const entries = outbox.list.length
    return entries >= maxEntries || (entries > 0 && bytes + newBytes > maxBytes)
}

/** Takes the packet at an index of `list` out, in flight or not. */
export function take<T extends Entry>(outbox: Outbox<T>, at: number): T {
    const list = outbox.list
    const entry = list[at]
    list.insert(at, -1)
    if (at < outbox.held) outbox.held--
    outbox.bytes -= entry.packet.length
    return entry
}
