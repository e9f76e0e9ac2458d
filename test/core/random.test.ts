// The generator against an independent one, and its spread over a fleet.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { below } from "../../src/core/int"
import { seededRandom, Sfc32 } from "../../src/core/random"
import { runCases } from "../node-cases"
import { chiSquare } from "./chi-square"
import { cases } from "./random.cases"

runCases(cases())

/** sfc32 from its published definition, on unsigned 32-bit arrays. */
function* reference(seed: number[]): Generator<number> {
    const s = Uint32Array.from(seed)
    const t = new Uint32Array(1)
    for (let round = 0; ; ++round) {
        t[0] = s[0] + s[1] + s[3]
        s[3] += 1
        s[0] = s[1] ^ (s[1] >>> 9)
        s[1] = s[2] * 9
        s[2] = ((s[2] << 21) | (s[2] >>> 11)) + t[0]
        if (round >= 20) yield t[0] | 0
    }
}

test("words are those of sfc32 for any seed", () => {
    const seed = fc.array(fc.integer(), { minLength: 4, maxLength: 4 })
    fc.assert(
        fc.property(seed, words => {
            const ours = new Sfc32(words[0], words[1], words[2], words[3])
            const theirs = reference(words)
            for (let i = 0; i < 50; ++i)
                assert.equal(ours.next(), theirs.next().value)
        }),
        { numRuns: 500, seed: 1 },
    )
})

/** The first draws of a fleet with consecutive ids, in bins. */
function fleetDraws(devices: number, bins: number, skip: number): number[] {
    const counts = new Array<number>(bins).fill(0)
    for (let i = 0; i < devices; ++i) {
        const id = (0x240ac40000n + BigInt(i)).toString(16).padStart(16, "0")
        const random = seededRandom(Buffer.alloc(8), id)
        for (let k = 0; k < skip; ++k) random.next()
        counts[below(bins, random)]++
    }
    return counts
}

for (const skip of [0, 1, 5])
    test(`20,000 consecutive ids with dead entropy spread evenly in draw ${skip + 1}`, () => {
        const off = chiSquare(fleetDraws(20000, 100, skip))
        assert.ok(off < 4, `${off} deviations`)
    })

test("20,000 devices with dead entropy all start differently", () => {
    const seen = new Set<string>()
    for (let i = 0; i < 20000; ++i) {
        const id = i.toString(16).padStart(16, "0")
        const random = seededRandom(Buffer.alloc(8), id)
        seen.add(`${random.next()} ${random.next()}`)
    }
    assert.equal(seen.size, 20000)
})

test("every bit of a word is set half of the time", () => {
    const random = new Sfc32(1, 2, 3, 4)
    const set = new Array<number>(32).fill(0)
    for (let i = 0; i < 20000; ++i) {
        const word = random.next()
        for (let bit = 0; bit < 32; ++bit) set[bit] += (word >>> bit) & 1
    }
    for (const count of set) assert.ok(Math.abs(count - 10000) < 400, `${set}`)
})
