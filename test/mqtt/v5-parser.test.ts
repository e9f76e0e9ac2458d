// Runs the table of v5-parser.cases.ts under Node; then, with mqtt-packet as the independent oracle:
// every stream of broker packets, with every property, reads the same here, however it is cut; and mutated
// streams never make the parser throw, hang, hold more than its limit, or depend on how the stream was cut.
import { heldBytes, nextPacket, pushChunk } from "../../src/mqtt/framing"
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import mqttPacket from "mqtt-packet"
import type { Packet } from "../../src/mqtt/packets"
import { Parser5 } from "../../src/mqtt/v5-parser"
import type { Property } from "../../src/mqtt/v5-properties"
import { runCases } from "../node-cases"
import { packetId, payload, topicName } from "./arbitrary"
import { asOracle, properties, sorted } from "./v5-arbitrary"
import { cases, drain, show } from "./v5-parser.cases"

runCases(cases())

/** A packet as mqtt-packet writes it and as we should read it. */
type Sample = { bytes: Buffer; packet: Packet }

function sample(packet: Packet, cmd: object): Sample {
    return {
        bytes: mqttPacket.generate(cmd as mqttPacket.Packet, {
            protocolVersion: 5,
        }),
        packet,
    }
}

const CONNACK = [17, 18, 19, 26, 28, 31, 33, 34, 36, 37, 39, 40, 41, 42]
const PUBLISH = [1, 2, 3, 8, 9, 11]

function reasonOf(list: Property[]): string {
    return (list.find(p => p.id === 31)?.value as string) ?? ""
}

function acknowledgement(type: "suback" | "unsuback", possible: number[]) {
    return fc
        .tuple(
            packetId,
            fc.array(fc.constantFrom(...possible), {
                minLength: 1,
                maxLength: 10,
            }),
            properties([31]),
        )
        .map(([id, codes, list]) =>
            sample(
                { type, packetId: id, codes, reason: reasonOf(list) },
                {
                    cmd: type,
                    messageId: id,
                    granted: codes,
                    properties: asOracle(list),
                },
            ),
        )
}

const serverPacket: fc.Arbitrary<Sample> = fc.oneof(
    fc.constant(sample({ type: "pingresp" }, { cmd: "pingresp" })),
    fc
        .tuple(
            fc.boolean(),
            fc.constantFrom(0, 0x80, 0x84, 0x88, 0x89, 0x9d, 0x9f),
            properties(CONNACK),
        )
        .map(([present, code, list]) => {
            const sessionPresent = present && code === 0
            return sample(
                {
                    type: "connack",
                    sessionPresent,
                    code,
                    level: 5,
                    properties: list,
                },
                {
                    cmd: "connack",
                    sessionPresent,
                    reasonCode: code,
                    properties: asOracle(list),
                },
            )
        }),
    fc
        .tuple(packetId, fc.constantFrom(0, 0x10, 0x97), properties([31]))
        .map(([id, code, list]) =>
            sample(
                { type: "puback", packetId: id, code, reason: reasonOf(list) },
                {
                    cmd: "puback",
                    messageId: id,
                    reasonCode: code,
                    properties: asOracle(list),
                },
            ),
        ),
    acknowledgement("suback", [0, 1, 2, 0x80, 0x87, 0xa2]),
    acknowledgement("unsuback", [0, 0x11, 0x87]),
    fc
        .tuple(
            fc.constantFrom(0, 0x81, 0x89, 0x8b, 0x8e, 0x9c, 0x9d),
            properties([28, 31]),
        )
        .map(([code, list]) =>
            sample(
                { type: "disconnect", code, properties: list },
                {
                    cmd: "disconnect",
                    reasonCode: code,
                    properties: asOracle(list),
                },
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
            properties: properties(PUBLISH),
        })
        .map(p => {
            const dup = p.dup && p.qos === 1
            const id = p.qos ? p.packetId : 0
            return sample(
                { type: "publish", ...p, dup, packetId: id },
                {
                    cmd: "publish",
                    ...p,
                    dup,
                    messageId: id,
                    properties: asOracle(p.properties),
                },
            )
        }),
)

/** As one line, with properties in a fixed order. */
function line(packet: Packet): string {
    const has = "properties" in packet && packet.properties
    return show(
        has ? ({ ...packet, properties: sorted(has) } as Packet) : packet,
    )
}

/** Which properties have been there. */
const seenIds = new Set<string>()

test("any stream of broker packets reads the same, however it is cut", () => {
    fc.assert(
        fc.property(
            fc.array(serverPacket, { minLength: 1, maxLength: 8 }),
            fc.infiniteStream(
                fc.oneof(fc.integer({ min: 1, max: 9 }), fc.nat(3000)),
            ),
            (samples, sizes) => {
                const stream = Buffer.concat(samples.map(s => s.bytes))
                const parser = new Parser5(65535)
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
                    for (const p of seen) {
                        lines += line(p) + "\n"
                        if ("properties" in p)
                            for (const { id } of p.properties ?? [])
                                seenIds.add(`${p.type} ${id}`)
                    }
                }
                assert.equal(
                    lines,
                    samples.map(s => line(s.packet) + "\n").join(""),
                )
                assert.equal(heldBytes(parser), 0)
            },
        ),
        { seed: 7, numRuns: 1500 },
    )
    for (const id of [...CONNACK, 38]) assert.ok(seenIds.has(`connack ${id}`))
    for (const id of [...PUBLISH, 38]) assert.ok(seenIds.has(`publish ${id}`))
    for (const id of [28, 31, 38]) assert.ok(seenIds.has(`disconnect ${id}`))
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

const FUZZ_RUNS = 50000

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
        for (let changes = random(4); changes > 0; --changes) {
            const at = random(stream.length)
            if (random(2)) stream[at] = random(256)
            else stream[at] ^= 1 << random(8)
        }
        const max = 64 + random(400)
        const whole = new Parser5(max)
        pushChunk(whole, stream)
        const wanted = drain(whole)
        const parser = new Parser5(max)
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
        if (lines.includes("malformed ")) ++dead
        else ++alive
    }
    assert.ok(dead > 10000 && alive > 5000, `${dead} dead, ${alive} alive`)
})
