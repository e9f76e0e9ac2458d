// MQTT 5 packets in; the contract is that of parser.ts, and so are the packets it gives out, with
// properties and reasons where MQTT 5 has them. Rule of the room: pure.
//
// - What exceeds the limit was promised never to come: CONNECT says Maximum Packet Size. So nothing is
//   skipped here; it ends the connection [MQTT-3.1.2-27].
// - CONNECT gives no Authentication Method and no Topic Alias Maximum, so AUTH and aliases can't come.
// - A CONNACK of two bytes is the answer of a broker that speaks only MQTT 3.1.1: `level` says so.
// - Reason codes below 0x80 are checked, because each means something else to do; those above all
//   mean that it failed, and a later edition may add to them.
import { MAX_FILTERS } from "./encode"
import { endStream, Framer } from "./framing"
import type { Malformed, Packet } from "./packets"
import {
    FieldReader,
    MALFORMED,
    Owner,
    PROTOCOL_ERROR,
    PropertyId,
    propertyOf,
    type Property,
} from "./v5-properties"

const enum PacketType {
    connack = 2,
    publish = 3,
    puback = 4,
    pubrec = 5,
    pubcomp = 7,
    suback = 9,
    unsuback = 11,
    pingresp = 13,
    disconnect = 14,
    auth = 15,
}

const TOPIC_ALIAS_INVALID = 0x94
const PACKET_TOO_LARGE = 0x95

/** A streaming parser for one connection. */
export class Parser5 extends Framer {
    private reader = new FieldReader()
    /** CONNECT asked for a new session: there can be no old one [MQTT-3.2.2-2]. */
    startsClean = false

    /** @param maxPacketBytes as for `Framer` */
    constructor(maxPacketBytes: number) {
        super(maxPacketBytes, headFault, decode)
    }

    read(source: Buffer, at: number): Packet {
        const reader = this.reader
        reader.begin(source, at, this.bodyBytes)
        const packet = this.packet()
        const wrong = reader.fault
        if (wrong !== undefined)
            return this.malformed(wrong.clause, wrong.reason, wrong.code)
        if (reader.left() > 0)
            return this.malformed("4.13.1-1", "bytes left over in a packet")
        return packet
    }

    private malformed(
        clause: string,
        reason: string,
        code: number = MALFORMED,
    ): Malformed {
        endStream(this)
        return { type: "malformed", reason: `MQTT-${clause} ${reason}`, code }
    }

    private violation(reason: string): Malformed {
        return this.malformed("4.13.1-1", reason, PROTOCOL_ERROR)
    }

    /** What is wrong with the packet's fixed header, known before its body has come. */
    faultOfHead(): Malformed | undefined {
        const first = this.first
        const bodyBytes = this.bodyBytes
        const maxPacketBytes = this.maxPacketBytes
        const type = first >> 4
        const lengthBytes = this.headBytes - 1
        if (bodyBytes < 0)
            return this.malformed("1.5.5-1", "remaining length over 4 bytes")
        if (lengthBytes > 1 && bodyBytes >> (lengthBytes * 7 - 7) === 0)
            return this.malformed("1.5.5-1", "integer longer than needed")
        if (type === PacketType.publish) {
            const fault = this.publishHeadFault(first)
            if (fault !== undefined) return fault
        } else {
            const fault = this.typeFault(type, bodyBytes)
            if (fault !== undefined) return fault
            if (first & 15)
                return this.malformed(
                    "2.1.3-1",
                    `packet type ${type} with flags ${first & 15}`,
                )
        }
        if (this.oversize)
            return this.malformed(
                "3.1.2-27",
                `packet of ${this.headBytes + bodyBytes}, over ${maxPacketBytes} bytes`,
                PACKET_TOO_LARGE,
            )
        return undefined
    }

