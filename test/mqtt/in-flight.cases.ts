// QoS 1 out, message by message: the window, what is sent again and how, acknowledgements in any order,
// and the message that the broker closes on.
import { publishPacket } from "../../src/mqtt/encode"
import { flightOf, InFlight, type Flight } from "../../src/mqtt/in-flight"
import { Outbox } from "../../src/mqtt/outbox"
import { type Case, equal } from "../cases"

const ACK_MS = 30000

/** An InFlight with `count` messages "a", "b", ... accepted. */
function accepted(count: number, window = 4): InFlight {
    const q = new InFlight(new Outbox(16, 4096), window, ACK_MS)
    accept(q, count)
    return q
}

function accept(q: InFlight, count: number) {
    for (let i = 0; i < count; ++i) {
        const letter = String.fromCharCode(97 + q.entries())
        const packet = publishPacket("t", letter, 1, false, 1, false)
        q.outbox.push(flightOf(packet, 0))
    }
}

let lastId = 0

/** Sends what may go now; each as its letter and identifier, with `!` for DUP. */
function send(q: InFlight, nowMs: number, limit = 65535): string {
    let out = ""
    while (true) {
        const f = q.next(nowMs, limit)
        if (f === undefined) return out
        if (f.packetId === 0) q.name(f, ++lastId)
        q.written(nowMs)
        const { packet } = f
        const letter = String.fromCharCode(packet[7])
        const id = (packet[5] << 8) | packet[6]
        equal(id, f.packetId, "identifier in the packet")
        const dup = packet[0] & 8 ? "!" : ""
        out += (out ? " " : "") + letter + id + dup
    }
}

