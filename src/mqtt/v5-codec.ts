// MQTT 5 for a session: packets of encode.ts rewritten as they leave, and what the broker said about
// itself in CONNACK. Rule of the room: pure.
//
// The packets we send differ from those of MQTT 3.1.1 by a property section each, and by the level in
// CONNECT; PUBACK, PINGREQ and DISCONNECT with nothing to add are the same bytes.
import type { Endpoint } from "../core/connection"
import { cleanText } from "../core/line"
import {
    connackVerdict311,
    reasonVerdict5,
    retry,
    type Phase,
    type Verdict,
} from "../core/verdict"
import { mqtt311, type Codec, type Expires, type MakeCodec } from "./codec"
import { begin, connectPacket, type ConnectOptions } from "./encode"
import type { Connack, Packet } from "./packets"
import type { Framer } from "./framing"
import { Rivals } from "./rivals"
import type { ServerMoves } from "./servers"
import { Parser5 } from "./v5-parser"
import {
    encodeProperties,
    fieldBytes,
    numberOf,
    Owner,
    PropertyId,
    propertyOf,
    putVarint,
    varintBytes,
    type Property,
} from "./v5-properties"
import { VersionChoice, type Level } from "./version"

/** QoS 1 messages the broker may send us without our PUBACK: half of what waits for handlers. */
const RECEIVE_MAXIMUM = 8

/** Receive Maximum where the broker says nothing (3.2.2.3.3). */
const NO_MAXIMUM = 65535

const UNSUPPORTED_VERSION = 0x84
const RETAIN_UNSUPPORTED = 0x9a
const USE_ANOTHER = 0x9c
const SERVER_MOVED = 0x9d

/** How long the broker keeps a session that is meant to be kept. */
const SESSION_EXPIRY_S = 3600

/** What CONNECT says in MQTT 5, besides, and what may follow from what the broker says. */
export interface Mqtt5Options {
    /** How long the broker keeps the session after a connection, when it is kept at all: 0..2^32-1 s (2^32-1: for ever); default 3,600. */
    sessionExpirySeconds?: number
    /** QoS 1 messages the broker may have on their way to us, 1..65535; default 8. */
    receiveMaximum?: number
    /** More properties for CONNECT, such as user properties. */
    properties?: Property[]
    /** Properties of the will, such as its delay. */
    willProperties?: Property[]
    /** `messageExpiry`: a message's expiry counts from when it was published, not from when it leaves. */
    expiry?: Expires
    /** `serverMoves(...)`: where the broker may send the device. Default: nowhere. */
    servers?: (endpoint: Endpoint) => ServerMoves
}

/** MQTT 3.1.1 beside MQTT 5, and the rule for which is spoken. */
export interface Beside {
    choice: VersionChoice
    codec: Codec
    rivals: Rivals
}

/** Where the body of a packet of ours starts. */
function bodyAt(packet: Buffer): number {
    let at = 1
    while (packet[at] > 127) ++at
    return at + 1
}

/** The packet with a property section put in before its byte `at`. */
export function insertSection(
    packet: Buffer,
    at: number,
    section: Buffer | undefined,
): Buffer {
    const sectionBytes = section === undefined ? 0 : section.length
    const head = bodyAt(packet)
    const bodyBytes =
        packet.length - head + varintBytes(sectionBytes) + sectionBytes
    const target = begin(packet[0], bodyBytes)
    const shift = target.length - bodyBytes - head
    target.blitAt(head + shift, packet, head, at - head)
    let to = putVarint(target, at + shift, sectionBytes)
    if (section !== undefined) {
        target.blitAt(to, section, 0, sectionBytes)
        to += sectionBytes
    }
    target.blitAt(to, packet, at, packet.length - at)
    return target
}

/**
 * A packet of encode.ts as MQTT 5 writes it, with these properties (encoded, without their length) where it has a
 * section: PUBLISH, SUBSCRIBE, UNSUBSCRIBE. All others stay as they are.
 */
export function wire5(packet: Buffer, properties?: Buffer): Buffer {
    const type = packet[0] >> 4
    const at = bodyAt(packet)
    if (type === 8 || type === 10)
        return insertSection(packet, at + 2, properties)
    if (type !== 3) return packet
    const idBytes = packet[0] & 6 ? 2 : 0
    return insertSection(
        packet,
        at + fieldBytes(packet, at) + idBytes,
        properties,
    )
}

/** CONNECT of MQTT 5 (3.1). Throws as `connectPacket` and `encodeProperties`. */
export function connectPacket5(
    options: ConnectOptions,
    properties: Property[],
    willProperties: Property[],
): Buffer {
    let packet = connectPacket(options)
    packet[bodyAt(packet) + 6] = 5
    if (options.will) {
        const id = bodyAt(packet) + 10
        packet = insertSection(
            packet,
            id + fieldBytes(packet, id),
            encodeProperties(Owner.will, willProperties),
        )
    }
    return insertSection(
        packet,
        bodyAt(packet) + 10,
        encodeProperties(Owner.connect, properties),
    )
}

