// Runs the table of parser.cases.ts under Node; then, with mqtt-packet as the independent oracle:
// every stream of server packets reads the same here, however it is cut; and mutated streams never make
// the parser throw, hang, hold more than its limit, or depend on how the stream was cut.
import { heldBytes, nextPacket, pushChunk } from "../../src/mqtt/framing"
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import mqttPacket from "mqtt-packet"
import { Parser } from "../../src/mqtt/parser"
import type { Packet } from "../../src/mqtt/packets"
import { wordsOf } from "../../src/core/reason"
import { runCases } from "../node-cases"
import { cases, drain, show } from "./parser.cases"
import { packetId, payload, topicName } from "./arbitrary"

runCases(cases())

/** A packet as mqtt-packet writes it and as we should read it. */
type Sample = { bytes: Buffer; packet: Packet }

function sample(packet: Packet, cmd: object): Sample {
    const options = { protocolVersion: 4 }
    return {
        bytes: mqttPacket.generate(cmd as mqttPacket.Packet, options),
        packet,
    }
}

const serverPacket: fc.Arbitrary<Sample> = fc.oneof(
    fc.constant(sample({ type: "pingresp" }, { cmd: "pingresp" })),
    fc.tuple(fc.boolean(), fc.nat(5)).map(([present, code]) => {
        const sessionPresent = present && code === 0
        return sample(
            { type: "connack", sessionPresent, code },
            { cmd: "connack", sessionPresent, returnCode: code },
        )
    }),
    packetId.map(id =>
        sample(
            { type: "puback", packetId: id },
            { cmd: "puback", messageId: id },
        ),
    ),
    packetId.map(id =>
        sample(
            { type: "unsuback", packetId: id },
            { cmd: "unsuback", messageId: id },
        ),
    ),
    fc
        .tuple(
            packetId,
            fc.array(fc.constantFrom(0, 1, 2, 128), {
                minLength: 1,
                maxLength: 10,
            }),
        )
        .map(([id, codes]) =>
            sample(
                { type: "suback", packetId: id, codes },
                { cmd: "suback", messageId: id, granted: codes },
            ),
        ),
    fc
        .record({
            topic: topicName,
            payload: payload.map(p => Buffer.from(p)),
            qos: fc.constantFrom(0, 1),
            retain: fc.boolean(),
            dup: fc.boolean(),
            packetId,
        })
        .map(p => {
            const dup = p.dup && p.qos === 1
            const id = p.qos ? p.packetId : 0
            return sample(
                { type: "publish", ...p, dup, packetId: id },
                { cmd: "publish", ...p, dup, messageId: id },
            )
        }),
)

/** What we should read when the limit is `max`. */
function expected(each: Sample, max: number): string {
    const { packet, bytes } = each
    if (packet.type !== "publish" || bytes.length <= max) return show(packet)
    let topic = packet.topic
    while (Buffer.byteLength(topic) > max - 2)
        topic = [...topic].slice(0, -1).join("")
    return show({
        type: "oversize",
        topic,
        packetBytes: bytes.length,
        qos: packet.qos,
        packetId: packet.packetId ?? 0,
    })
}

test("any stream of server packets reads the same, however it is cut", () => {
    fc.assert(
        fc.property(
            fc.array(serverPacket, { minLength: 1, maxLength: 12 }),
            fc.oneof(
                fc.integer({ min: 16, max: 200 }),
                fc.constantFrom(1024, 65535),
            ),
            fc.infiniteStream(
                fc.oneof(fc.integer({ min: 1, max: 9 }), fc.nat(3000)),
            ),
            (samples, max, sizes) => {
                const stream = Buffer.concat(samples.map(s => s.bytes))
                const parser = new Parser(max)
                let lines = ""
                for (let at = 0; at < stream.length;) {
                    const size = sizes.next().value as number
                    // a fresh copy that is spoilt afterwards: nothing may point into it
                    const chunk = Buffer.from(stream.subarray(at, at + size))
                    at += chunk.length
                    pushChunk(parser, chunk)
                    const seen: Packet[] = []
                    for (let p = nextPacket(parser); p; p = nextPacket(parser))
                        seen.push(p)
                    chunk.fill(0xff)
                    for (const p of seen) lines += show(p) + "\n"
                    assert.ok(heldBytes(parser) <= max)
                }
                assert.equal(
                    lines,
                    samples.map(s => expected(s, max) + "\n").join(""),
                )
                assert.equal(heldBytes(parser), 0)
            },
        ),
        { seed: 7, numRuns: 3000 },
    )
})

