// QoS 1 in: a repetition is one only if it can't be anything else.
import { isRepeat, reconnected, type Repeats } from "../../src/mqtt/repeats"
import type { Publish } from "../../src/mqtt/packets"
import { type Case, equal } from "../cases"

function nothing(): Repeats {
    return { ids: [], marks: [], earlier: 0 }
}

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
                const r = nothing()
                reconnected(r, false)
                equal(isRepeat(r, message(7, "on", false)), false, "first")
                for (let i = 0; i < 3; ++i) {
                    reconnected(r, true)
                    equal(isRepeat(r, message(7, "on", true)), true, "again")
                }
            },
        },
        {
            name: "without DUP, in a new session, or within one connection it is not",
            run: () => {
                const r = nothing()
                reconnected(r, false)
                isRepeat(r, message(7, "on", false))
                equal(isRepeat(r, message(7, "on", true)), false, "connection")
                reconnected(r, true)
                equal(isRepeat(r, message(7, "on", false)), false, "no DUP")
                reconnected(r, false)
                equal(isRepeat(r, message(7, "on", true)), false, "new session")
            },
        },
        {
            name: "another message under the identifier is not: its first copy was lost",
            run: () => {
                const one = "0123456789012345678901234567890123456789"
                const r = nothing()
                reconnected(r, false)
                for (const text of ["off", "on!", "", one + "1" + one]) {
                    isRepeat(r, message(7, "on", false))
                    reconnected(r, true)
                    equal(isRepeat(r, message(7, text, true)), false, text)
                }
                isRepeat(r, message(7, "on", false))
                reconnected(r, true)
                const other = message(7, "on", true, "cme")
                equal(isRepeat(r, other), false, "topic")
                reconnected(r, true)
                equal(isRepeat(r, other), true, "that one again")
            },
        },
        {
            name: "an identifier in use again on this connection forgets what it was before",
            run: () => {
                const r = nothing()
                reconnected(r, false)
                isRepeat(r, message(1, "a", false))
                reconnected(r, true)
                isRepeat(r, message(1, "b", false))
                equal(isRepeat(r, message(1, "a", true)), false, "a")
            },
        },
        {
            name: "twenty are remembered; the oldest is forgotten for one more",
            run: () => {
                const r = nothing()
                reconnected(r, false)
                for (let i = 1; i <= 21; ++i)
                    isRepeat(r, message(i, "x", false))
                reconnected(r, true)
                equal(isRepeat(r, message(2, "x", true)), true, "2")
                equal(isRepeat(r, message(21, "x", true)), true, "21")
                equal(isRepeat(r, message(1, "x", true)), false, "1")
                equal(isRepeat(r, message(3, "x", true)), true, "3")
            },
        },
    ]
}
