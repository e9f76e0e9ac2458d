// Runs the table of in-flight.cases.ts under Node; then random connections, acknowledgements and losses.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { publishPacket } from "../../src/mqtt/encode"
import { flightOf, InFlight, type Flight } from "../../src/mqtt/in-flight"
import { dropNewest, Outbox } from "../../src/mqtt/outbox"
import { runCases } from "../node-cases"
import { cases } from "./in-flight.cases"

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
                const outbox = new Outbox<Flight>(8, 400, dropNewest)
                const q = new InFlight(outbox, window, 1000)
                let nowMs = 0
                let accepted = 0
                let lastId = 65533
                let settled = 0
                const out: Flight[] = []
                const once = new Set<Flight>()
                const send = () => {
                    const f = q.next(nowMs, 65535)
                    if (!f) return false
                    const isNew = f.packetId === 0
                    if (isNew) {
                        do lastId = (lastId % 65535) + 1
                        while (q.holds(lastId))
                        q.name(f, lastId)
                    }
                    if ((f.packet[0] & 8) !== 0) assert.ok(once.has(f), "DUP")
                    once.add(f)
                    q.written(nowMs)
                    out.push(f)
                    const ids = out.map(o => o.packetId)
                    assert.equal(new Set(ids).size, ids.length)
                    assert.ok(out.length <= window)
                    return true
                }
                const acknowledge = (at: number) => {
                    const f = out[at % out.length]
                    assert.equal(q.acked(f.packetId), f)
                    out.splice(out.indexOf(f), 1)
                    settled++
                }
                q.connected(false, nowMs)
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
                        if (!outbox.push(flightOf(packet, nowMs))) accepted++
                    } else if (s.what === "send") send()
                    else if ("at" in s) {
                        if (out.length) acknowledge(s.at)
                    } else if ("present" in s) {
                        if (q.land(s.byPeer, nowMs)) settled++
                        out.length = 0
                        nowMs += s.waitMs
                        q.connected(s.present, nowMs)
                    }
                    assert.equal(q.entries(), accepted - settled)
                    assert.equal(outbox.held, q.flying.length)
                    assert.ok(outbox.entries() + outbox.held <= 8)
                }
                // A good broker: everything goes, in the order it was accepted.
                q.land(false, nowMs)
                out.length = 0
                q.connected(true, nowMs)
                nowMs += 10_000
                const order: number[] = []
                for (let i = 0; i < 100 && q.entries(); ++i)
                    if (send())
                        order.push(
                            Number(out.at(-1)!.packet.toString().slice(7)),
                        )
                    else acknowledge(0)
                assert.equal(q.entries(), 0)
                assert.deepEqual(
                    order,
                    [...order].sort((a, b) => a - b),
                )
            },
        ),
    )
})