/** A small random generator of its own, so that a fuzz run is one number. */
function generator(seed: number): (below: number) => number {
    let state = seed
    return below => {
        state ^= state << 13
        state ^= state >>> 17
        state ^= state << 5
        return (state >>> 0) % below
    }
}

const FUZZ_RUNS = 200000

test(`${FUZZ_RUNS} mutated streams: never a throw, a hang or too much held; the cut makes no difference`, () => {
    const random = generator(20240611)
    const seeds = fc
        .sample(fc.array(serverPacket, { minLength: 1, maxLength: 6 }), {
            seed: 8,
            numRuns: 400,
        })
        .map(list => Buffer.concat(list.map(s => s.bytes)).subarray(0, 300))
    let dead = 0
    let alive = 0
    for (let run = 0; run < FUZZ_RUNS; ++run) {
        const stream = Buffer.from(seeds[random(seeds.length)])
        for (let changes = 1 + random(4); changes > 0; --changes) {
            const at = random(stream.length)
            if (random(2)) stream[at] = random(256)
            else stream[at] ^= 1 << random(8)
        }
        const max = 16 + random(200)
        const whole = new Parser(max)
        pushChunk(whole, stream)
        const wanted = drain(whole)
        const parser = new Parser(max)
        let lines = ""
        let packets = 0
        for (let at = 0; at < stream.length;) {
            const to = at + 1 + random(random(4) ? 12 : 300)
            pushChunk(parser, stream.subarray(at, to))
            at = to
            for (let p = nextPacket(parser); p; p = nextPacket(parser)) {
                lines += show(p) + "\n"
                assert.ok(++packets <= stream.length, `run ${run}: endless`)
            }
            assert.ok(heldBytes(parser) <= max, `run ${run}: held too much`)
        }
        assert.equal(lines, wanted, `run ${run}: ${stream.toString("hex")}`)
        const end = lines.indexOf("malformed ")
        if (end >= 0) {
            ++dead
            assert.equal(lines.indexOf("\n", end), lines.length - 1)
        } else ++alive
    }
    assert.ok(dead > 20000 && alive > 20000, `${dead} dead, ${alive} alive`)
})

test("topics of every kind of UTF-8 damage agree with Node's strict decoder", () => {
    const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
    const random = generator(77)
    const pieces = [
        0x61, 0x80, 0xbf, 0xc2, 0xc3, 0xe0, 0xa0, 0xed, 0x9f, 0xef, 0xbf, 0xbd,
        0xf0, 0x90, 0xf4, 0x8f, 0xf5, 0xff, 0xc0,
    ]
    let good = 0
    for (let run = 0; run < 100000; ++run) {
        const topic = Buffer.alloc(1 + random(6))
        for (let i = 0; i < topic.length; ++i)
            topic[i] = pieces[random(pieces.length)]
        let text: string | undefined
        try {
            text = strict.decode(topic)
        } catch {
            text = undefined
        }
        const parser = new Parser(1024)
        pushChunk(
            parser,
            Buffer.concat([
                Buffer.from([0x30, 2 + topic.length, 0, topic.length]),
                topic,
            ]),
        )
        const packet = nextPacket(parser)
        if (text === undefined)
            assert.equal(
                packet?.type === "malformed" && wordsOf(packet.reason),
                "MQTT-1.5.3-1 topic isn't well-formed UTF-8",
                topic.toString("hex"),
            )
        else {
            ++good
            assert.equal(packet?.type === "publish" && packet.topic, text)
        }
    }
    assert.ok(good > 1000, `only ${good} well-formed topics were tried`)
})
