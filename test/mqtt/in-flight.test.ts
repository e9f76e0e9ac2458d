// Runs the table of in-flight.cases.ts under Node; then random connections, acknowledgements and losses.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { publishPacket } from "../../src/mqtt/encode"
import {
    acked,
    connected,
    flightOf,
    land,
    send,
    type Flight,
} from "../../src/mqtt/in-flight"
import { dropNewest, put } from "../../src/mqtt/outbox"
import type { Session } from "../../src/mqtt/session"
import { runCases } from "../node-cases"
import { cases, Quiet } from "./in-flight.cases"

runCases(cases())

const step = fc.oneof(
    fc.record({ what: fc.constantFrom("accept", "send", "send", "send") }),
    fc.record({ what: fc.constant("ack"), at: fc.nat(3) }),
    fc.record({
        what: fc.constant("reconnect"),
        present: fc.boolean(),
        waitMs: fc.constantFrom(0, 10, 20_000),
        byPeer: fc.boolean(),
    }),
)

test("any course: all accepted is acknowledged or set aside, in order, identifiers distinct, DUP only on what went before", () => {
    fc.assert(
        fc.property(
            fc.array(step, { maxLength: 80 }),
            fc.integer({ min: 1, max: 5 }),
            (steps, window) => {
                const q = new Quiet(8, 400, window, 1000, dropNewest)
                let nowMs = 0
                let accepted = 0
                let lastId = 65533
                let settled = 0
                const out: Flight[] = []
                const once = new Set<Flight>()
                const session = {
                    codec: { receiveMaximum: 65535 },
                    freePacketId() {
                        do lastId = (lastId % 65535) + 1
                        while (q.holds(lastId))
                        return lastId
                    },
                    port: { send: () => 0 },
                } as unknown as Session
                const sendOne = () => {
                    if (!send(q, session, nowMs)) return false
                    const f = q.list[q.sent - 1]
                    if ((f.packet[0] & 8) !== 0) assert.ok(once.has(f), "DUP")
                    once.add(f)
                    out.push(f)
                    const ids = out.map(o => o.packetId)
                    assert.equal(new Set(ids).size, ids.length)
                    assert.ok(out.length <= window)
                    return true
                }
                const acknowledge = (at: number) => {
                    const f = out[at % out.length]
                    assert.equal(acked(q, f.packetId), f)
                    out.splice(out.indexOf(f), 1)
                    settled++
                }
                connected(q, false, nowMs)
                for (const s of steps) {
                    nowMs += 100
                    if (s.what === "accept") {
                        const payload = `${accepted}`
                        const packet = publishPacket(
                            "t",
                            payload,
                            1,
                            false,
                            1,
                            false,
                        )
                        if (!put(q, flightOf(packet, nowMs))) accepted++
                    } else if (s.what === "send") sendOne()
                    else if ("at" in s) {
                        if (out.length) acknowledge(s.at)
                    } else if ("present" in s) {
                        if (land(q, s.byPeer, nowMs)) settled++
                        out.length = 0
                        nowMs += s.waitMs
                        connected(q, s.present, nowMs)
                    }
                    assert.equal(q.list.length, accepted - settled)
                    assert.ok(q.sent <= q.held && q.held <= q.list.length)
                    assert.ok(q.list.length <= 8)
                    const bytes = q.list.reduce(
                        (sum, f) => sum + f.packet.length,
                        0,
                    )
                    assert.equal(q.bytes, bytes)
                }
                // A good broker: everything goes, in the order it was accepted.
                land(q, false, nowMs)
                out.length = 0
                connected(q, true, nowMs)
                nowMs += 10_000
                const order: number[] = []
                for (let i = 0; i < 100 && q.list.length; ++i)
                    if (sendOne())
                        order.push(
                            Number(out.at(-1)!.packet.toString().slice(7)),
                        )
                    else acknowledge(0)
                assert.equal(q.list.length, 0)
                assert.deepEqual(
                    order,
                    [...order].sort((a, b) => a - b),
                )
            },
        ),
    )
})
