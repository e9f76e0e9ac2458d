// The outbox: bounded in entries and bytes, oldest out first, and every drop counted.
import { publishPacket } from "../../src/mqtt/encode"
import {
    dropNewest,
    dropOldest,
    latestPerTopic,
    put,
    take,
    type Entry,
    type Outbox,
    type Overflow,
} from "../../src/mqtt/outbox"
import { type Case, equal } from "../cases"

export function outbox(
    maxEntries: number,
    maxBytes: number,
    overflow?: Overflow,
): Outbox<Entry> {
    return { list: [], held: 0, bytes: 0, maxEntries, maxBytes, overflow }
}

/** A packet that can be told apart. */
function packet(id: number, bytes: number): Entry {
    const p = Buffer.alloc(bytes)
    p[0] = id
    return { packet: p, sinceMs: 0 }
}

/** A PUBLISH. */
function message(topic: string, payload: string): Entry {
    const packet = publishPacket(topic, payload, 0, false, 0, false)
    return { packet, sinceMs: 0 }
}

/** Takes everything out; the ids in order. */
function drain(outbox: Outbox<Entry>): string {
    let out = ""
    while (outbox.list.length) {
        const e = take(outbox, 0)
        out += (out ? " " : "") + e.packet[0]
    }
    return out
}

/** What waits, as `topic=payload` of one digit each. */
function waiting(outbox: Outbox<Entry>): string {
    let out = ""
    for (const e of outbox.list)
        out +=
            (out ? " " : "") +
            String.fromCharCode(e.packet[4]) +
            String.fromCharCode(e.packet[5])
    return out
}

/** The ids in it, in order. */
function ids(outbox: Outbox<Entry>): string {
    let out = ""
    for (const e of outbox.list) out += (out ? " " : "") + e.packet[0]
    return out
}

/** How many were dropped. */
function count(dropped: Entry[] | undefined): number {
    return dropped === undefined ? 0 : dropped.length
}

