// What the flash-backed outbox stores: records of at most 200 bytes. Pure.
//
//   0      version, 1
//   1..4   number: each record written has a higher one than those before, across restarts
//   5..6   the write budget's debt, bytes
//   7..9   uptime at the write, seconds
//   10     settled: bit i says that slot i holds nothing that still has to arrive
//   11..14 checksum, over all the rest
//   15     bytes of properties                          } only where
//   16..18 how long the message had waited, seconds     } a message
//   19..   properties (MQTT 5, encoded), then PUBLISH   } is in it
//
// Of all records the one with the highest number has the word on what is settled. Anything that is not exactly a record
// reads as none: the runtime's store has no checksum of its own.
import { copyOf, readText } from "./bytes"
import { checkTopicName } from "./topic"

/** Slots for messages. */
export const SLOTS = 8

/** The most bytes of a record: larger values abort the runtime. */
export const RECORD_MAX_BYTES = 200

/** Before the message. */
const MESSAGE_AT = 19

/** The most bytes of PUBLISH and properties in a record. */
export const MESSAGE_MAX_BYTES = RECORD_MAX_BYTES - MESSAGE_AT

const VERSION = 1
const SUM_AT = 11
const SUM_END = 15

/** Numbers above are not believed; nobody gets there. */
const MAX_NUMBER = 0x7ffffff0

/** Longer waits are not told apart, and the clock ends before. */
const MAX_U24 = 0xffffff

/** What every record says. */
export interface FlashRecord {
    number: number
    /** See core/write-budget.ts. */
    debtBytes: number
    /** Uptime at the write, whole seconds. */
    upS: number
    /** Bit i: slot i holds nothing that still has to arrive. */
    settled: number
    /** A message; without one the record only says what is settled. */
    message?: FlashMessage
}

/** What of a message is kept. */
export interface Kept {
    /** A PUBLISH with QoS 1 as `publishPacket` makes it. */
    packet: Buffer
    properties?: Buffer
}

export interface FlashMessage extends Kept {
    /** How long it had waited at the write, whole seconds. */
    waitedS: number
}

/** Why there is no record. */
export type SlotProblem = "missing" | "unreadable" | "foreign version"

/** The bytes of a record; of a message at most MESSAGE_MAX_BYTES. */
export function formatSlot(record: FlashRecord): Buffer {
    const message = record.message
    const out = Buffer.alloc(message ? slotBytes(message) : SUM_END)
    out[0] = VERSION
    put(out, 1, 4, record.number)
    put(out, 5, 2, record.debtBytes)
    put(out, 7, 3, record.upS)
    out[10] = record.settled
    if (message) {
        const packet = message.packet
        const properties = message.properties
        const waitedS = message.waitedS
        const ownBytes = properties ? properties.length : 0
        out[SUM_END] = ownBytes
        put(out, SUM_END + 1, 3, waitedS < MAX_U24 ? waitedS : MAX_U24)
        if (properties) out.blitAt(MESSAGE_AT, properties, 0, ownBytes)
        out.blitAt(MESSAGE_AT + ownBytes, packet, 0, packet.length)
    }
    put(out, SUM_AT, 4, checksum(out))
    return out
}

/** Bytes of PUBLISH and properties. */
export function messageBytes(message: Kept): number {
    const packet = message.packet
    const properties = message.properties
    return packet.length + (properties ? properties.length : 0)
}

/** Bytes of the record of a message. */
export function slotBytes(message: Kept): number {
    return MESSAGE_AT + messageBytes(message)
}

/** The record in some bytes, or why there is none; any bytes may be asked about. */
export function readSlot(bytes: Buffer | undefined): FlashRecord | SlotProblem {
    if (bytes === undefined) return "missing"
    const length = bytes.length
    if (length < SUM_END || length > RECORD_MAX_BYTES) return "unreadable"
    if (take(bytes, SUM_AT, 4) !== checksum(bytes)) return "unreadable"
    if (bytes[0] !== VERSION) return "foreign version"
    const number = take(bytes, 1, 4)
    if (number < 1 || number > MAX_NUMBER) return "unreadable"
    const message = length > SUM_END ? messageOf(bytes) : undefined
    if (length > SUM_END && message === undefined) return "unreadable"
    return {
        number,
        debtBytes: take(bytes, 5, 2),
        upS: take(bytes, 7, 3),
        settled: bytes[10],
        message,
    }
}

/** The message in a record, or undefined: nothing but a whole PUBLISH with QoS 1 is ever sent. */
function messageOf(bytes: Buffer): FlashMessage | undefined {
    const at = MESSAGE_AT + bytes[SUM_END]
    const packetBytes = bytes.length - at
    if (packetBytes < 7) return undefined
    const packet = copyOf(bytes, at, packetBytes)
    // Type 3 and QoS 1, retained or not; DUP is set at each resend.
    if ((packet[0] & 0xf6) !== 0x32) return undefined
    const long = packet[1] > 127
    const body = long ? 3 : 2
    const rest = long ? (packet[1] & 127) | (packet[2] << 7) : packet[1]
    const topicBytes = (packet[body] << 8) | packet[body + 1]
    if (rest !== packetBytes - body || topicBytes > rest - 4) return undefined
    const topic = readText(packet, body + 2, topicBytes)
    if (!topic || checkTopicName(topic) !== undefined) return undefined
    return {
        packet,
        properties: bytes[SUM_END]
            ? copyOf(bytes, MESSAGE_AT, bytes[SUM_END])
            : undefined,
        waitedS: take(bytes, SUM_END + 1, 3),
    }
}

/** FNV-1a over everything but the checksum itself: against accidents, not forgery. */
function checksum(bytes: Buffer): number {
    const length = bytes.length
    return mixed(bytes, SUM_END, length, mixed(bytes, 0, SUM_AT, length))
}

function mixed(bytes: Buffer, from: number, to: number, start: number) {
    let h = start
    for (let i = from; i < to; ++i) h = Math.imul(h ^ bytes[i], 16777619)
    return h
}

/** Writes the low bytes of a number, the high ones first. */
function put(target: Buffer, at: number, bytes: number, value: number) {
    let rest = value
    for (let i = at + bytes - 1; i >= at; --i) {
        target[i] = rest & 255
        rest = rest >> 8
    }
}

/** Reads so many bytes as a number; four of them as int32. */
function take(source: Buffer, at: number, bytes: number): number {
    let value = 0
    for (let i = 0; i < bytes; ++i) value = (value << 8) | source[at + i]
    return value
}
