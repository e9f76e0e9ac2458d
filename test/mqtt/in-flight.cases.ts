// QoS 1 out, message by message: the window, what is sent again and how, acknowledgements in any order,
// and the message that the broker closes on.
import { publishPacket } from "../../src/mqtt/encode"
import {
    acked,
    ackDueMs,
    connected,
    flightOf,
    InFlight,
    land,
    readyMs,
    send,
} from "../../src/mqtt/in-flight"
import { put } from "../../src/mqtt/outbox"
import { type Session } from "../../src/mqtt/session"
import { type Case, equal } from "../cases"

const ACK_MS = 30000

/** Tells nobody. */
export class Quiet extends InFlight {
    override settle() {}
}

/** An InFlight with `count` messages "a", "b", ... accepted. */
function accepted(count: number, window = 4): InFlight {
    const q = new Quiet(16, 4096, window, ACK_MS)
    accept(q, count)
    return q
}

function accept(q: InFlight, count: number) {
    for (let i = 0; i < count; ++i) {
        const letter = String.fromCharCode(97 + q.list.length)
        const packet = publishPacket("t", letter, 1, false, 1, false)
        put(q, flightOf(packet, 0))
    }
}

let lastId = 0

/** As much of a session as a message needs; it counts identifiers, and notes what is sent. */
class Wire {
    codec: { receiveMaximum: number }
    sent: Buffer[] = []
    /** What the socket says. */
    code = 0
    /** The session's port. */
    port = this

    constructor(limit: number) {
        this.codec = { receiveMaximum: limit }
    }

    freePacketId() {
        return ++lastId
    }

    send(packet: Buffer) {
        if (this.code === 0) this.sent.push(packet)
        return this.code
    }
}

/** Sends what may go now; each as its letter and identifier, with `!` for DUP. */
function sendAll(q: InFlight, nowMs: number, limit = 65535): string {
    const wire = new Wire(limit)
    let out = ""
    while (send(q, wire as unknown as Session, nowMs)) {
        const { packet, packetId } = q.list[q.sent - 1]
        equal(packet, wire.sent[wire.sent.length - 1], "what was sent")
        const letter = String.fromCharCode(packet[7])
        const id = (packet[5] << 8) | packet[6]
        equal(id, packetId, "identifier in the packet")
        const dup = packet[0] & 8 ? "!" : ""
        out += (out ? " " : "") + letter + id + dup
    }
    return out
}

