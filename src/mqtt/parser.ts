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
import { mustBe } from "../core/int"
import { copy, copyOf, readText, wholeCharacters } from "./bytes"
import { MAX_FILTERS } from "./encode"
import { Frame, Framer } from "./framing"
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
    /** As many whole characters of the topic as fit in `maxPacketBytes` bytes. */
    topic: string
    /** Length of the whole topic in bytes. */
    topicBytes: number
    /** Size of the whole packet in bytes, fixed header included. */
    packetBytes: number
    qos: number
    retain: boolean
    dup: boolean
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
    /** The violated statement, as in appendix B: "MQTT-x.x.x-x". */
    clause: string
    reason: string
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
    pubrec = 5,
    pubcomp = 7,
    suback = 9,
    unsuback = 11,
    pingresp = 13,
    reserved = 15,
}

const DEFAULT_MAX_PACKET_BYTES = 1024

/** A streaming parser for one connection. */
export class Parser {
    private framer: Framer
    private dead = false
    // of the oversize PUBLISH being skipped
    private topicBytes = 0
    private packetId = 0
    private topic: Buffer | undefined = undefined

    /**
     * @param maxPacketBytes largest packet to accept, fixed header included: 16..65,535 bytes,
     * default 1,024. A packet may need this much twice, once held and once as payload. Throws RangeError.
     */
    constructor(maxPacketBytes?: number) {
        const max =
            maxPacketBytes === undefined
                ? DEFAULT_MAX_PACKET_BYTES
                : maxPacketBytes
        mustBe("maxPacketBytes", max, 16, 65535)
        this.framer = new Framer(max)
    }

    /**
     * Takes the next bytes of the stream. The chunk must stay unchanged until `next` returns undefined;
     * pushing another one before that throws. After a malformed packet, bytes are dropped.
     */
    push(chunk: Buffer) {
        if (!this.dead) this.framer.push(chunk)
    }

    /** Forgets everything: for a new connection. */
    reset() {
        this.framer.reset()
        this.topic = undefined
        this.dead = false
    }

    /**
     * Bytes held of a packet whose rest hasn't come yet, without the chunk at hand.
     * @devsWhenUsed
     */
    heldBytes(): number {
        const topic = this.topic
        return (
            this.framer.heldBytes() + (topic === undefined ? 0 : topic.length)
        )
    }

    /** The next packet, or undefined when it needs more bytes or has met a malformed packet. */
    next(): Packet | undefined {
        if (this.dead) return undefined
        const framer = this.framer
        // at most three rounds a packet: head, piece, and none
        while (true) {
            const frame = framer.next()
            if (frame === Frame.none) return undefined
            if (frame === Frame.badLength)
                return this.violation("remaining length of more than 4 bytes")
            let packet: Packet | undefined
            if (frame === Frame.piece) packet = this.skim()
            else {
                packet = this.headFault()
                if (packet === undefined && frame === Frame.whole)
                    packet = this.decode()
            }
            if (packet !== undefined) return packet
        }
    }

    private malformed(clause: string, reason: string): Malformed {
        this.dead = true
        this.framer.reset()
        this.topic = undefined
        return { type: "malformed", clause: "MQTT-" + clause, reason }
    }

    /** For what the text of the spec forbids without a statement of its own. */
    private violation(reason: string): Malformed {
        return this.malformed("4.8.0-1", reason)
    }

    /** What is wrong with the packet's fixed header, known before its body has come. */
    private headFault(): Malformed | undefined {
        const framer = this.framer
        const first = framer.first
        const type = first >> 4
        const bodyBytes = framer.bodyBytes
        if (type === PacketType.publish) {
            const qos = (first >> 1) & 3
            if (qos === 1) return undefined
            if (qos === 3)
                return this.malformed("3.3.1-4", "PUBLISH with QoS 3")
            if (qos === 2)
                return this.malformed(
                    "3.8.4-6",
                    "PUBLISH with QoS 2, above any QoS asked for",
                )
            if (first === 0x38 || first === 0x39)
                return this.malformed("3.3.1-2", "PUBLISH with DUP and QoS 0")
            return undefined
        }
        let min = 2
        let max = 2
        switch (type) {
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
            case 0:
            case PacketType.reserved:
                return this.violation(`reserved packet type ${type}`)
            default:
                return this.violation(
                    type >= PacketType.pubrec && type <= PacketType.pubcomp
                        ? `packet type ${type} belongs to QoS 2, which nothing here uses`
                        : `packet type ${type} is for clients to send`,
                )
        }
        if (first & 15)
            return this.malformed(
                "2.2.2-2",
                `packet type ${type} with flags ${first & 15}, must be 0`,
            )
        if (bodyBytes < min || bodyBytes > max)
            return this.violation(
                `packet type ${type} with ${bodyBytes} bytes, must be ${min}..${max}`,
            )
        if (framer.oversize())
            return this.violation(
                `packet type ${type} above ${framer.maxPacketBytes} bytes`,
            )
        return undefined
    }

