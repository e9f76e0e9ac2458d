// QoS 1 in: a repetition is one only if it can't be anything else.
import { Repeats } from "../../src/mqtt/repeats"
import type { Publish } from "../../src/mqtt/packets"
import { type Case, equal } from "../cases"

function message(
    packetId: number,
    text: string,
    dup: boolean,
    topic = "cmd",
): Publish {
    const payload = Buffer.from(text)
    const type = "publish"
    return { type, topic, payload, qos: 1, retain: false, dup, packetId }
}

export function cases(): Case[] {
    return [
        {
            name: "the same again with DUP, after a reconnect of the session, is a repetition, as often as it comes",
            run: () => {
                const r = new Repeats()
                r.connected(false)
                equal(r.repeats(message(7, "on", false)), false, "first")
                for (let i = 0; i < 3; ++i) {
                    r.connected(true)
                    equal(r.repeats(message(7, "on", true)), true, "again")
                }
                equal(r.count, 3, "count")
            },
        },
        {
            name: "without DUP, in a new session, or within one connection it is not",
            run: () => {
                const r = new Repeats()
                r.connected(false)
                r.repeats(message(7, "on", false))
                equal(r.repeats(message(7, "on", true)), false, "connection")
                r.connected(true)
                equal(r.repeats(message(7, "on", false)), false, "no DUP")
                r.connected(false)
                equal(r.repeats(message(7, "on", true)), false, "new session")
            },
        },
        {
            name: "another message under the identifier is not: its first copy was lost",
            run: () => {
                const one = "0123456789012345678901234567890123456789"
                const r = new Repeats()
                r.connected(false)
                for (const text of ["off", "on!", "", one + "1" + one]) {
                    r.repeats(message(7, "on", false))
                    r.connected(true)
                    equal(r.repeats(message(7, text, true)), false, text)
                }
                r.repeats(message(7, "on", false))
                r.connected(true)
                const other = message(7, "on", true, "cme")
                equal(r.repeats(other), false, "topic")
                r.connected(true)
                equal(r.repeats(other), true, "that one again")
            },
        },
        {
            name: "an identifier in use again on this connection forgets what it was before",
            run: () => {
                const r = new Repeats()
                r.connected(false)
                r.repeats(message(1, "a", false))
                r.connected(true)
                r.repeats(message(1, "b", false))
                equal(r.repeats(message(1, "a", true)), false, "a")
            },
        },
        {
            name: "twenty are remembered; the oldest is forgotten for one more",
            run: () => {
                const r = new Repeats()
                r.connected(false)
                for (let i = 1; i <= 21; ++i) r.repeats(message(i, "x", false))
                r.connected(true)
                equal(r.repeats(message(2, "x", true)), true, "2")
                equal(r.repeats(message(21, "x", true)), true, "21")
                equal(r.repeats(message(1, "x", true)), false, "1")
                equal(r.repeats(message(3, "x", true)), true, "3")
            },
        },
    ]
}
