// Runs the table of encode.cases.ts under Node; then, with mqtt-packet as the independent oracle:
// every packet we send means there what it was meant to mean.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import mqttPacket from "mqtt-packet"
import {
    connectPacket,
    begin,
    filterPacket,
    markDup,
    pubackPacket,
    publishPacket,
} from "../../src/mqtt/encode"
import { checkConnect } from "../../src/mqtt/checks"
import { runCases } from "../node-cases"
import { cases } from "./encode.cases"
import { clientText, filter, packetId, payload, topicName } from "./arbitrary"

runCases(cases())

/** What mqtt-packet makes of `bytes`: exactly one packet. */
function oracle(bytes: Buffer): mqttPacket.Packet {
    const parser = mqttPacket.parser({ protocolVersion: 4 })
    const seen: mqttPacket.Packet[] = []
    parser.on("packet", packet => seen.push(packet))
    parser.on("error", error => {
        throw error
    })
    assert.equal(parser.parse(bytes), 0, "bytes left over")
    assert.equal(seen.length, 1)
    return seen[0]
}

/** `actual` has at least the properties of `expected`. */
function includes(actual: object, expected: Record<string, unknown>) {
    for (const key of Object.keys(expected))
        assert.deepEqual(
            (actual as Record<string, unknown>)[key],
            expected[key],
            key,
        )
}

test("any CONNECT means to mqtt-packet what it was meant to mean", () => {
    fc.assert(
        fc.property(
            fc.record({
                clientId: clientText(1),
                keepAliveSeconds: fc.nat(65535),
                cleanSession: fc.boolean(),
                username: fc.option(clientText(0), { nil: undefined }),
                password: fc.option(payload, { nil: undefined }),
                will: fc.option(
                    fc.record({
                        topic: topicName,
                        payload,
                        qos: fc.constantFrom(0, 1, 2) as fc.Arbitrary<0 | 1>,
                        retain: fc.boolean(),
                    }),
                    { nil: undefined },
                ),
            }),
            options => {
                if (options.username === undefined) options.password = undefined
                const parsed = oracle(connectPacket(options))
                includes(parsed, {
                    cmd: "connect",
                    protocolId: "MQTT",
                    protocolVersion: 4,
                    clientId: options.clientId,
                    keepalive: options.keepAliveSeconds,
                    clean: options.cleanSession,
                })
                const seen = parsed as mqttPacket.IConnectPacket
                assert.equal(seen.username ?? undefined, options.username)
                assert.deepEqual(
                    seen.password ?? undefined,
                    options.password === undefined
                        ? undefined
                        : Buffer.from(options.password),
                )
                assert.equal(!!seen.will, !!options.will)
                if (options.will && seen.will)
                    includes(seen.will, {
                        topic: options.will.topic,
                        payload: Buffer.from(options.will.payload),
                        qos: options.will.qos,
                        retain: options.will.retain,
                    })
            },
        ),
        { seed: 1, numRuns: 2000 },
    )
})

test("any PUBLISH means to mqtt-packet what it was meant to mean", () => {
    fc.assert(
        fc.property(
            topicName,
            payload,
            fc.constantFrom(0, 1) as fc.Arbitrary<0 | 1>,
            fc.boolean(),
            packetId,
            fc.boolean(),
            (topic, body, qos, retain, id, dup) => {
                const packet = publishPacket(
                    topic,
                    body,
                    qos,
                    retain,
                    id,
                    dup && qos === 1,
                )
                if (qos) markDup(packet)
                includes(oracle(packet), {
                    cmd: "publish",
                    topic,
                    payload: Buffer.from(body),
                    qos,
                    retain,
                    dup: qos === 1,
                    messageId: qos ? id : undefined,
                })
            },
        ),
        { seed: 2, numRuns: 2000 },
    )
})

test("any SUBSCRIBE, UNSUBSCRIBE, PUBACK, PINGREQ and DISCONNECT too", () => {
    fc.assert(
        fc.property(
            packetId,
            filter,
            fc.constantFrom(0, 1),
            (messageId, topic, qos) => {
                const parsed = oracle(filterPacket(0x82, messageId, topic, qos))
                includes(parsed, { cmd: "subscribe", messageId })
                assert.deepEqual(
                    (parsed as mqttPacket.ISubscribePacket).subscriptions.map(
                        s => ({ topic: s.topic, qos: s.qos }),
                    ),
                    [{ topic, qos }],
                )
                includes(oracle(filterPacket(0xa2, messageId, topic, qos)), {
                    cmd: "unsubscribe",
                    messageId,
                    unsubscriptions: [topic],
                })
                includes(oracle(pubackPacket(messageId)), {
                    cmd: "puback",
                    messageId,
                })
            },
        ),
        { seed: 3, numRuns: 1000 },
    )
    assert.equal(oracle(begin(0xc0, 0)).cmd, "pingreq")
    assert.equal(oracle(begin(0xe0, 0)).cmd, "disconnect")
})

test("remaining lengths around 16,384 and 2,097,152 take 2, 3 and 4 bytes", () => {
    for (const [bodyBytes, headHex] of [
        [16383, "30ff7f"],
        [16384, "30808001"],
        [2097151, "30ffff7f"],
        [2097152, "3080808001"],
    ] as const) {
        const packet = publishPacket(
            "a",
            Buffer.alloc(bodyBytes - 3, 7),
            0,
            false,
            0,
            false,
        )
        const headBytes = headHex.length / 2
        assert.equal(packet.length, headBytes + bodyBytes)
        assert.equal(packet.subarray(0, headBytes).toString("hex"), headHex)
        assert.equal((oracle(packet) as mqttPacket.IPublishPacket).topic, "a")
    }
})

test("strings of 65,535 bytes go out, longer ones are refused by name", () => {
    const max = "ü".repeat(32767) + "a"
    const options = {
        clientId: max,
        keepAliveSeconds: 0,
        cleanSession: true,
        username: max,
        password: max,
    }
    includes(oracle(connectPacket(options)), {
        clientId: max,
        username: max,
        password: Buffer.from(max),
    })
    for (const name of ["clientId", "username", "password"])
        assert.throws(
            () => checkConnect({ ...options, [name]: max + "b" }),
            new RegExp(
                `RangeError: ${name} length in bytes is 65536: must be [01]..65535`,
            ),
        )
})
