// MQTT 3.1.1 packets out: each function returns one whole packet, ready for one socket write.
// Rule of the room: pure. Sizes come first, then one allocation, then native copies.
//
// What is given is not checked here, neither its type nor its length: checks.ts does that once, when the
// application hands it in, and not at each (re)send.
import { readText, sizeOf } from "./bytes"
import { checkField } from "./checks"

/** The most filters that a SUBSCRIBE may carry; a longer SUBACK can't be an answer. */
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

/**
 * Allocates a packet with its fixed header; the body starts at `length - bodyBytes` (2.2.3). PINGREQ (3.12; `first` is 0xc0)
 * and DISCONNECT (3.14; 0xe0), after which the broker drops the will [MQTT-3.14.4-3], are packets without a body.
 */
export function begin(first: number, bodyBytes: number): Buffer {
    let headBytes = 2
    for (let rest = bodyBytes >> 7; rest > 0; rest = rest >> 7) headBytes++
    const packet = Buffer.alloc(headBytes + bodyBytes)
    packet[0] = first
    let at = 1
    let rest = bodyBytes
    for (; rest > 127; ++at) {
        packet[at] = (rest & 127) | 128
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
    packet.blitAt(at + 2, field, 0, bytes)
    return putU16(packet, at, bytes) + bytes
}

/** CONNECT (3.1); what can't be sent, `checkConnect` of checks.ts says. */
export function connectPacket(options: ConnectOptions): Buffer {
    const will = options.will
    const username = options.username
    const password = options.password
    let flags = 0
    if (options.cleanSession) flags = 0x02
    const fields: (string | Buffer)[] = [options.clientId]
    if (will) {
        flags |= 0x04 | (will.qos << 3)
        if (will.retain) flags |= 0x20
        fields.push(will.topic)
        fields.push(will.payload)
    }
    if (username !== undefined) {
        flags |= 0x80
        fields.push(username)
    }
    if (password !== undefined) {
        flags |= 0x40
        fields.push(password)
    }
    let bodyBytes = 10
    for (const field of fields) bodyBytes += 2 + sizeOf(field)
    const packet = begin(0x10, bodyBytes)
    let at = putField(packet, packet.length - bodyBytes, "MQTT")
    packet[at] = 4 // protocol level 3.1.1
    packet[at + 1] = flags
    at = putU16(packet, at + 2, options.keepAliveSeconds)
    for (const field of fields) at = putField(packet, at, field)
    return packet
}

/**
 * PUBLISH (3.3), head and payload in one Buffer. `topic` is 1 to 65,535 bytes; `packetId` is 1..65535 with QoS 1 and
 * ignored with QoS 0; `dup` needs QoS 1 [MQTT-3.3.1-2].
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
    const topicBytes = topic.byteLength
    const payloadBytes = sizeOf(payload)
    let bodyBytes = 2 + topicBytes + payloadBytes
    let first = 0x30
    if (retain) first = 0x31
    if (qos) {
        bodyBytes += 2
        first |= 0x02
        if (dup) first |= 0x08
    }
    const packet = begin(first, bodyBytes)
    let at = packet.length - bodyBytes
    packet[at] = topicBytes >> 8
    packet[at + 1] = topicBytes & 255
    packet.blitAt(at + 2, topic, 0, topicBytes)
    at += 2 + topicBytes
    if (qos) at = putU16(packet, at, packetId)
    packet.blitAt(at, payload, 0, payloadBytes)
    return packet
}

/**
 * The properties of a request, for `sendPacket`: response topic and correlation data (MQTT 5, 3.3.2.3.5 and 3.3.2.3.6).
 * Throws RangeError above 65,535 bytes each.
 */
export function requestProperties(responseTopic: string, key: string): Buffer {
    checkField("response topic", responseTopic, 1)
    checkField("key", key, 1)
    const properties = Buffer.alloc(6 + sizeOf(responseTopic) + sizeOf(key))
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

/** Gives a QoS 1 packet made by `publishPacket` another identifier, 1..65535. */
export function setPacketId(packet: Buffer, packetId: number) {
    const at = bodyAt(packet)
    const topicBytes = (packet[at] << 8) | packet[at + 1]
    putU16(packet, at + 2 + topicBytes, packetId)
}

/**
 * SUBSCRIBE (3.8; `first` is 0x82) or UNSUBSCRIBE (3.10; 0xa2, `qos` has no say) with one filter of 1 to 65,535 bytes;
 * `packetId` is 1..65535.
 */
export function filterPacket(
    first: number,
    packetId: number,
    filter: string,
    qos: number,
): Buffer {
    let bodyBytes = 4 + filter.byteLength
    if (first === 0x82) ++bodyBytes
    const packet = begin(first, bodyBytes)
    const at = putU16(packet, packet.length - bodyBytes, packetId)
    putField(packet, at, filter)
    if (first === 0x82) packet[packet.length - 1] = qos
    return packet
}

/** PUBACK (3.4) for the QoS 1 message `packetId`, 1..65535. */
export function pubackPacket(packetId: number): Buffer {
    const packet = begin(0x40, 2)
    putU16(packet, 2, packetId)
    return packet
}