export function cases(): Case[] {
    return [
        {
            name: "what goes in comes out in order, and is counted",
            run: () => {
                const o = outbox(16, 4096)
                equal(o.bytes, 0, "bytes of nothing")
                for (let i = 1; i <= 3; ++i)
                    equal(count(put(o, packet(i, 10 * i))), 0, "dropped")
                equal(o.list.length, 3, "entries")
                equal(o.bytes, 60, "bytes")
                equal(drain(o), "1 2 3", "order")
                equal(o.list.length, 0, "entries after")
                equal(o.bytes, 0, "bytes after")
            },
        },
        {
            name: "full of entries: the oldest goes",
            run: () => {
                const o = outbox(3, 4096)
                for (let i = 1; i <= 3; ++i) put(o, packet(i, 5))
                equal(count(put(o, packet(4, 5))), 1, "dropped")
                equal(count(put(o, packet(5, 5))), 1, "dropped")
                equal(o.bytes, 15, "bytes")
                equal(drain(o), "3 4 5", "left")
            },
        },
        {
            name: "full of bytes: as many of the oldest go as the new one needs",
            run: () => {
                const o = outbox(16, 100)
                for (let i = 1; i <= 4; ++i) put(o, packet(i, 25))
                equal(o.bytes, 100, "bytes: exactly full is not too full")
                equal(count(put(o, packet(5, 51))), 3, "dropped")
                equal(o.bytes, 76, "bytes")
                equal(count(put(o, packet(6, 24))), 0, "dropped")
                equal(drain(o), "4 5 6", "left")
            },
        },
        {
            name: "a packet as large as the outbox takes all of it",
            run: () => {
                const o = outbox(4, 100)
                put(o, packet(1, 1))
                put(o, packet(2, 99))
                equal(count(put(o, packet(3, 100))), 2, "dropped")
                equal(o.bytes, 100, "bytes")
                equal(count(put(o, packet(4, 1))), 1, "dropped")
                equal(drain(o), "4", "left")
            },
        },
        {
            name: "an outbox of one entry keeps the newest",
            run: () => {
                const o = outbox(1, 64)
                let dropped = 0
                for (let i = 1; i <= 9; ++i)
                    dropped += count(put(o, packet(i, i)))
                equal(dropped, 8, "dropped")
                equal(drain(o), "9", "left")
            },
        },
        {
            name: "S9: half an hour's worth of messages while the broker is down: bounded all the time",
            run: () => {
                const o = outbox(16, 400)
                let dropped = 0
                for (let i = 0; i < 150; ++i) {
                    dropped += count(put(o, packet(i & 255, 20 + (i & 31))))
                    equal(o.list.length <= 16 && o.bytes <= 400, true, "bounds")
                }
                equal(dropped + o.list.length, 150, "nothing is lost uncounted")
                equal(o.list.length, 11, "entries")
            },
        },
        {
            name: "drop oldest by name is the default",
            run: () => {
                const o = outbox(2, 4096, dropOldest)
                for (let i = 1; i <= 3; ++i) put(o, packet(i, 5))
                equal(drain(o), "2 3", "left")
            },
        },
        {
            name: "drop newest: what was taken stays, and the caller learns that the new one was not",
            run: () => {
                const o = outbox(2, 100, dropNewest)
                const third = packet(3, 5)
                equal(put(o, packet(1, 90)), undefined, "dropped")
                equal(count(put(o, packet(2, 11))), 1, "too many bytes")
                equal(put(o, packet(2, 10)), undefined, "exactly full")
                const dropped = put(o, third) as Entry[]
                equal(dropped.length, 1, "too many entries")
                equal(dropped[0], third, "what was dropped")
                equal(o.bytes, 100, "bytes")
                equal(drain(o), "1 2", "left")
            },
        },
        {
            name: "latest per topic: one message a topic waits, in the order of the latest",
            run: () => {
                const o = outbox(3, 4096, latestPerTopic)
                put(o, message("a", "1"))
                put(o, message("b", "2"))
                equal(count(put(o, message("a", "3"))), 1, "replaced")
                equal(waiting(o), "b2 a3", "after a replacement")
                put(o, message("c", "4"))
                equal(count(put(o, message("b", "5"))), 1, "full, replaced")
                equal(waiting(o), "a3 c4 b5", "no other went")
                equal(count(put(o, message("d", "6"))), 1, "a new topic")
                equal(waiting(o), "c4 b5 d6", "the oldest went")
            },
        },
        {
            name: "latest per topic: a replacement that needs more bytes takes the oldest too",
            run: () => {
                const o = outbox(9, 30, latestPerTopic)
                for (const topic of ["a", "b", "c", "d"])
                    put(o, message(topic, "12"))
                equal(o.bytes, 28, "bytes")
                equal(count(put(o, message("c", "12345678"))), 2, "dropped")
                equal(waiting(o), "b1 d1 c1", "left")
            },
        },
        {
            name: "what is in flight counts, and is never what goes",
            run: () => {
                const o = outbox(3, 100)
                put(o, packet(1, 45))
                put(o, packet(2, 45))
                o.held = 2
                equal(put(o, packet(3, 10)), undefined, "fits")
                equal(count(put(o, packet(4, 10))), 1, "the oldest that waits")
                equal(ids(o), "1 2 4", "left")
                o.held = 3
                equal(count(put(o, packet(5, 1))), 1, "only the new one can go")
                equal(ids(o), "1 2 4", "in flight")
                equal(o.bytes, 100, "bytes")
                take(o, 1)
                equal(o.held, 2, "one has arrived")
                equal(o.bytes, 55, "its bytes")
            },
        },
        {
            name: "a rule sees what waits, and nothing of what is in flight",
            run: () => {
                let seen = ""
                const o = outbox(3, 100, (waiting, _entry, full) => {
                    for (const e of waiting) seen += e.packet[0]
                    seen += full ? "! " : " "
                    return full ? waiting.length - 1 : -1
                })
                for (let i = 1; i <= 3; ++i) put(o, packet(i, 5))
                o.held = 1
                put(o, packet(4, 5))
                equal(seen, " 1 12 23! 2 ", "what it was shown")
                equal(drain(o), "1 2 4", "the newest of them went")
            },
        },
    ]
}
