// MQTT 5 for a session: packets of encode.ts rewritten as they leave, and what the broker said about
// itself in CONNACK. Rule of the room: pure.
//
// The packets we send differ from those of MQTT 3.1.1 by a property section each, and by the level in
// CONNECT; PUBACK, PINGREQ and DISCONNECT with nothing to add are the same bytes.
import { cleanText } from "../core/line"
import {
    connackVerdict311,
    reasonVerdict5,
    type Verdict,
} from "../core/verdict"
import { copy } from "./bytes"
import type { Codec } from "./codec"
import { begin, connectPacket, type ConnectOptions } from "./encode"
import type { Packet } from "./parser"
import { Parser5 } from "./v5-parser"
import {
    encodeProperties,
    numberOf,
    Owner,
    PropertyId,
    propertyOf,
    putVarint,
    varintBytes,
    type Property,
} from "./v5-properties"

/** QoS 1 messages the broker may send us without our PUBACK: half of what waits for handlers. */
const RECEIVE_MAXIMUM = 8

/** How long the broker keeps a session that is meant to be kept. */
const SESSION_EXPIRY_S = 3600

/** What CONNECT says in MQTT 5, besides. */
export interface Mqtt5Options {
    /** How long the broker keeps the session after a connection, when it is kept at all: 0..2^32-1 s (2^32-1: for ever); default 3,600. */
    sessionExpirySeconds?: number
    /** QoS 1 messages the broker may have on their way to us, 1..65535; default 8. */
    receiveMaximum?: number
    /** More properties for CONNECT, such as user properties. */
    properties?: Property[]
    /** Properties of the will, such as its delay. */
    willProperties?: Property[]
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
    copy(target, head + shift, packet, head, at - head)
    let to = putVarint(target, at + shift, sectionBytes)
    if (section !== undefined) {
        copy(target, to, section, 0, sectionBytes)
        to += sectionBytes
    }
    copy(target, to, packet, at, packet.length - at)
    return target
}

/** A field's two length bytes and the field (1.5.4). */
function fieldBytes(packet: Buffer, at: number): number {
    return 2 + ((packet[at] << 8) | packet[at + 1])
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

/** The codec of one session that speaks MQTT 5. */
export class Codec5 implements Codec {
    level = 5
    readonly parser: Parser5
    receiveMaximum = 65535
    maximumQos: number | undefined = undefined
    maximumPacketBytes: number | undefined = undefined
    /** The broker keeps retained messages. */
    private retains = true
    /** The client id that the broker gave us, when we had none. */
    private assignedId = ""
    /** What the broker said last, in its words. */
    private said = ""

    constructor(
        private readonly maxPacketBytes: number,
        private readonly options: Mqtt5Options,
    ) {
        this.parser = new Parser5(maxPacketBytes)
    }

    connect(options: ConnectOptions): Buffer {
        this.receiveMaximum = 65535
        this.maximumQos = undefined
        this.maximumPacketBytes = undefined
        this.retains = true
        this.said = ""
        const { receiveMaximum, sessionExpirySeconds } = this.options
        const properties: Property[] = []
        const add = (id: PropertyId, value: number) => {
            properties.push({ id, value })
        }
        if (!options.cleanSession)
            add(
                PropertyId.sessionExpiry,
                sessionExpirySeconds === undefined
                    ? SESSION_EXPIRY_S
                    : sessionExpirySeconds,
            )
        add(
            PropertyId.receiveMaximum,
            receiveMaximum === undefined ? RECEIVE_MAXIMUM : receiveMaximum,
        )
        add(PropertyId.maximumPacketSize, this.maxPacketBytes)
        for (const p of this.options.properties || []) properties.push(p)
        return connectPacket5(
            this.named(options),
            properties,
            this.options.willProperties || [],
        )
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
        const made = wire5(packet, properties)
        // [MQTT-3.2.2-14]; wire5 has copied every PUBLISH.
        if (!this.retains && made[0] >> 4 === 3) made[0] &= 0xfe
        return made
    }

    heard(packet: Packet) {
        if (packet.type !== "connack" && packet.type !== "disconnect") return
        const { properties } = packet
        if (properties === undefined) return
        const text = propertyOf(properties, PropertyId.reasonString)
        this.said = text === undefined ? "" : (text as string)
        if (packet.type === "disconnect") return
        this.receiveMaximum = numberOf(
            properties,
            PropertyId.receiveMaximum,
            65535,
        )
        const id = propertyOf(properties, PropertyId.assignedClientId)
        if (id !== undefined) this.assignedId = id as string
        const size = propertyOf(properties, PropertyId.maximumPacketSize)
        if (size !== undefined) this.maximumPacketBytes = size as number
        this.maximumQos = numberOf(properties, PropertyId.maximumQos, 2)
        this.retains = numberOf(properties, PropertyId.retainAvailable, 1) === 1
        const keepAlive = propertyOf(properties, PropertyId.serverKeepAlive)
        if (keepAlive !== undefined)
            packet.keepAliveSeconds = keepAlive as number
    }

    verdict(code: number, inDisconnect: boolean): Verdict {
        if (!inDisconnect && code < 6) return connackVerdict311(code)
        const verdict = reasonVerdict5(code, inDisconnect)
        if (this.said !== "")
            verdict.reason = cleanText(`${verdict.reason}: ${this.said}`)
        return verdict
    }

    refusal(code: number): Buffer {
        return disconnectPacket5(code)
    }
}

/** MQTT 5; a program that doesn't name it doesn't carry it. Throws RangeError at CONNECT for impossible options. */
export function mqtt5(maxPacketBytes: number): Codec {
    return new Codec5(maxPacketBytes, {})
}

/** MQTT 5 with options. */
export function mqtt5With(
    options: Mqtt5Options,
): (maxPacketBytes: number) => Codec {
    return maxPacketBytes => new Codec5(maxPacketBytes, options)
}
