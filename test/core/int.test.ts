// Integer arithmetic against BigInt, and draws against their distribution.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { below, div, MAX_INT, mulDiv, umod } from "../../src/core/int"
import { Sfc32 } from "../../src/core/random"
import { runCases } from "../node-cases"
import { cases } from "./int.cases"
import { chiSquare } from "./chi-square"

runCases(cases())

/** Any integer of the range, as often near its ends and powers of two as anywhere else. */
function edgy(min: number): fc.Arbitrary<number> {
    const nearPower = fc
        .tuple(fc.integer({ min: 0, max: 31 }), fc.integer({ min: -2, max: 2 }))
        .map(([bits, off]) => Math.min(MAX_INT, Math.max(min, 2 ** bits + off)))
    return fc.oneof(fc.integer({ min, max: MAX_INT }), nearPower)
}

test("mulDiv agrees with BigInt for any operands", () => {
    fc.assert(
        fc.property(edgy(0), edgy(0), edgy(1), (a, b, c) => {
            const exact = (BigInt(a) * BigInt(b)) / BigInt(c)
            const expected = exact > BigInt(MAX_INT) ? MAX_INT : Number(exact)
            assert.equal(mulDiv(a, b, c), expected)
        }),
        { numRuns: 20000, seed: 1 },
    )
})

test("div agrees with BigInt for any operands", () => {
    fc.assert(
        fc.property(edgy(0), edgy(1), (a, b) =>
            assert.equal(div(a, b), Number(BigInt(a) / BigInt(b))),
        ),
        { numRuns: 5000, seed: 1 },
    )
})

test("umod reads every word as unsigned", () => {
    fc.assert(
        fc.property(fc.integer(), edgy(1), (word, n) =>
            assert.equal(umod(word, n), (word >>> 0) % n),
        ),
        { numRuns: 20000, seed: 1 },
    )
})

for (const n of [2, 3, 6, 10, 100, 257])
    test(`draws below ${n} are equally likely`, () => {
        const random = new Sfc32(1, 2, 3, 4)
        const counts = new Array<number>(n).fill(0)
        for (let i = 0; i < n * 1000; ++i) counts[below(n, random)]++
        assert.ok(chiSquare(counts) < 4, `${chiSquare(counts)} deviations`)
    })

test("draws below 3/4 of 2^31 have no modulo bias", () => {
    // Reducing a 32-bit word would make the lower third half as likely again.
    const n = 3 * 2 ** 29
    const random = new Sfc32(5, 6, 7, 8)
    const counts = [0, 0, 0]
    for (let i = 0; i < 30000; ++i)
        counts[Math.floor(below(n, random) / 2 ** 29)]++
    assert.ok(chiSquare(counts) < 4, counts.join())
})
