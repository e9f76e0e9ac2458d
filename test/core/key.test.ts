// Runs the table of key.cases.ts under Node; then Dedup against a plain list.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { Dedup } from "../../src/core/dedup"
import { runCases } from "../node-cases"
import { cases } from "./key.cases"

runCases(cases())

test("any keys: Dedup is the list of the last ones that were first", () => {
    fc.assert(
        fc.property(
            fc.array(fc.integer({ min: 0, max: 12 })),
            fc.integer({ min: 1, max: 8 }),
            (numbers, size) => {
                const dedup = new Dedup(size)
                const last: string[] = []
                for (const n of numbers) {
                    const key = `k${n}`
                    const first = !last.includes(key)
                    assert.equal(dedup.isFirst(key), first)
                    if (first) last.push(key)
                    if (last.length > size) last.shift()
                }
            },
        ),
    )
})
