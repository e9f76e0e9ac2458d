// The outbox: bounded in entries and bytes, oldest out first, and every drop counted.
import { Outbox } from "../../src/mqtt/outbox"
import { type Case, equal } from "../cases"

/** A packet that can be told apart. */
function packet(id: number, bytes: number): Buffer {
    const p = Buffer.alloc(bytes)
    p[0] = id
    return p
}

/** Takes everything out; the ids in order. */
function drain(outbox: Outbox): string {
    let out = ""
    while (true) {
        const p = outbox.shift()
        if (p === undefined) return out
        out += (out ? " " : "") + p[0]
    }
}

export function cases(): Case[] {
    return [
        {
            name: "what goes in comes out in order, and is counted",
            run: () => {
                const o = new Outbox(16, 4096)
                equal(o.shift(), undefined, "nothing")
                equal(o.bytes, 0, "bytes of nothing")
                for (let i = 1; i <= 3; ++i)
                    equal(o.push(packet(i, 10 * i)), 0, "dropped")
                equal(o.entries(), 3, "entries")
                equal(o.bytes, 60, "bytes")
                equal(drain(o), "1 2 3", "order")
                equal(o.entries(), 0, "entries after")
                equal(o.bytes, 0, "bytes after")
            },
        },
        {
            name: "full of entries: the oldest goes",
            run: () => {
                const o = new Outbox(3, 4096)
                for (let i = 1; i <= 3; ++i) o.push(packet(i, 5))
                equal(o.push(packet(4, 5)), 1, "dropped")
                equal(o.push(packet(5, 5)), 1, "dropped")
                equal(o.bytes, 15, "bytes")
                equal(drain(o), "3 4 5", "left")
            },
        },
        {
            name: "full of bytes: as many of the oldest go as the new one needs",
            run: () => {
                const o = new Outbox(16, 100)
                for (let i = 1; i <= 4; ++i) o.push(packet(i, 25))
                equal(o.bytes, 100, "bytes: exactly full is not too full")
                equal(o.push(packet(5, 51)), 3, "dropped")
                equal(o.bytes, 76, "bytes")
                equal(o.push(packet(6, 24)), 0, "dropped")
                equal(drain(o), "4 5 6", "left")
            },
        },
        {
            name: "a packet as large as the outbox takes all of it",
            run: () => {
                const o = new Outbox(4, 100)
                o.push(packet(1, 1))
                o.push(packet(2, 99))
                equal(o.push(packet(3, 100)), 2, "dropped")
                equal(o.bytes, 100, "bytes")
                equal(o.push(packet(4, 1)), 1, "dropped")
                equal(drain(o), "4", "left")
            },
        },
        {
            name: "an outbox of one entry keeps the newest",
            run: () => {
                const o = new Outbox(1, 64)
                let dropped = 0
                for (let i = 1; i <= 9; ++i) dropped += o.push(packet(i, i))
                equal(dropped, 8, "dropped")
                equal(drain(o), "9", "left")
            },
        },
        {
            name: "S9: half an hour's worth of messages while the broker is down: bounded all the time",
            run: () => {
                const o = new Outbox(16, 400)
                let dropped = 0
                for (let i = 0; i < 300; ++i) {
                    dropped += o.push(packet(i & 255, 20 + (i & 31)))
                    equal(o.entries() <= 16 && o.bytes <= 400, true, "bounds")
                }
                equal(dropped + o.entries(), 300, "nothing is lost uncounted")
                equal(o.entries(), 13, "entries")
            },
        },
    ]
}