    private publishHeadFault(first: number): Malformed | undefined {
        const qos = (first >> 1) & 3
        if (qos === 3) return this.malformed("3.3.1-4", "PUBLISH with QoS 3")
        if (qos === 2)
            return this.malformed(
                "3.8.4-8",
                "PUBLISH with QoS 2, above any QoS asked for",
                PROTOCOL_ERROR,
            )
        if (qos === 0 && first & 8)
            return this.malformed("3.3.1-2", "PUBLISH with DUP and QoS 0")
        return undefined
    }

    /** A type that can't come, or with too few bytes. */
    private typeFault(type: number, bytes: number): Malformed | undefined {
        let min = 2
        switch (type) {
            case PacketType.connack:
            case PacketType.puback:
                break
            case PacketType.suback:
            case PacketType.unsuback:
                min = 4
                break
            case PacketType.pingresp:
                if (bytes > 0) return this.violation("PINGRESP with a body")
                min = 0
                break
            case PacketType.disconnect:
                min = 0
                break
            case PacketType.auth:
                return this.malformed(
                    "4.12.0-6",
                    "AUTH, without a method asked for",
                    PROTOCOL_ERROR,
                )
            case 0:
                return this.malformed("4.13.1-1", "reserved packet type 0")
            default:
                return this.violation(
                    type >= PacketType.pubrec && type <= PacketType.pubcomp
                        ? `packet type ${type} belongs to QoS 2, which nothing here uses`
                        : `packet type ${type} is for clients to send`,
                )
        }
        if (bytes < min)
            return this.malformed(
                "4.13.1-1",
                `packet type ${type} with ${bytes} bytes`,
            )
        return undefined
    }

    private packet(): Packet {
        switch (this.first >> 4) {
            case PacketType.publish:
                return this.publish()
            case PacketType.pingresp:
                return { type: "pingresp" }
            case PacketType.connack:
                return this.connack()
            case PacketType.puback:
                return this.puback()
            case PacketType.suback:
                return this.suback()
            case PacketType.unsuback:
                return this.unsuback()
            default:
                return this.disconnect()
        }
    }

    private fail(clause: string, reason: string, code: number = MALFORMED) {
        this.reader.fail({ clause, reason, code })
    }

    private publish(): Packet {
        const reader = this.reader
        const first = this.first
        const qos = (first >> 1) & 3
        if (reader.left() < 2) this.fail("3.3.2-1", "PUBLISH without a topic")
        const topic = reader.text()
        const packetId = qos ? this.packetId("2.2.1-4") : 0
        const properties = reader.properties(Owner.publish)
        this.checkTopic(topic, properties)
        const packet: Packet = {
            type: "publish",
            topic,
            payload: reader.bytes(reader.left()),
            qos,
        }
        if (first & 1) packet.retain = true
        if (first & 8) packet.dup = true
        if (qos) packet.packetId = packetId
        if (properties !== undefined) packet.properties = properties
        return packet
    }

    private checkTopic(topic: string, properties: Property[] | undefined) {
        if (topic.indexOf("+") >= 0 || topic.indexOf("#") >= 0)
            this.fail("3.3.2-2", "topic holds a wildcard")
        if (propertyOf(properties, PropertyId.topicAlias) !== undefined)
            this.fail("3.1.2-30", "topic alias", TOPIC_ALIAS_INVALID)
        if (topic === "") this.fail("4.7.3-1", "empty topic", PROTOCOL_ERROR)
        const answer = propertyOf(properties, PropertyId.responseTopic)
        if (
            typeof answer === "string" &&
            (answer.indexOf("+") >= 0 || answer.indexOf("#") >= 0)
        )
            this.fail(
                "3.3.2-14",
                "response topic holds a wildcard",
                PROTOCOL_ERROR,
            )
    }

    private packetId(clause: string): number {
        const id = this.reader.u16()
        if (id === 0) this.fail(clause, "packet identifier 0", PROTOCOL_ERROR)
        return id
    }

