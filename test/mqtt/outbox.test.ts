// Runs the table of outbox.cases.ts under Node; then random pushes and shifts against a plain list.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { put, take, type Entry } from "../../src/mqtt/outbox"
import { runCases } from "../node-cases"
import { cases, outbox } from "./outbox.cases"

runCases(cases())

test("any pushes and shifts: the newest that fit, in order, and nothing lost uncounted", () => {
    fc.assert(
        fc.property(
            fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 64 }))),
            fc.integer({ min: 1, max: 8 }),
            fc.integer({ min: 64, max: 200 }),
            (steps, maxEntries, maxBytes) => {
                const o = outbox(maxEntries, maxBytes)
                const model: Entry[] = []
                for (const bytes of steps) {
                    if (bytes === 0) {
                        if (model.length)
                            assert.equal(take(o, 0), model.shift())
                        continue
                    }
                    const packet = { packet: Buffer.alloc(bytes), sinceMs: 0 }
                    model.push(packet)
                    let dropped = 0
                    while (
                        model.length > maxEntries ||
                        size(model) > maxBytes
                    ) {
                        model.shift()
                        dropped++
                    }
                    assert.equal(put(o, packet)?.length ?? 0, dropped)
                    assert.equal(o.list.length, model.length)
                    assert.equal(o.bytes, size(model))
                }
            },
        ),
    )
})

function size(entries: Entry[]): number {
    return entries.reduce((sum, e) => sum + e.packet.length, 0)
}
