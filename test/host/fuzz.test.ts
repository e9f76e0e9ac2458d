// The fuzz: a short one finds nothing, every find ever made stays cured, and harm would be seen.
import assert from "node:assert/strict"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import { fuzzPure, PureFuzz } from "../../host/fuzz/pure"
import { chunksOf, streamOf, type Stream } from "../../host/fuzz/streams"
import { fuzzVm } from "../../host/fuzz/vm"
import { PROJECT } from "../../host/vm/program"
import type { Decode } from "../../src/mqtt/framing"
import { Parser } from "../../src/mqtt/parser"

const FINDS = join(PROJECT, "test/host/finds")

/** Streams of a find, divided by empty chunks. */
function streamsOf(chunks: string[]): Stream[] {
    const streams: Stream[] = []
    let buffers: Buffer[] = []
    const end = () => {
        let at = 0
        const cuts = buffers.map(b => (at += b.length))
        if (cuts.length) streams.push({ bytes: Buffer.concat(buffers), cuts })
        buffers = []
    }
    for (const chunk of chunks)
        if (chunk) buffers.push(Buffer.from(chunk, "hex"))
        else end()
    end()
    return streams
}

test("20,000 mutated streams through parser and session", () => {
    const { done, packets, find } = fuzzPure(7, 0, 20_000)
    assert.equal(find, undefined)
    assert.equal(done, 20_000)
    // It reads a good deal of everything before it meets what is malformed.
    for (const type of ["connack", "publish", "suback", "unsuback", "oversize"])
        assert.ok(packets[type] > 500, `${type}: ${packets[type]}`)
})

test("400 mutated streams through the firmware in the VM", async () => {
    const { done, find } = await fuzzVm(7, 0, 400)
    assert.equal(find, undefined)
    assert.equal(done, 400)
})

const files = existsSync(FINDS) ? readdirSync(FINDS) : []
for (const file of files)
    test(`${file} stays cured`, async () => {
        const { way, chunks } = JSON.parse(
            readFileSync(join(FINDS, file), "utf8"),
        )
        // Newest first is how they are kept.
        const streams = streamsOf(chunks).reverse()
        const pure = new PureFuzz()
        for (const stream of streams) assert.equal(pure.run(stream), undefined)
        if (way !== "vm") return
        const { find } = await fuzzVm(
            1,
            0,
            8 * streams.length,
            undefined,
            i => streams[i % streams.length],
        )
        assert.equal(find, undefined)
    })

test("a stream is the same each time, and whole however it is cut", () => {
    for (let i = 0; i < 200; ++i) {
        const stream = streamOf(3, i, ["a"])
        assert.deepEqual(streamOf(3, i, ["a"]), stream)
        assert.deepEqual(Buffer.concat(chunksOf(stream)), stream.bytes)
        assert.ok(chunksOf(stream).every(c => c.length && c.length <= 1024))
    }
})

test("a parser that throws, or remembers earlier streams, is found out", () => {
    const broken: [RegExp, (parser: Parser) => Decode][] = [
        [
            /boom/,
            ({ decode }) =>
                (framer, source, at) => {
                    if (framer.first === 0xb0) throw new Error("boom")
                    return decode(framer, source, at)
                },
        ],
        [
            /cut differently/,
            ({ decode }) => {
                let packets = 0
                return (framer, source, at) =>
                    ++packets === 500
                        ? { type: "pingresp" }
                        : decode(framer, source, at)
            },
        ],
    ]
    for (const [what, decode] of broken) {
        const make = (limit: number) => {
            const parser = new Parser(limit)
            return Object.assign(parser, { decode: decode(parser) })
        }
        const { find } = fuzzPure(1, 0, 5000, undefined, make)
        assert.match(find?.what ?? "nothing", what)
    }
})

test("a program that dies in the VM is found out, with its last streams", async () => {
    const { find } = await fuzzVm(
        1,
        0,
        200,
        undefined,
        undefined,
        "test/bytecode/fuzz-bad.ts",
    )
    assert.match(find?.what ?? "nothing", /^panic 60005; the last streams/)
    assert.ok(find!.chunks.length > 0)
})
