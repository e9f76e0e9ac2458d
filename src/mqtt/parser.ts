// MQTT 3.1.1 packets in. Feed it what the socket gives, in whatever pieces, and take packets out:
//     pushChunk(parser, chunk)
//     while ((packet = nextPacket(parser)) !== undefined) ...
// Measured in the VM, a PINGRESP costs about 300 steps and a small PUBLISH about 500, and the VM panics after
// 131,072 without a suspension; a chunk of 1,024 bytes may hold 512 packets. So suspend every 32 packets or so.
// Rule of the room: pure. No recursion, no loop over a body; bounded memory whatever the peer sends.
//
// It says what a packet is, not whether it may come now: "CONNACK first and only once", or an
// acknowledgement of something never sent, is the session's to judge.
//
// QoS 2: a server must deliver with at most the QoS a subscription was granted [MQTT-3.8.4-6] and
// encode.ts asks for 0 or 1, so PUBLISH with QoS 2, PUBREC, PUBREL and PUBCOMP are protocol
// violations here. Taking such a message as QoS 1 would deliver it twice. One way to meet them is a
// session kept at the broker from other firmware with the same client id: connect once with
// cleanSession to clear it.
import { Why } from "../core/reason"
import { readText, wholeCharacters } from "./bytes"
import { MAX_FILTERS } from "./encode"
import { endStream, Framer } from "./framing"
import type { Malformed, Packet, Publish } from "./packets"

const enum PacketType {
    connack = 2,
    publish = 3,
    puback = 4,
    suback = 9,
    unsuback = 11,
    pingresp = 13,
}

/** In the first byte of a PUBLISH: QoS 1. */
const QOS = 2

/** A streaming parser for one connection. */
export class Parser extends Framer {
    /** The last message's: one like it needs no second look. */
    topic: string | undefined = undefined

    /** @param maxPacketBytes as for `Framer` */
    constructor(maxPacketBytes: number) {
        super(maxPacketBytes, headFault, decode)
    }
}

function malformed(framer: Framer, why: Why): Malformed {
    const reason = why | (framer.first << 8)
    endStream(framer)
    return { type: "malformed", reason }
}

function headFault(framer: Framer): Malformed | undefined {
    const first = framer.first
    const bodyBytes = framer.bodyBytes
    // The busiest first: PUBLISH with QoS 0, or with QoS 1.
    if (bodyBytes >= 0 && (first & 0xf4) === 0x30 && (first & 14) !== 8)
        return undefined
    let why = 0
    let min = 2
    let max = 2
    if (bodyBytes < 0) why = Why.badLength
    else
        switch (first >> 4) {
            case PacketType.publish:
                why = flagsFault(first)
                break
            case PacketType.connack:
            case PacketType.puback:
            case PacketType.unsuback:
                break
            case PacketType.suback:
                min = 3
                max = 2 + MAX_FILTERS
                break
            case PacketType.pingresp:
                min = 0
                max = 0
                break
            default:
                why = Why.wrongType
        }
    if (why === 0) {
        if (first & 15) why = Why.badFlags
        else if (bodyBytes < min || bodyBytes > max) why = Why.wrongSize
        else if (framer.oversize) why = Why.tooLarge
        else return undefined
    }
    return malformed(framer, why)
}

/** Of a PUBLISH: QoS 2 or 3, or DUP with QoS 0. */
function flagsFault(first: number): Why {
    if ((first & 6) === 6) return Why.qos3
    return first & 4 ? Why.qos2 : Why.dupQos0
}