/** DISCONNECT of MQTT 5 with a reason code (3.14), for a connection that we end in anger. */
export function disconnectPacket5(code: number): Buffer {
    const packet = begin(0xe0, 1)
    packet[2] = code
    return packet
}

/** The codec of one session that speaks MQTT 5, or either version. */
export class Codec5 implements Codec {
    level: number = 5
    parser: Framer
    receiveMaximum = NO_MAXIMUM
    maximumQos: number | undefined = undefined
    maximumPacketBytes: number | undefined = undefined
    readonly expires: Expires | undefined
    /** The broker keeps retained messages. */
    private retains = true
    /** A broker refused a CONNECT for its retained will: none is sent any more, for the rest of the run. */
    private plainWill = false
    /** The CONNECT that was refused for it was the first. */
    private refusedWill = false
    /** The client id that the broker gave us, when we had none. */
    private assignedId = ""
    /** What the broker said last, in its words. */
    private said = ""
    /** Where it sent us, and whether for good. */
    private reference = ""
    private forGood = false
    /** It does not support the version; or it made no sense. */
    private unsupported = false
    /** When CONNACK came; -1 before. */
    private acceptedMs = -1
    private garbled = false
    private readonly parser5: Parser5
    private readonly servers: ServerMoves | undefined

    constructor(
        private readonly maxPacketBytes: number,
        private readonly endpoint: Endpoint,
        private readonly options: Mqtt5Options,
        private readonly beside?: Beside,
    ) {
        this.parser5 = new Parser5(maxPacketBytes)
        this.parser = this.parser5
        this.expires = options.expiry
        this.servers = options.servers ? options.servers(endpoint) : undefined
    }

    connect(options: ConnectOptions): Buffer {
        this.receiveMaximum = NO_MAXIMUM
        this.maximumQos = undefined
        this.maximumPacketBytes = undefined
        this.retains = true
        this.said = ""
        this.reference = ""
        this.refusedWill = false
        this.unsupported = false
        this.garbled = false
        this.acceptedMs = -1
        const beside = this.beside
        this.level = beside ? beside.choice.level : 5
        if (beside && this.level === 4) {
            this.parser = beside.codec.parser
            return beside.codec.connect(options)
        }
        this.parser5.startsClean = options.cleanSession
        this.parser = this.parser5
        return this.connect5(options)
    }

    connect5(options: ConnectOptions): Buffer {
        const { receiveMaximum, sessionExpirySeconds } = this.options
        const properties: Property[] = []
        if (!options.cleanSession)
            properties.push({
                id: PropertyId.sessionExpiry,
                value:
                    sessionExpirySeconds === undefined
                        ? SESSION_EXPIRY_S
                        : sessionExpirySeconds,
            })
        properties.push({
            id: PropertyId.receiveMaximum,
            value:
                receiveMaximum === undefined ? RECEIVE_MAXIMUM : receiveMaximum,
        })
        properties.push({
            id: PropertyId.maximumPacketSize,
            value: this.maxPacketBytes,
        })
        for (const p of this.options.properties || []) properties.push(p)
        const packet = connectPacket5(
            this.named(options),
            properties,
            this.options.willProperties || [],
        )
        // Will Retain, after the level [MQTT-3.2.2-13]
        if (this.plainWill) packet[bodyAt(packet) + 7] &= 0xdf
        return packet
    }

    /** With the client id the broker gave us, where there was none [MQTT-3.2.2-16]. */
    private named(options: ConnectOptions): ConnectOptions {
        if (options.clientId !== "" || this.assignedId === "") return options
        return {
            clientId: this.assignedId,
            keepAliveSeconds: options.keepAliveSeconds,
            cleanSession: options.cleanSession,
            username: options.username,
            password: options.password,
            will: options.will,
        }
    }

    wire(packet: Buffer, properties?: Buffer): Buffer {
        if (this.level === 4) return packet
        const made = wire5(packet, properties)
        // [MQTT-3.2.2-14]; wire5 has copied every PUBLISH.
        if (!this.retains && made[0] >> 4 === 3) made[0] &= 0xfe
        return made
    }

    refuses(packet: Buffer, properties?: Buffer): string | undefined {
        if (this.level === 4) return undefined
        const maximumPacketBytes = this.maximumPacketBytes
        // [MQTT-3.2.2-11], [MQTT-3.2.2-15]
        if (this.maximumQos === 0 && packet[0] & 6)
            return "the broker takes no QoS 1"
        if (
            maximumPacketBytes !== undefined &&
            wire5(packet, properties).length > maximumPacketBytes
        )
            return "larger than the broker takes"
        return undefined
    }

    heard(packet: Packet, nowMs: number): Buffer | undefined {
        if (packet.type === "connack") {
            this.acceptedMs = nowMs
            this.connack(packet)
        } else if (packet.type === "disconnect") {
            this.words(packet.code, packet.properties)
        } else if (packet.type === "puback" || packet.type === "suback") {
            this.said = packet.reason ? packet.reason : ""
        } else if (packet.type === "malformed") {
            this.garbled = true
            if (packet.code !== undefined && this.acceptedMs >= 0)
                return disconnectPacket5(packet.code)
        }
        return undefined
    }