    /** A reason code; below 0x80 only 0 and `also`. */
    private reasonCode(clause: string, also: number): number {
        const code = this.reader.u8()
        if (code !== 0 && code !== also && code < 0x80)
            this.fail(clause, `reason code ${code}`, PROTOCOL_ERROR)
        return code
    }

    private connack(): Packet {
        const reader = this.reader
        const flags = reader.u8()
        const code = reader.u8()
        if (flags > 1) this.fail("3.2.2-1", "CONNACK with reserved flags set")
        if (flags && code)
            this.fail(
                "3.2.2-6",
                `CONNACK with session present and reason code ${code}`,
                PROTOCOL_ERROR,
            )
        const sessionPresent = flags === 1
        if (sessionPresent && this.startsClean)
            this.fail("3.2.2-2", "session present with Clean Start")
        if (this.bodyBytes === 2)
            return { type: "connack", sessionPresent, code, level: 4 }
        if (code !== 0 && code < 0x80)
            this.fail("3.2.2-8", `reason code ${code}`, PROTOCOL_ERROR)
        const properties = reader.properties(Owner.connack)
        if (
            propertyOf(properties, PropertyId.authMethod) !== undefined ||
            propertyOf(properties, PropertyId.authData) !== undefined
        )
            this.fail("4.12.0-6", "authentication", PROTOCOL_ERROR)
        return {
            type: "connack",
            sessionPresent,
            code,
            level: 5,
            properties: properties === undefined ? [] : properties,
        }
    }

    /** The reason string in a property section, "" without one. */
    private reason(owner: Owner): string {
        const properties = this.reader.properties(owner)
        const text = propertyOf(properties, PropertyId.reasonString)
        return text === undefined ? "" : (text as string)
    }

    private puback(): Packet {
        const reader = this.reader
        const packetId = this.packetId("2.2.1-5")
        const code = reader.left() ? this.reasonCode("3.4.2-1", 0x10) : 0
        const reason = reader.left() ? this.reason(Owner.puback) : ""
        return { type: "puback", packetId, code, reason }
    }

    private suback(): Packet {
        const packetId = this.packetId("2.2.1-6")
        const reason = this.reason(Owner.suback)
        const codes = this.codes("3.9.3-2", 2)
        return { type: "suback", packetId, codes, reason }
    }

    private unsuback(): Packet {
        const packetId = this.packetId("2.2.1-6")
        const reason = this.reason(Owner.unsuback)
        const codes = this.codes("3.11.3-2", 0)
        return { type: "unsuback", packetId, codes, reason }
    }

    /** One code per filter: 0..`most` (0x11 too for UNSUBACK), or 0x80 and above. */
    private codes(clause: string, most: number): number[] {
        const reader = this.reader
        const codes: number[] = []
        if (reader.left() === 0) this.fail("4.13.1-1", "no reason code")
        if (reader.left() > MAX_FILTERS)
            this.fail("3.9.3-1", "more reason codes than filters")
        while (reader.left() > 0) {
            const code = reader.u8()
            if (code < 0x80 && code > most && (most > 0 || code !== 0x11))
                this.fail(clause, `reason code ${code}`, PROTOCOL_ERROR)
            codes.push(code)
        }
        return codes
    }

    private disconnect(): Packet {
        const reader = this.reader
        const code = reader.left() ? this.reasonCode("3.14.2-1", 0) : 0
        let properties: Property[] | undefined
        if (reader.left()) properties = reader.properties(Owner.disconnect)
        if (propertyOf(properties, PropertyId.sessionExpiry) !== undefined)
            this.fail("3.14.2-2", "session expiry", PROTOCOL_ERROR)
        return {
            type: "disconnect",
            code,
            properties: properties === undefined ? [] : properties,
        }
    }
}

function headFault(framer: Framer): Malformed | undefined {
    return (framer as Parser5).faultOfHead()
}

function decode(framer: Framer, source: Buffer, at: number): Packet {
    return (framer as Parser5).read(source, at)
}
