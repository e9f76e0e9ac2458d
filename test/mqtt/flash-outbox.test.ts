// Runs the table of flash-outbox.cases.ts under Node; then random courses with power cuts anywhere.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { ALLOWED_BYTES } from "../../src/core/write-budget"
import { FlashOutbox } from "../../src/mqtt/flash-outbox"
import { formatSlot, readSlot } from "../../src/mqtt/flash-slot"
import { runCases } from "../node-cases"
import { land } from "../../src/mqtt/in-flight"
import { cases, Device, longCases, payloadOf } from "./flash-outbox.cases"

runCases(cases())
runCases(longCases())

const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ what: fc.constant("accept") }) },
    { weight: 4, arbitrary: fc.record({ what: fc.constant("begin") }) },
    { weight: 4, arbitrary: fc.record({ what: fc.constant("take") }) },
    { weight: 4, arbitrary: fc.record({ what: fc.constant("done") }) },
    { weight: 3, arbitrary: fc.record({ what: fc.constant("send") }) },
    {
        weight: 4,
        arbitrary: fc.record({ what: fc.constant("ack"), at: fc.nat(9) }),
    },
    {
        weight: 4,
        arbitrary: fc.record({
            what: fc.constant("wait"),
            forMs: fc.constantFrom(20, 1000, 10_000, 300_000),
        }),
    },
    {
        weight: 2,
        arbitrary: fc.record({
            what: fc.constant("cut"),
            resets: fc.boolean(),
        }),
    },
)

test("any course, the power cut anywhere: what flash has taken arrives, in order; what is marked never comes back", () => {
    fc.assert(
        fc.property(fc.array(step, { maxLength: 120 }), steps => {
            const d = new Device()
            let accepted = 0
            let clockMs = 0
            /** Taken by the store, and not known to be settled: has to come back. */
            const owed = new Set<number>()
            const settled = new Set<number>()
            const arrived: number[] = []
            let taken = false
            const begin = () => {
                if (!d.writing) taken = false
                return d.writing || d.begin()
            }
            const take = () => {
                if (!d.writing || taken) return
                taken = true
                d.take()
                const { flight } = d.writing
                if (flight) owed.add(Number(payloadOf(flight)))
            }
            const done = () => {
                if (d.writing && taken) d.done()
            }
            const ack = (at: number) => {
                const { list, held } = d.queue
                if (!held) return
                const payload = payloadOf(list[at % held])
                d.ack(payload)
                settled.add(Number(payload))
                owed.delete(Number(payload))
                arrived.push(Number(payload))
            }
            for (const s of steps) {
                if (s.what === "accept") {
                    if (d.queue.list.length < 16) d.accept(`${++accepted}`)
                } else if (s.what === "begin") begin()
                else if (s.what === "take") take()
                else if (s.what === "done") done()
                else if (s.what === "send") d.send()
                else if ("at" in s) ack(s.at)
                else if ("forMs" in s) {
                    d.nowMs += s.forMs
                    clockMs += s.forMs
                } else if ("resets" in s) {
                    if (s.resets) d.nowMs = 1000
                    d.start()
                    const back = d.queue.list.map(f => Number(payloadOf(f)))
                    for (const n of owed)
                        assert.ok(back.includes(n), `${n} is lost`)
                    assert.deepEqual(
                        back,
                        [...back].sort((a, b) => a - b),
                        "order",
                    )
                    assert.equal(new Set(back).size, back.length)
                    assert.ok(back.length <= 8)
                }
                const limit = ALLOWED_BYTES + clockMs / 60_000
                assert.ok(d.writtenBytes <= limit, `${d.writtenBytes} B`)
            }
            // All is well: everything goes, and flash is told of it.
            if (begin()) {
                take()
                done()
            }
            for (let i = 0; i < 40 && d.queue.list.length; ++i) {
                land(d.queue, false, d.nowMs)
                d.send()
                ack(0)
            }
            d.run(20_000)
            assert.equal(d.found(), "")
            d.start()
            assert.equal(d.queue.list.length, 0)
        }),
        { numRuns: 300 },
    )
})

test("any bytes in flash, and any PUBLISH in a record that is otherwise fine: read as a whole message or as nothing", () => {
    const bytes = fc.uint8Array({ maxLength: 181 }).map(a => Buffer.from(a))
    const record = fc.record({
        number: fc.integer({ min: 1, max: 0x7fffffff }),
        debtBytes: fc.nat(0xffff),
        upS: fc.nat(0xffffff),
        settled: fc.nat(0xff),
        message: fc.record({ packet: bytes, waitedS: fc.nat(0xffffff) }),
    })
    const publish = bytes.map(rest => {
        const packet = Buffer.concat([Buffer.from([0x32, 0, 0, 1]), rest])
        packet[1] = packet.length - 2
        return packet
    })
    const any = fc.oneof(
        bytes,
        record.map(formatSlot),
        fc
            .tuple(record, publish)
            .filter(([, packet]) => packet.length < 128)
            .map(([r, packet]) =>
                formatSlot({ ...r, message: { packet, waitedS: 0 } }),
            ),
    )
    let read = 0
    fc.assert(
        fc.property(
            fc.array(any, { minLength: 9, maxLength: 9 }),
            fc.nat(0xffffffff),
            (slots, nowMs) => {
                const records = slots.map(readSlot)
                const flights = new FlashOutbox().restore(records, nowMs)
                for (const { packet, sinceMs } of flights) {
                    read++
                    assert.equal(packet[0] & 0xf6, 0x32)
                    assert.ok(packet.length >= 7 && packet.length <= 181)
                    assert.ok(sinceMs <= nowMs)
                }
            },
        ),
    )
    assert.ok(read > 0, `${read} messages`)
})