export function cases(): Case[] {
    lastId = 0
    return [
        {
            name: "nothing is sent without a connection; then as much as the window holds",
            run: () => {
                lastId = 0
                const q = accepted(6)
                equal(send(q, 0), "", "no connection")
                equal(q.readyMs(65535), -1, "ready without a connection")
                q.connected(false, 0)
                equal(q.readyMs(65535), 0, "ready")
                equal(send(q, 0), "a1 b2 c3 d4", "window of 4")
                equal(q.readyMs(65535), -1, "window full")
                equal(q.entries(), 6, "entries")
                equal(q.outbox.held, 4, "in flight")
            },
        },
        {
            name: "acknowledgements in any order make room; one that nobody waits for changes nothing",
            run: () => {
                lastId = 0
                const q = accepted(6)
                q.connected(false, 0)
                send(q, 0)
                equal(q.acked(3) !== undefined, true, "3")
                equal(send(q, 1), "e5", "one more")
                equal(q.acked(3), undefined, "3 again")
                equal(q.acked(777), undefined, "unknown")
                equal(q.acked(4) !== undefined, true, "4")
                equal(q.acked(1) !== undefined, true, "1")
                equal(send(q, 1), "f6", "the last")
                equal(q.acked(6) !== undefined, true, "6")
                equal(q.acked(5) !== undefined, true, "5")
                equal(q.acked(2) !== undefined, true, "2")
                equal(q.entries(), 0, "entries")
                equal(q.outbox.heldBytes, 0, "bytes in flight")
            },
        },
        {
            name: "the broker's own limit narrows the window",
            run: () => {
                lastId = 0
                const q = accepted(3)
                q.connected(false, 0)
                equal(send(q, 0, 1), "a1", "one")
                equal(q.readyMs(1), -1, "full")
                q.acked(1)
                equal(send(q, 0, 2), "b2 c3", "two")
            },
        },
        {
            name: "S1: session present: same identifier, same payload, DUP, in order, before what is new",
            run: () => {
                lastId = 0
                const q = accepted(5)
                q.connected(false, 0)
                send(q, 0)
                q.acked(2)
                q.land(false, 10)
                equal(send(q, 10), "", "closed")
                q.connected(true, 5000)
                equal(send(q, 5000), "a1! c3! d4! e5", "resent")
            },
        },
        {
            name: "S1: no session: sent again as new",
            run: () => {
                lastId = 0
                const q = accepted(2)
                q.connected(false, 0)
                send(q, 0)
                q.land(false, 10)
                q.connected(true, 20)
                equal(send(q, 20), "a1! b2!", "with DUP")
                q.land(false, 30)
                q.connected(false, 40)
                equal(send(q, 40), "a1 b2", "as new")
            },
        },
        {
            name: "what the socket did not take goes without DUP: it was never sent",
            run: () => {
                const q = accepted(1)
                q.connected(false, 0)
                const f = q.next(0, 9) as Flight
                q.name(f, 7)
                q.land(false, 1)
                q.connected(true, 2)
                equal(send(q, 2), "a7", "the first time")
            },
        },
        {
            name: "an acknowledgement of what was not sent on this connection changes nothing",
            run: () => {
                lastId = 0
                const q = accepted(2)
                q.connected(false, 0)
                send(q, 0)
                q.land(false, 10)
                q.connected(true, 20)
                equal(q.acked(1), undefined, "before it is resent")
                equal(send(q, 20), "a1! b2!", "resent")
                equal(q.acked(1) !== undefined, true, "after")
            },
        },
        {
            name: "an overdue acknowledgement is known by the oldest that is out",
            run: () => {
                lastId = 0
                const q = accepted(1)
                equal(q.ackDueMs(), -1, "nothing out")
                q.connected(false, 0)
                send(q, 100)
                accept(q, 1)
                send(q, 200)
                equal(q.ackDueMs(), 100 + ACK_MS, "the first")
                q.acked(1)
                equal(q.ackDueMs(), 200 + ACK_MS, "the second")
                q.land(false, 300)
                equal(q.ackDueMs(), -1, "no connection")
            },
        },
        {
            name: "poison: found among four, tried three times, set aside; nothing else is lost",
            run: () => {
                lastId = 0
                const q = accepted(5)
                q.connected(false, 0)
                // c is what the broker closes on; it had no time to acknowledge any.
                equal(send(q, 0), "a1 b2 c3 d4", "all")
                equal(q.land(true, 20), undefined, "first")
                q.connected(true, 1000)
                equal(send(q, 1000), "a1!", "suspects go alone")
                q.acked(1)
                equal(send(q, 1010), "b2!", "and are acquitted")
                q.acked(2)
                equal(send(q, 1020), "c3!", "second try")
                equal(q.land(true, 1030), undefined, "second")
                q.connected(true, 3000)
                equal(send(q, 3000), "", "not at once")
                equal(q.readyMs(9), 13000, "when the session has proved itself")
                equal(send(q, 13000), "c3!", "third try")
                const poison = q.land(true, 13010)
                equal(poison && poison.packetId, 3, "set aside")
                q.connected(true, 20000)
                equal(send(q, 20000), "d4!", "the next suspect")
                q.acked(4)
                equal(send(q, 20010), "e5", "and the rest")
            },
        },
        {
            name: "a broker that closes on everything condemns nothing",
            run: () => {
                lastId = 0
                const q = accepted(3)
                for (let i = 0; i < 50; ++i) {
                    q.connected(true, 20000 * i)
                    send(q, 20000 * i)
                    equal(q.land(true, 20000 * i + 5), undefined, "poison")
                }
                equal(q.entries(), 3, "entries")
            },
        },
        {
            name: "a connection that we end, or that ends long after, makes no suspect",
            run: () => {
                lastId = 0
                const q = accepted(2)
                for (let i = 0; i < 9; ++i) {
                    q.connected(false, 60000 * i)
                    equal(send(q, 60000 * i), "a1 b2", "both at once")
                    const byPeer = (i & 1) === 1
                    const afterMs = byPeer ? 5001 : 10
                    q.land(byPeer, 60000 * i + afterMs)
                }
            },
        },
    ]
}