    private decode(): Packet {
        const framer = this.framer
        const type = framer.first >> 4
        const source = framer.source as Buffer
        const at = framer.at
        if (type === PacketType.publish) return this.decodePublish(source, at)
        if (type === PacketType.pingresp) return { type: "pingresp" }

        // all others start with two bytes, mostly a packet identifier
        const packetId = (source[at] << 8) | source[at + 1]
        if (type === PacketType.connack) {
            const code = source[at + 1]
            if (source[at] > 1)
                return this.violation("CONNACK with reserved flags set")
            if (source[at] && code)
                return this.malformed(
                    "3.2.2-4",
                    `CONNACK with session present and return code ${code}`,
                )
            return { type: "connack", sessionPresent: source[at] === 1, code }
        }
        if (packetId === 0)
            return this.malformed(
                type === PacketType.puback ? "2.3.1-6" : "2.3.1-7",
                `packet type ${type} with packet identifier 0`,
            )
        if (type === PacketType.puback) return { type: "puback", packetId }
        if (type === PacketType.unsuback) return { type: "unsuback", packetId }

        const codes: number[] = []
        for (let i = 2; i < framer.bodyBytes; ++i) {
            const code = source[at + i]
            if (code > 2 && code !== 0x80)
                return this.malformed(
                    "3.9.3-2",
                    `SUBACK with return code ${code}`,
                )
            codes.push(code)
        }
        return { type: "suback", packetId, codes }
    }

    private decodePublish(source: Buffer, at: number): Packet {
        const framer = this.framer
        const first = framer.first
        const bodyBytes = framer.bodyBytes
        const qos = (first >> 1) & 3
        const topicBytes =
            bodyBytes < 2 ? 0 : (source[at] << 8) | source[at + 1]
        const payloadAt = topicBytes + (qos ? 4 : 2)
        if (topicBytes === 0 || payloadAt > bodyBytes)
            return this.lengthFault(topicBytes) as Malformed
        const packetId = qos
            ? (source[at + payloadAt - 2] << 8) | source[at + payloadAt - 1]
            : 0
        const topic = readText(source, at + 2, topicBytes)
        const fault = this.publishFault(topic, packetId)
        if (fault !== undefined) return fault
        return {
            type: "publish",
            topic: topic as string,
            payload: copyOf(source, at + payloadAt, bodyBytes - payloadAt),
            qos,
            retain: (first & 1) === 1,
            dup: (first & 8) === 8,
            packetId,
        }
    }

    /** What is wrong with the lengths in a PUBLISH. */
    private lengthFault(topicBytes: number): Malformed | undefined {
        const framer = this.framer
        const bodyBytes = framer.bodyBytes
        if (bodyBytes < 2)
            return this.malformed("3.3.2-1", "PUBLISH without a topic")
        if (2 + topicBytes > bodyBytes)
            return this.malformed("3.3.2-1", "topic longer than its packet")
        if (topicBytes === 0) return this.malformed("4.7.3-1", "empty topic")
        if (framer.first & 6 && 4 + topicBytes > bodyBytes)
            return this.malformed(
                "2.3.1-1",
                "PUBLISH without a packet identifier",
            )
        return undefined
    }

    /** What is wrong with the topic or the packet identifier of a PUBLISH. */
    private publishFault(
        topic: string | undefined,
        packetId: number,
    ): Malformed | undefined {
        if (packetId === 0 && this.framer.first & 6)
            return this.malformed("2.3.1-1", "PUBLISH with packet identifier 0")
        if (topic === undefined)
            return this.malformed("1.5.3-1", "topic isn't well-formed UTF-8")
        if (topic.indexOf("\u0000") >= 0)
            return this.malformed("1.5.3-2", "topic holds U+0000")
        if (topic.indexOf("+") >= 0 || topic.indexOf("#") >= 0)
            return this.malformed("3.3.2-2", "topic holds a wildcard")
        return undefined
    }

    /** Reads topic and packet identifier out of an oversize PUBLISH while it passes by. */
    private skim(): Oversize | Malformed | undefined {
        const framer = this.framer
        const source = framer.source as Buffer
        const from = framer.offset
        const to = from + framer.pieceBytes
        /** source[base + i] is byte i of the body */
        const base = framer.at - from
        if (from === 0) {
            this.topicBytes = source[base] << 8
            this.packetId = 0
        }
        if (from <= 1 && to > 1) {
            this.topicBytes |= source[base + 1]
            const fault = this.lengthFault(this.topicBytes)
            if (fault !== undefined) return fault
            const max = framer.maxPacketBytes
            this.topic = Buffer.alloc(
                this.topicBytes < max ? this.topicBytes : max,
            )
        }
        const topic = this.topic
        if (topic === undefined) return undefined

        const topicBytes = this.topicBytes
        const textFrom = from < 2 ? 2 : from
        const textTo = to < 2 + topic.length ? to : 2 + topic.length
        if (textFrom < textTo)
            copy(
                topic,
                textFrom - 2,
                source,
                base + textFrom,
                textTo - textFrom,
            )
        if (framer.first & 6) {
            const idAt = 2 + topicBytes
            if (from <= idAt && idAt < to)
                this.packetId = source[base + idAt] << 8
            if (from <= idAt + 1 && idAt + 1 < to)
                this.packetId |= source[base + idAt + 1]
        }
        if (to < framer.bodyBytes) return undefined

        this.topic = undefined
        const textBytes =
            topic.length < topicBytes
                ? wholeCharacters(topic, 0, topic.length)
                : topicBytes
        const text = readText(topic, 0, textBytes)
        const fault = this.publishFault(text, this.packetId)
        if (fault !== undefined) return fault
        return {
            type: "oversize",
            topic: text as string,
            topicBytes,
            packetBytes: framer.packetBytes,
            qos: (framer.first >> 1) & 3,
            retain: (framer.first & 1) === 1,
            dup: (framer.first & 8) === 8,
            packetId: this.packetId,
        }
    }
}