    private connack(packet: Connack) {
        const code = packet.code
        const properties = packet.properties
        this.unsupported =
            code === UNSUPPORTED_VERSION ||
            (code === 1 && (this.level === 4 || packet.level === 4)) ||
            (code === 0 && packet.level === 4)
        if (this.unsupported) packet.code = UNSUPPORTED_VERSION
        else if (code === 0 && this.beside) this.beside.choice.accepted()
        if (code === RETAIN_UNSUPPORTED) {
            this.refusedWill = !this.plainWill
            this.plainWill = true
        }
        if (properties === undefined) return
        this.words(code, properties)
        this.receiveMaximum = numberOf(
            properties,
            PropertyId.receiveMaximum,
            NO_MAXIMUM,
        )
        const id = textOf(properties, PropertyId.assignedClientId)
        if (id !== "") this.assignedId = id
        const size = propertyOf(properties, PropertyId.maximumPacketSize)
        if (size !== undefined) this.maximumPacketBytes = size as number
        this.maximumQos = numberOf(properties, PropertyId.maximumQos, 2)
        this.retains = numberOf(properties, PropertyId.retainAvailable, 1) === 1
        const keepAlive = propertyOf(properties, PropertyId.serverKeepAlive)
        if (keepAlive !== undefined)
            packet.keepAliveSeconds = keepAlive as number
    }

    /** What the broker says besides a code. */
    private words(code: number, properties: Property[]) {
        this.said = textOf(properties, PropertyId.reasonString)
        this.forGood = code === SERVER_MOVED
        // Beside another code it sends nobody anywhere (4.11).
        if (this.forGood || code === USE_ANOTHER)
            this.reference = textOf(properties, PropertyId.serverReference)
    }

    verdict(code: number, inDisconnect: boolean): Verdict {
        if (code < 0x80 && !inDisconnect) return connackVerdict311(code)
        const verdict = reasonVerdict5(code, inDisconnect)
        // The next CONNECT is another one.
        if (this.refusedWill) verdict.lane = "retry"
        if (this.said !== "")
            verdict.reason = cleanText(`${verdict.reason}: ${this.said}`)
        return verdict
    }

    review(
        failure: Verdict,
        phase: Phase,
        flap: boolean,
        nowMs: number,
    ): Verdict {
        let verdict = failure
        const beside = this.beside
        const servers = this.servers
        if (beside) verdict = this.reviewVersion(failure, phase, flap, nowMs)
        if (servers === undefined) return verdict
        if (phase === "session" && !flap) servers.lasted()
        if (phase !== "dial" && this.reference !== "") {
            if (servers.follow(this.reference, this.forGood))
                verdict = retry(cleanText("sent to " + this.endpoint.host))
        } else if (phase !== "session" || flap) servers.failed()
        return verdict
    }

    private reviewVersion(
        verdict: Verdict,
        phase: Phase,
        flap: boolean,
        nowMs: number,
    ): Verdict {
        const { choice, rivals } = this.beside as Beside
        if (phase === "session") {
            if (!flap) choice.stable()
            return this.level === 4
                ? rivals.ended(verdict, flap, nowMs - this.acceptedMs)
                : verdict
        }
        if (phase !== "connack") return verdict
        if (this.unsupported) {
            const spoken = this.level === 5 ? "5" : "3.1.1"
            if (choice.refused()) return retry(`broker has no MQTT ${spoken}`)
        } else if (this.garbled || verdict.evidence === "reset") choice.closed()
        return verdict
    }
}

/** MQTT 5; a program that doesn't name it doesn't carry it. Impossible options throw RangeError at once. */
export function mqtt5(options?: Mqtt5Options): MakeCodec {
    return (maxPacketBytes, endpoint) =>
        tried(new Codec5(maxPacketBytes, endpoint, options || {}))
}

/** MQTT 5 with a broker that has it, else MQTT 3.1.1; `only` 4 or 5 keeps to one. See version.ts. */
export function mqttAuto(options?: Mqtt5Options, only?: Level): MakeCodec {
    return (maxPacketBytes, endpoint) =>
        tried(
            new Codec5(maxPacketBytes, endpoint, options || {}, {
                choice: new VersionChoice(only),
                codec: mqtt311(maxPacketBytes, endpoint),
                rivals: new Rivals(),
            }),
        )
}

/** Throws now, rather than at each attempt, for what can't be sent. */
function tried(codec: Codec5): Codec {
    codec.connect5({ clientId: "x", keepAliveSeconds: 0, cleanSession: false })
    return codec
}

/** A text property, or "". */
function textOf(properties: Property[], id: PropertyId): string {
    const value = propertyOf(properties, id)
    return value === undefined ? "" : (value as string)
}