export function cases(): Case[] {
    lastId = 0
    return [
        {
            name: "nothing is sent without a connection; then as much as the window holds",
            run: () => {
                lastId = 0
                const q = accepted(6)
                equal(sendAll(q, 0), "", "no connection")
                equal(readyMs(q, 65535), -1, "ready without a connection")
                connected(q, false, 0)
                equal(readyMs(q, 65535), 0, "ready")
                equal(sendAll(q, 0), "a1 b2 c3 d4", "window of 4")
                equal(readyMs(q, 65535), -1, "window full")
                equal(q.list.length, 6, "entries")
                equal(q.held, 4, "in flight")
            },
        },
        {
            name: "acknowledgements in any order make room; one that nobody waits for changes nothing",
            run: () => {
                lastId = 0
                const q = accepted(6)
                connected(q, false, 0)
                sendAll(q, 0)
                equal(acked(q, 3) !== undefined, true, "3")
                equal(sendAll(q, 1), "e5", "one more")
                equal(acked(q, 3), undefined, "3 again")
                equal(acked(q, 777), undefined, "unknown")
                equal(acked(q, 4) !== undefined, true, "4")
                equal(acked(q, 1) !== undefined, true, "1")
                equal(sendAll(q, 1), "f6", "the last")
                equal(acked(q, 6) !== undefined, true, "6")
                equal(acked(q, 5) !== undefined, true, "5")
                equal(acked(q, 2) !== undefined, true, "2")
                equal(q.list.length, 0, "entries")
                equal(q.bytes, 0, "bytes")
            },
        },
        {
            name: "the broker's own limit narrows the window",
            run: () => {
                lastId = 0
                const q = accepted(3)
                connected(q, false, 0)
                equal(sendAll(q, 0, 1), "a1", "one")
                equal(readyMs(q, 1), -1, "full")
                acked(q, 1)
                equal(sendAll(q, 0, 2), "b2 c3", "two")
            },
        },
        {
            name: "S1: session present: same identifier, same payload, DUP, in order, before what is new",
            run: () => {
                lastId = 0
                const q = accepted(5)
                connected(q, false, 0)
                sendAll(q, 0)
                acked(q, 2)
                land(q, false, 10)
                equal(sendAll(q, 10), "", "closed")
                connected(q, true, 5000)
                equal(sendAll(q, 5000), "a1! c3! d4! e5", "resent")
            },
        },
        {
            name: "S1: no session: sent again as new",
            run: () => {
                lastId = 0
                const q = accepted(2)
                connected(q, false, 0)
                sendAll(q, 0)
                land(q, false, 10)
                connected(q, true, 20)
                equal(sendAll(q, 20), "a1! b2!", "with DUP")
                land(q, false, 30)
                connected(q, false, 40)
                equal(sendAll(q, 40), "a1 b2", "as new")
            },
        },
        {
            name: "what the socket did not take goes without DUP: it was never sent",
            run: () => {
                const q = accepted(1)
                connected(q, false, 0)
                lastId = 6
                const wire = new Wire(9)
                wire.code = -1
                equal(send(q, wire as unknown as Session, 0), false, "sent")
                equal(q.held, 1, "in flight, though: it has its identifier")
                land(q, false, 1)
                connected(q, true, 2)
                equal(sendAll(q, 2), "a7", "the first time")
            },
        },
        {
            name: "an acknowledgement of what was not sent on this connection changes nothing",
            run: () => {
                lastId = 0
                const q = accepted(2)
                connected(q, false, 0)
                sendAll(q, 0)
                land(q, false, 10)
                connected(q, true, 20)
                equal(acked(q, 1), undefined, "before it is resent")
                equal(sendAll(q, 20), "a1! b2!", "resent")
                equal(acked(q, 1) !== undefined, true, "after")
            },
        },
        {
            name: "an overdue acknowledgement is known by the oldest that is out",
            run: () => {
                lastId = 0
                const q = accepted(1)
                equal(ackDueMs(q), -1, "nothing out")
                connected(q, false, 0)
                sendAll(q, 100)
                accept(q, 1)
                sendAll(q, 200)
                equal(ackDueMs(q), 100 + ACK_MS, "the first")
                acked(q, 1)
                equal(ackDueMs(q), 200 + ACK_MS, "the second")
                land(q, false, 300)
                equal(ackDueMs(q), -1, "no connection")
            },
        },
        {
            name: "poison: found among four, tried three times, set aside; nothing else is lost",
            run: () => {
                lastId = 0
                const q = accepted(5)
                connected(q, false, 0)
                // c is what the broker closes on; it had no time to acknowledge any.
                equal(sendAll(q, 0), "a1 b2 c3 d4", "all")
                equal(land(q, true, 20), undefined, "first")
                connected(q, true, 1000)
                equal(sendAll(q, 1000), "a1!", "suspects go alone")
                acked(q, 1)
                equal(sendAll(q, 1010), "b2!", "and are acquitted")
                acked(q, 2)
                equal(sendAll(q, 1020), "c3!", "second try")
                equal(land(q, true, 1030), undefined, "second")
                connected(q, true, 3000)
                equal(sendAll(q, 3000), "", "not at once")
                equal(
                    readyMs(q, 9),
                    13000,
                    "when the session has proved itself",
                )
                equal(sendAll(q, 13000), "c3!", "third try")
                const poison = land(q, true, 13010)
                equal(poison && poison.packetId, 3, "set aside")
                connected(q, true, 20000)
                equal(sendAll(q, 20000), "d4!", "the next suspect")
                acked(q, 4)
                equal(sendAll(q, 20010), "e5", "and the rest")
            },
        },
        {
            name: "a broker that closes on everything condemns nothing",
            run: () => {
                lastId = 0
                const q = accepted(3)
                for (let i = 0; i < 50; ++i) {
                    connected(q, true, 20000 * i)
                    sendAll(q, 20000 * i)
                    equal(land(q, true, 20000 * i + 5), undefined, "poison")
                }
                equal(q.list.length, 3, "entries")
            },
        },
        {
            name: "a connection that we end, or that ends long after, makes no suspect",
            run: () => {
                lastId = 0
                const q = accepted(2)
                for (let i = 0; i < 9; ++i) {
                    connected(q, false, 60000 * i)
                    equal(sendAll(q, 60000 * i), "a1 b2", "both at once")
                    const byPeer = (i & 1) === 1
                    const afterMs = byPeer ? 5001 : 10
                    land(q, byPeer, 60000 * i + afterMs)
                }
            },
        },
    ]
}