function decode(framer: Framer, source: Buffer, at: number): Packet {
    const first = framer.first
    const bodyBytes = framer.bodyBytes
    if (first >> 4 !== PacketType.publish)
        return decodeAnswer(framer, source, at)
    const topicBytes = (source[at] << 8) | source[at + 1]
    let payloadAt = 2 + topicBytes
    if (first & QOS) payloadAt += 2
    // No `||` here: the VM takes fewer steps for two `if`s, at each message.
    if (topicBytes === 0) return tooSmall(framer, topicBytes)
    if (payloadAt > bodyBytes) return tooSmall(framer, topicBytes)
    if (framer.oversize) return decodeOversize(framer, source, topicBytes)

    const parser = framer as Parser
    // One like the last needs no second look. The device's decoder reads beyond a Buffer that ends inside a character.
    let topic = ""
    if (source[at + 1 + topicBytes] < 0x80) {
        // As copyOf, which would be one call more: two of these for each message.
        const raw = Buffer.alloc(topicBytes)
        raw.blitAt(0, source, at + 2, topicBytes)
        topic = raw.toString()
    }
    if (topic !== parser.topic) {
        topic = readText(source, at + 2, topicBytes) as string
        const why = topicFault(topic)
        if (why) return malformed(framer, why)
        // With U+FFFD in it, what is ill-formed could look like it.
        parser.topic = topic.indexOf("\uFFFD") < 0 ? topic : undefined
    }
    const payload = Buffer.alloc(bodyBytes - payloadAt)
    payload.blitAt(0, source, at + payloadAt, bodyBytes - payloadAt)
    const message: Publish = { type: "publish", topic, payload, qos: 0 }
    if (first === 0x30) return message
    return withFlags(framer, message, source, at + payloadAt)
}

function withFlags(
    framer: Framer,
    message: Publish,
    source: Buffer,
    payloadAt: number,
): Packet {
    const first = framer.first
    if (first & 1) message.retain = true
    if (first & 8) message.dup = true
    if (first & QOS) {
        message.qos = 1
        message.packetId = (source[payloadAt - 2] << 8) | source[payloadAt - 1]
        if (message.packetId === 0) return malformed(framer, Why.packetIdZero)
    }
    return message
}

/** A PUBLISH that ends before its payload could begin. */
function tooSmall(framer: Framer, topicBytes: number): Malformed {
    const bodyBytes = framer.bodyBytes
    let why = Why.noPacketId
    if (bodyBytes < 2) why = Why.noTopic
    else if (topicBytes === 0) why = Why.emptyTopic
    else if (2 + topicBytes > bodyBytes) why = Why.topicTooLong
    return malformed(framer, why)
}

/** A PUBLISH of which only the first `maxPacketBytes` bytes of the body are there. */
function decodeOversize(
    framer: Framer,
    body: Buffer,
    topicBytes: number,
): Packet {
    const qos = framer.first & QOS ? 1 : 0
    const isCut = 2 + topicBytes > body.length
    const textBytes = isCut
        ? wholeCharacters(body, 2, body.length - 2)
        : topicBytes
    const packetId = qos ? framer.skippedId : 0
    if (qos && packetId === 0) return malformed(framer, Why.packetIdZero)
    const topic = readText(body, 2, textBytes) as string
    const why = topicFault(topic)
    if (why) return malformed(framer, why)
    const packetBytes = framer.headBytes + framer.bodyBytes
    return { type: "oversize", topic, packetBytes, qos, packetId }
}

/** Anything but a PUBLISH. */
function decodeAnswer(framer: Framer, source: Buffer, at: number): Packet {
    const type = framer.first >> 4
    if (type === PacketType.pingresp) return { type: "pingresp" }

    // all others start with two bytes, mostly a packet identifier
    const packetId = (source[at] << 8) | source[at + 1]
    if (type === PacketType.connack) {
        const code = source[at + 1]
        if (packetId > 0x1ff) return malformed(framer, Why.connackFlags)
        if (packetId > 0x100) return malformed(framer, Why.presentAndRefused)
        return { type: "connack", sessionPresent: packetId > 0xff, code }
    }
    if (packetId === 0)
        return malformed(
            framer,
            type === PacketType.puback ? Why.ackOfZero : Why.subackOfZero,
        )
    if (type === PacketType.puback) return { type: "puback", packetId }
    if (type === PacketType.unsuback) return { type: "unsuback", packetId }

    const codes: number[] = []
    for (let i = 2; i < framer.bodyBytes; ++i) {
        const code = source[at + i]
        if (code > 2 && code !== 0x80) return malformed(framer, Why.subackCode)
        codes.push(code)
    }
    return { type: "suback", packetId, codes }
}

/** What is wrong with the topic of a message; 0 when nothing is. */
function topicFault(topic: string | undefined): Why | 0 {
    if (topic === undefined) return Why.badUtf8
    if (topic.indexOf("\u0000") >= 0) return Why.nulInTopic
    return topic.indexOf("+") >= 0 || topic.indexOf("#") >= 0 ? Why.wildcard : 0
}
