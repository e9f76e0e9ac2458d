// Runs the table of v5-codec.cases.ts under Node; then, with mqtt-packet as the independent oracle:
// every packet we send in MQTT 5, with every property, means there what it was meant to mean.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import mqttPacket from "mqtt-packet"
import {
    begin,
    filterPacket,
    pubackPacket,
    publishPacket,
} from "../../src/mqtt/encode"
import {
    connectPacket5,
    disconnectPacket5,
    wire5,
} from "../../src/mqtt/v5-codec"
import { encodeProperties, Owner } from "../../src/mqtt/v5-properties"
import { runCases } from "../node-cases"
import { clientText, filter, packetId, payload, topicName } from "./arbitrary"
import { asOracle, properties } from "./v5-arbitrary"
import { cases } from "./v5-codec.cases"

runCases(cases())

/** What mqtt-packet makes of `bytes`: exactly one packet. */
function oracle(bytes: Buffer): mqttPacket.Packet {
    const parser = mqttPacket.parser({ protocolVersion: 5 })
    const seen: mqttPacket.Packet[] = []
    parser.on("packet", packet => seen.push(packet))
    parser.on("error", error => {
        throw error
    })
    assert.equal(parser.parse(bytes), 0, "bytes left over")
    assert.equal(seen.length, 1)
    return seen[0]
}

/** Without prototypes, which mqtt-packet's objects don't have. */
function plain(o: object | undefined): unknown {
    if (!o) return undefined
    const entries = Object.entries(o).map(([key, value]) => [
        key,
        value && typeof value === "object" && !Buffer.isBuffer(value)
            ? plain(value)
            : value,
    ])
    return Object.fromEntries(entries)
}

/** `actual` has at least the properties of `expected`. */
function includes(actual: object, expected: Record<string, unknown>) {
    for (const key of Object.keys(expected))
        assert.deepEqual(
            key === "properties"
                ? plain((actual as Record<string, object>)[key])
                : (actual as Record<string, unknown>)[key],
            expected[key],
            key,
        )
}

const CONNECT = [17, 23, 25, 33, 34, 39]
const CONNECT_AUTHENTICATION = [...CONNECT, 21, 22]
const WILL = [1, 2, 3, 8, 9, 24]
const PUBLISH = [1, 2, 3, 8, 9, 35]

test("any CONNECT means to mqtt-packet what it was meant to mean", () => {
    const withWill = fc.record({
        topic: topicName,
        payload,
        list: properties(WILL),
    })
    const seen = new Set<string>()
    fc.assert(
        fc.property(
            clientText(0),
            fc.nat(65535),
            properties(CONNECT_AUTHENTICATION),
            fc.option(withWill, { nil: undefined }),
            fc.option(clientText(0), { nil: undefined }),
            (clientId, keepAliveSeconds, list, will, username) => {
                const parsed = oracle(
                    connectPacket5(
                        {
                            clientId,
                            keepAliveSeconds,
                            cleanSession: true,
                            username,
                            password: username,
                            will: will && { ...will, qos: 1, retain: true },
                        },
                        list,
                        will ? will.list : [],
                    ),
                ) as mqttPacket.IConnectPacket
                includes(parsed, {
                    cmd: "connect",
                    protocolVersion: 5,
                    clientId,
                    keepalive: keepAliveSeconds,
                    clean: true,
                    properties: asOracle(list),
                })
                assert.equal(parsed.username ?? undefined, username)
                assert.equal(!!parsed.will, !!will)
                for (const { id } of list) seen.add(`connect ${id}`)
                if (!will) return
                for (const { id } of will.list) seen.add(`will ${id}`)
                includes(parsed.will!, {
                    topic: will.topic,
                    payload: Buffer.from(will.payload),
                    qos: 1,
                    retain: true,
                    properties: asOracle(will.list),
                })
            },
        ),
        { seed: 1, numRuns: 800 },
    )
    for (const id of [...CONNECT_AUTHENTICATION, 38])
        assert.ok(seen.has(`connect ${id}`), `${id}`)
    for (const id of [...WILL, 38]) assert.ok(seen.has(`will ${id}`), `${id}`)
})

test("any PUBLISH means to mqtt-packet what it was meant to mean", () => {
    const seen = new Set<number>()
    fc.assert(
        fc.property(
            topicName,
            payload,
            fc.constantFrom(0, 1) as fc.Arbitrary<0 | 1>,
            fc.boolean(),
            packetId,
            properties(PUBLISH),
            (topic, body, qos, retain, id, list) => {
                const dup = qos === 1 && retain
                const packet = publishPacket(topic, body, qos, retain, id, dup)
                const section = encodeProperties(Owner.publish, list)
                for (const p of list) seen.add(p.id)
                includes(oracle(wire5(packet, section)), {
                    cmd: "publish",
                    topic,
                    payload: Buffer.from(body),
                    qos,
                    retain,
                    dup,
                    messageId: qos ? id : undefined,
                    properties: asOracle(list),
                })
                const bare = oracle(wire5(packet))
                includes(bare, { topic, properties: undefined })
            },
        ),
        { seed: 2, numRuns: 800 },
    )
    for (const id of [...PUBLISH, 38]) assert.ok(seen.has(id), `${id}`)
})

test("any SUBSCRIBE, UNSUBSCRIBE, PUBACK, PINGREQ and DISCONNECT too", () => {
    fc.assert(
        fc.property(
            packetId,
            filter,
            fc.constantFrom(0, 1),
            properties([11]),
            properties([]),
            (messageId, topic, qos, list, users) => {
                const subscribe = oracle(
                    wire5(
                        filterPacket(0x82, messageId, topic, qos),
                        encodeProperties(Owner.subscribe, list),
                    ),
                ) as mqttPacket.ISubscribePacket
                includes(subscribe, {
                    cmd: "subscribe",
                    messageId,
                    properties: asOracle(list),
                })
                assert.deepEqual(
                    subscribe.subscriptions.map(s => ({
                        topic: s.topic,
                        qos: s.qos,
                        more: [s.nl, s.rap, s.rh],
                    })),
                    [{ topic, qos, more: [false, false, 0] }],
                )
                const unsubscribe = wire5(
                    filterPacket(0xa2, messageId, topic, qos),
                    encodeProperties(Owner.unsubscribe, users),
                )
                includes(oracle(unsubscribe), {
                    cmd: "unsubscribe",
                    messageId,
                    unsubscriptions: [topic],
                    properties: asOracle(users),
                })
                includes(oracle(wire5(pubackPacket(messageId))), {
                    cmd: "puback",
                    messageId,
                    reasonCode: 0,
                })
            },
        ),
        { seed: 3, numRuns: 400 },
    )
    assert.equal(oracle(wire5(begin(0xc0, 0))).cmd, "pingreq")
    includes(oracle(wire5(begin(0xe0, 0))), {
        cmd: "disconnect",
        reasonCode: 0,
    })
    for (const code of [0x81, 0x82, 0x94, 0x95])
        includes(oracle(disconnectPacket5(code)), {
            cmd: "disconnect",
            reasonCode: code,
        })
})
