// QoS 0 messages that wait for a connection: mqtt/outbox.ts has the rules; here they meet the client.
import {
    put,
    take,
    type Entry,
    type Outbox,
    type Overflow,
} from "../mqtt/outbox"
import { sendPacket } from "../mqtt/session"
import { OUTBOX_FULL, type Client, type Outbox0, type Outcome } from "./client"

/** So many in a row, and the next waits a little: the VM ends a program that never waits. */
const PER_TURN = 8

/**
 * The part of a client that keeps QoS 0 messages until there is a connection.
 * @param maxEntries most messages that wait, at least 1; default 16
 * @param maxBytes most bytes of all of them; default 4,096
 * @param overflow what goes when one does not fit; default the oldest
 */
export function outbox(
    maxEntries: number = 16,
    maxBytes: number = 4096,
    overflow?: Overflow,
): Outbox0 {
    return new Waiting(maxEntries, maxBytes, overflow)
}

/** @devsWhenUsed */
class Waiting implements Outbox<Entry>, Outbox0 {
    readonly list: Entry[] = []
    held = 0
    bytes = 0
    private client: Client

    constructor(
        readonly maxEntries: number,
        readonly maxBytes: number,
        readonly overflow: Overflow | undefined,
    ) {}

    attach(client: Client) {
        this.client = client
    }

    keep(packet: Buffer, properties: Buffer, nowMs: number): Outcome {
        const entry: Entry = { packet, properties, sinceMs: nowMs }
        const dropped = put(this, entry)
        if (dropped === undefined) return "queued"
        const count = dropped.length
        const client = this.client
        client.dropped("outbox", undefined, undefined, "outbox full", count)
        return dropped[count - 1] === entry ? OUTBOX_FULL : "queued"
    }

    tick(nowMs: number) {
        const client = this.client
        const list = this.list
        const session = client.session
        for (let i = 0; i < PER_TURN; ++i) {
            if (!session.up || nowMs < client.drainMs) return
            if (!list.length) return
            const entry = list[0]
            // Not what has come since: an application faster than that would never be up to date again.
            client.pace(nowMs)
            const codec = session.codec
            const late = codec.expires && codec.expires(entry, nowMs)
            const packet = entry.packet
            const properties = entry.properties
            const fault = late
                ? "expired"
                : codec.refuses && codec.refuses(packet, properties)
            if (fault !== undefined) {
                take(this, 0)
                client.dropped("outbox", undefined, packet.length, fault, 1)
                continue
            }
            if (sendPacket(session, packet, nowMs, properties) !== 0) return
            take(this, 0)
            client.counters.published++
        }
    }

    dueMs(): number {
        const { session, drainMs } = this.client
        return session.up && this.list.length > 0 ? drainMs : -1
    }

    entries(): number {
        return this.list.length
    }
}
