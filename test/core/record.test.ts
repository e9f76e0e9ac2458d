// The restart record for any record and any text: what was written reads back, and nothing else is taken for one.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import {
    emptyRecord,
    formatRecord,
    readRecord,
    RECORD_MAX_BYTES,
} from "../../src/core/record"
import { runCases } from "../node-cases"
import { anyRecord } from "./any-record"
import { cases } from "./record.cases"

runCases(cases())

const tripped = { ...emptyRecord(), trips: 1 }

test("any record: a text of at most 200 bytes of ASCII, valid JSON, that reads back", () => {
    fc.assert(
        fc.property(anyRecord, record => {
            const text = formatRecord(record)
            assert.ok(Buffer.byteLength(text) <= RECORD_MAX_BYTES, text)
            assert.match(text, /^[[\],0-9]+$/)
            assert.ok(Array.isArray(JSON.parse(text)))
            assert.deepEqual(readRecord(text), { record })
        }),
        { numRuns: 2000, seed: 1 },
    )
})

test("any record with one character changed, lost or added is unreadable", () => {
    fc.assert(
        fc.property(
            anyRecord,
            fc.nat(),
            fc.nat(2),
            fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
            fc.constantFrom(..."0123456789,[]- "),
            (record, where, how, wild, likely) => {
                const text = formatRecord(record)
                const i = where % text.length
                for (const c of [wild, likely]) {
                    const mutant =
                        text.slice(0, how === 0 ? i + 1 : i) +
                        (how === 1 ? "" : c) +
                        text.slice(how === 0 ? i + 1 : i + 1 - (how >> 2))
                    if (mutant === text) continue
                    const read = readRecord(mutant)
                    assert.equal(read.problem, "unreadable", mutant)
                    assert.deepEqual(read.record, tripped)
                }
            },
        ),
        { numRuns: 5000, seed: 1 },
    )
})

test("every place of a text, with every digit: a change is never taken for a record", () => {
    const text = formatRecord({ ...emptyRecord(), agesS: [1, 22, 333] })
    for (let i = 0; i < text.length; ++i)
        for (const c of "0123456789,[]") {
            if (c === text[i]) continue
            const mutant = text.slice(0, i) + c + text.slice(i + 1)
            assert.equal(readRecord(mutant).problem, "unreadable", mutant)
        }
})

test("any text at all: an answer, and tripped once unless it is a record", () => {
    const anyText = fc.oneof(
        fc.string({ unit: "binary", maxLength: 300 }),
        fc.json({ maxDepth: 5 }),
        fc.string({
            unit: fc.constantFrom(..."[],0123456789"),
            maxLength: 250,
        }),
        fc
            .array(fc.oneof(fc.nat(), fc.integer(), fc.double()))
            .map(list => JSON.stringify(list)),
    )
    fc.assert(
        fc.property(anyText, text => {
            const { record, problem } = readRecord(text)
            assert.equal(problem, "unreadable")
            assert.deepEqual(record, tripped)
        }),
        { numRuns: 5000, seed: 1 },
    )
})

test("a value of another type where a text should be is unreadable, not an exception", () => {
    for (const value of [5, NaN, true, {}, [], [2]]) {
        const read = readRecord(value as unknown as string)
        assert.equal(read.problem, "unreadable", `${value}`)
    }
})
