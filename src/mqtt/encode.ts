// MQTT 3.1.1 packets out: each function returns one whole packet, ready for one socket write.
// Rule of the room: pure. Sizes come first, then one allocation, then native copies.
//
// What does not fit throws a RangeError that names the option, its value and its range. Topic names
// and filters are not checked here beyond their length: the caller asks topic.ts once, when the
// application hands them in, not at each (re)send.
import { mustBe } from "../core/int"
import { copy, readText, sizeOf, textFault, utf8Bytes } from "./bytes"

/** The most filters one SUBSCRIBE or UNSUBSCRIBE carries here; a longer SUBACK can't be an answer. */
export const MAX_FILTERS = 256

/** The last message the broker publishes for us when the connection breaks (3.1.2.5). */
export interface Will {
    topic: string
    payload: string | Buffer
    qos: 0 | 1 | 2
    retain: boolean
}

/** What CONNECT says (3.1). */
export interface ConnectOptions {
    /** 0 to 65,535 bytes; empty only with `cleanSession` [MQTT-3.1.3-7]. */
    clientId: string
    /** 0 (off) to 65,535 s. */
    keepAliveSeconds: number
    cleanSession: boolean
    /** At most 65,535 bytes. */
    username?: string
    /** At most 65,535 bytes; only with a username [MQTT-3.1.2-22]. */
    password?: string | Buffer
    will?: Will
}

/** One row of a SUBSCRIBE. The parser here speaks QoS 0 and 1, so nothing asks for 2. */
export interface Subscription {
    filter: string
    qos: 0 | 1
}

/** Allocates a packet with its fixed header; the body starts at `length - bodyBytes` (2.2.3). */
export function begin(first: number, bodyBytes: number): Buffer {
    if (bodyBytes < 128) {
        const small = Buffer.alloc(2 + bodyBytes)
        small[0] = first
        small[1] = bodyBytes
        return small
    }
    mustBe("remaining length", bodyBytes, 0, 268435455)
    let rest = bodyBytes >> 7
    let head = 2
    while (rest > 0) {
        head++
        rest = rest >> 7
    }
    const packet = Buffer.alloc(head + bodyBytes)
    packet[0] = first
    let at = 1
    rest = bodyBytes
    while (rest > 127) {
        packet[at++] = (rest & 127) | 128
        rest = rest >> 7
    }
    packet[at] = rest
    return packet
}

function putU16(packet: Buffer, at: number, value: number): number {
    packet[at] = value >> 8
    packet[at + 1] = value & 255
    return at + 2
}

/** Writes a two-byte length and then `field`; returns where the next one goes (1.5.3). */
function putField(packet: Buffer, at: number, field: string | Buffer): number {
    const bytes = sizeOf(field)
    copy(packet, at + 2, field, 0, bytes)
    return putU16(packet, at, bytes) + bytes
}

/** Bytes `putField` takes. */
function fieldBytes(what: string, field: string | Buffer, min: number): number {
    const bytes = sizeOf(field)
    mustBe(`${what} length in bytes`, bytes, min, 65535)
    return bytes + 2
}

function textBytes(what: string, text: string, min: number): number {
    const bytes = fieldBytes(what, text, min)
    const fault = textFault(text)
    if (fault !== undefined) throw new RangeError(`${what} ${fault}`)
    return bytes
}

/**
 * CONNECT (3.1). Throws RangeError for what the options' comments forbid, for an ill-formed
 * string or one with U+0000, and for a will with QoS above 2 or an empty topic.
 */
export function connectPacket(options: ConnectOptions): Buffer {
    const will = options.will
    const username = options.username
    const password = options.password
    mustBe("keepAliveSeconds", options.keepAliveSeconds, 0, 65535)
    let bodyBytes =
        10 +
        textBytes("clientId", options.clientId, options.cleanSession ? 0 : 1)
    let flags = options.cleanSession ? 0x02 : 0
    if (will) {
        mustBe("will.qos", will.qos, 0, 2)
        flags |= 0x04 | (will.qos << 3) | (will.retain ? 0x20 : 0)
        bodyBytes +=
            textBytes("will.topic", will.topic, 1) +
            fieldBytes("will.payload", will.payload, 0)
    }
    if (username !== undefined) {
        flags |= 0x80
        bodyBytes += textBytes("username", username, 0)
    }
    if (password !== undefined) {
        if (username === undefined)
            throw new RangeError("password needs a username [MQTT-3.1.2-22]")
        flags |= 0x40
        bodyBytes += fieldBytes("password", password, 0)
    }

    const packet = begin(0x10, bodyBytes)
    let at = putField(packet, packet.length - bodyBytes, "MQTT")
    packet[at++] = 4 // protocol level 3.1.1
    packet[at++] = flags
    at = putU16(packet, at, options.keepAliveSeconds)
    at = putField(packet, at, options.clientId)
    if (will) {
        at = putField(packet, at, will.topic)
        at = putField(packet, at, will.payload)
    }
    if (username !== undefined) at = putField(packet, at, username)
    if (password !== undefined) putField(packet, at, password)
    return packet
}

/**
 * PUBLISH (3.3), head and payload in one Buffer. `packetId` is 1..65535 with QoS 1 and ignored with
 * QoS 0. `dup` needs QoS 1 [MQTT-3.3.1-2]. Throws RangeError when `topic` is empty or above 65,535
 * bytes, or the packet above 268,435,455 bytes.
 */
