// MQTT 3.1.1 packets in. Feed it what the socket gives, in whatever pieces, and take packets out:
//     parser.push(chunk)
//     while ((packet = parser.next()) !== undefined) ...
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
import { Why, type Reason } from "../core/reason"
import { copyOf, readText, wholeCharacters } from "./bytes"
import { MAX_FILTERS } from "./encode"
import { Framer } from "./framing"
import type { Property } from "./v5-properties"

/**
 * CONNACK (3.2). `code` 0 is accepted; 1..5 are the refusals of table 3.1; others are passed on as they are.
 * The rest is MQTT 5's: `level` 4 there is an answer in MQTT 3.1.1; `keepAliveSeconds` is the longest the broker waits.
 */
export interface Connack {
    type: "connack"
    sessionPresent: boolean
    code: number
    level?: number
    properties?: Property[]
    keepAliveSeconds?: number
}

/** PUBACK (3.4). A `code` of 0x80 or above, in MQTT 5: the broker has not taken the message, and never will. */
export interface Puback {
    type: "puback"
    packetId: number
    code?: number
    reason?: string
}

/**
 * PUBLISH (3.3). `payload` is a copy and the receiver's to keep; `packetId` is 0 with QoS 0. To read it as
 * text use `readText(payload, 0, payload.length)` of bytes.ts: the device's `toString` reads beyond the end of a
 * Buffer that ends inside a UTF-8 character.
 */
export interface Publish {
    type: "publish"
    topic: string
    payload: Buffer
    qos: number
    retain: boolean
    dup: boolean
    packetId: number
    /** MQTT 5 only; left out when there are none. */
    properties?: Property[]
}

/** A PUBLISH above `maxPacketBytes`, reported after its last byte was skipped. QoS 1 still needs its PUBACK. */
export interface Oversize {
    type: "oversize"
    /** As many whole characters of the topic as fit in `maxPacketBytes - 2` bytes. */
    topic: string
    /** Size of the whole packet in bytes, fixed header included. */
    packetBytes: number
    qos: number
    /** 0 with QoS 0. */
    packetId: number
}

/** SUBACK (3.9): one code per filter, in order: the granted QoS, or 0x80 (MQTT 5: and above) for refused. */
export interface Suback {
    type: "suback"
    packetId: number
    codes: number[]
    /** MQTT 5: in the broker's words, or "". */
    reason?: string
}

/** UNSUBACK (3.11); MQTT 5 has a code per filter. */
export interface Unsuback {
    type: "unsuback"
    packetId: number
    codes?: number[]
    reason?: string
}

/** DISCONNECT from the broker, MQTT 5 only (3.14). */
export interface Disconnect {
    type: "disconnect"
    code: number
    properties: Property[]
}

/** What the server must not send: close the connection [MQTT-4.8.0-1]. */
export interface Malformed {
    type: "malformed"
    /** The violated statement. */
    reason: Reason
    /** MQTT 5: what our DISCONNECT gives as the reason. */
    code?: number
}

/** Everything `Parser.next` returns, told apart by `type`. */
export type Packet =
    | Connack
    | Publish
    | Oversize
    | Puback
    | Suback
    | Unsuback
    | { type: "pingresp" }
    | Disconnect
    | Malformed

const enum PacketType {
    connack = 2,
    publish = 3,
    puback = 4,
    suback = 9,
    unsuback = 11,
    pingresp = 13,
}

/** A streaming parser for one connection. */
export class Parser extends Framer {
    private malformed(why: Why): Malformed {
        const reason = why | (this.first << 8)
        this.die()
        return { type: "malformed", reason }
    }

    protected override headFault(): Malformed | undefined {
        const { first, bodyBytes } = this
        const type = first >> 4
        let why = 0
        let min = 2
        let max = 2
        if (bodyBytes < 0) why = Why.badLength
        else
            switch (type) {
                case PacketType.publish: {
                    // qos 2 or 3, or dup with qos 0
                    const flags = first & 14
                    return flags & 4 || flags === 8
                        ? this.publishHeadFault(flags)
                        : undefined
                }
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
            else if (this.oversize) why = Why.tooLarge
            else return undefined
        }
        return this.malformed(why)
    }

    private publishHeadFault(flags: number): Malformed {
        if ((flags & 6) === 6) return this.malformed(Why.qos3)
        return this.malformed(flags & 4 ? Why.qos2 : Why.dupQos0)
    }

    protected override decode(source: Buffer, at: number): Packet {
        const type = this.first >> 4
        if (type === PacketType.publish) return this.decodePublish(source, at)
        if (type === PacketType.pingresp) return { type: "pingresp" }

        // all others start with two bytes, mostly a packet identifier
        const packetId = (source[at] << 8) | source[at + 1]
        if (type === PacketType.connack) {
            const code = source[at + 1]
            if (packetId > 0x1ff) return this.malformed(Why.connackFlags)
            if (packetId > 0x100) return this.malformed(Why.presentAndRefused)
            return { type: "connack", sessionPresent: packetId > 0xff, code }
        }
        if (packetId === 0)
            return this.malformed(
                type === PacketType.puback ? Why.ackOfZero : Why.subackOfZero,
            )
        if (type === PacketType.puback) return { type: "puback", packetId }
        if (type === PacketType.unsuback) return { type: "unsuback", packetId }

        const codes: number[] = []
        for (let i = 2; i < this.bodyBytes; ++i) {
            const code = source[at + i]
            if (code > 2 && code !== 0x80) return this.malformed(Why.subackCode)
            codes.push(code)
        }
        return { type: "suback", packetId, codes }
    }

    private decodePublish(source: Buffer, at: number): Packet {
        const { first, bodyBytes } = this
        const qos = (first >> 1) & 3
        if (bodyBytes < 2) return this.malformed(Why.noTopic)
        const topicBytes = (source[at] << 8) | source[at + 1]
        const payloadAt = 2 + topicBytes + (qos << 1)
        if (topicBytes === 0) return this.malformed(Why.emptyTopic)
        if (2 + topicBytes > bodyBytes) return this.malformed(Why.topicTooLong)
        if (payloadAt > bodyBytes) return this.malformed(Why.noPacketId)

        const { oversize } = this
        let packetId = 0
        let textBytes = topicBytes
        if (oversize) {
            if (qos) packetId = this.skippedId
            if (2 + topicBytes > source.length)
                textBytes = wholeCharacters(source, 2, source.length - 2)
        } else if (qos)
            packetId =
                (source[at + payloadAt - 2] << 8) | source[at + payloadAt - 1]
        if (qos && packetId === 0) return this.malformed(Why.packetIdZero)
        const topic = readText(source, at + 2, textBytes)
        if (topic === undefined) return this.malformed(Why.badUtf8)
        if (topic.indexOf("\u0000") >= 0) return this.malformed(Why.nulInTopic)
        if (topic.indexOf("+") >= 0 || topic.indexOf("#") >= 0)
            return this.malformed(Why.wildcard)
        if (oversize) {
            const packetBytes = this.headBytes + bodyBytes
            return { type: "oversize", topic, packetBytes, qos, packetId }
        }
        return {
            type: "publish",
            topic,
            payload: copyOf(source, at + payloadAt, bodyBytes - payloadAt),
            qos,
            retain: (first & 1) === 1,
            dup: (first & 8) === 8,
            packetId,
        }
    }
}