export function publishPacket(
    topic: string,
    payload: string | Buffer,
    qos: 0 | 1,
    retain: boolean,
    packetId: number,
    dup: boolean,
): Buffer {
    // the busiest function here: a call costs the VM an allocation, so most are avoided
    const topicBytes = utf8Bytes(topic)
    const payloadBytes = sizeOf(payload)
    if (topicBytes < 1 || topicBytes > 65535)
        mustBe("topic length in bytes", topicBytes, 1, 65535)
    let bodyBytes = 2 + topicBytes + payloadBytes
    let first = retain ? 0x31 : 0x30
    if (qos) {
        if (qos !== 1) mustBe("qos", qos, 0, 1)
        mustBe("packetId", packetId, 1, 65535)
        bodyBytes += 2
        first |= dup ? 0x0a : 0x02
    } else if (dup)
        throw new RangeError("dup is true: must be false with qos 0")

    const packet = begin(first, bodyBytes)
    let at = packet.length - bodyBytes
    packet[at] = topicBytes >> 8
    packet[at + 1] = topicBytes & 255
    copy(packet, at + 2, topic, 0, topicBytes)
    at += 2 + topicBytes
    if (qos) {
        packet[at] = packetId >> 8
        packet[at + 1] = packetId & 255
        at += 2
    }
    copy(packet, at, payload, 0, payloadBytes)
    return packet
}

/**
 * The properties of a request, for `Session.send`: response topic and correlation data (MQTT 5, 3.3.2.3.5 and 3.3.2.3.6).
 * Throws RangeError above 65,535 bytes each.
 */
export function requestProperties(responseTopic: string, key: string): Buffer {
    const topicBytes = textBytes("response topic", responseTopic, 1)
    const properties = Buffer.alloc(2 + topicBytes + textBytes("key", key, 1))
    properties[0] = 8
    const at = putField(properties, 1, responseTopic)
    properties[at] = 9
    putField(properties, at + 1, key)
    return properties
}

/** Sets DUP in a QoS 1 packet made by `publishPacket`, for a resend without encoding anew [MQTT-3.3.1-1]. */
export function markDup(packet: Buffer) {
    packet[0] |= 0x08
}

/** Clears DUP: for one that is sent as new. */
export function clearDup(packet: Buffer) {
    packet[0] &= ~0x08
}

/** Where the body of a packet begins: after its first byte and its remaining length (2.2.3). */
function bodyAt(packet: Buffer): number {
    let at = 1
    while (packet[at] >= 128) at++
    return at + 1
}

/** The topic of a packet made by `publishPacket`. */
export function topicOf(packet: Buffer): string {
    const at = bodyAt(packet)
    return readText(
        packet,
        at + 2,
        (packet[at] << 8) | packet[at + 1],
    ) as string
}

/** Gives a QoS 1 packet made by `publishPacket` another identifier, 1..65535, else RangeError. */
export function setPacketId(packet: Buffer, packetId: number) {
    mustBe("packetId", packetId, 1, 65535)
    const at = bodyAt(packet)
    const topicBytes = (packet[at] << 8) | packet[at + 1]
    putU16(packet, at + 2 + topicBytes, packetId)
}

function filtersPacket(
    first: number,
    packetId: number,
    filters: (Subscription | string)[],
): Buffer {
    mustBe("packetId", packetId, 1, 65535)
    mustBe("number of filters", filters.length, 1, MAX_FILTERS)
    let bodyBytes = 2
    for (const row of filters) {
        if (typeof row === "string") bodyBytes += fieldBytes("filter", row, 1)
        else {
            mustBe("qos", row.qos, 0, 1)
            bodyBytes += fieldBytes("filter", row.filter, 1) + 1
        }
    }
    const packet = begin(first, bodyBytes)
    let at = putU16(packet, packet.length - bodyBytes, packetId)
    for (const row of filters) {
        if (typeof row === "string") at = putField(packet, at, row)
        else {
            at = putField(packet, at, row.filter)
            packet[at++] = row.qos
        }
    }
    return packet
}

/** SUBSCRIBE (3.8): `packetId` 1..65535, 1 to MAX_FILTERS filters of 1 to 65,535 bytes each, else RangeError. */
export function subscribePacket(
    packetId: number,
    filters: Subscription[],
): Buffer {
    return filtersPacket(0x82, packetId, filters)
}

/** UNSUBSCRIBE (3.10): `packetId` 1..65535, 1 to MAX_FILTERS filters of 1 to 65,535 bytes each, else RangeError. */
export function unsubscribePacket(packetId: number, filters: string[]): Buffer {
    return filtersPacket(0xa2, packetId, filters)
}

/** PUBACK (3.4) for the QoS 1 message `packetId`, 1..65535, else RangeError. */
export function pubackPacket(packetId: number): Buffer {
    mustBe("packetId", packetId, 1, 65535)
    const packet = begin(0x40, 2)
    putU16(packet, 2, packetId)
    return packet
}

/** PINGREQ (3.12). */
export function pingreqPacket(): Buffer {
    return begin(0xc0, 0)
}

/** DISCONNECT (3.14). The broker then drops the will [MQTT-3.14.4-3]. */
export function disconnectPacket(): Buffer {
    return begin(0xe0, 0)
}
