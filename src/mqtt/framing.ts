// Cuts a byte stream into MQTT packets: fixed header, remaining length, and what is too large
// (2.2). A parser of one MQTT version extends it with what packets mean.
// Rule of the room: pure. What it holds is at most one packet of `maxPacketBytes` plus one chunk.
//
// Functions beside a class of plain fields: to find a method the VM compares its name with that of every field.
import type { Malformed, Packet } from "./packets"

/** The first byte of a PUBLISH with QoS 0, which has no fault (3.3.1), retained or not. */
const MESSAGE = 0x30
const MESSAGE_MASK = 0xfe

/** What is wrong with the fixed header, known before the body has come. */
export type HeadFault = (framer: Framer) => Malformed | undefined

/** Reads a packet's body, `source[at .. at+bodyBytes)`; of an oversize one only the first `maxPacketBytes` bytes are there. */
export type Decode = (framer: Framer, source: Buffer, at: number) => Packet

/**
 * The state of one stream. A packet that lies within one chunk is read in place; only one that does not is put
 * together in a Buffer of its own, of exactly its size.
 */
export class Framer {
    /** What was pushed and has not all been looked at. */
    chunk: Buffer | undefined = undefined
    at = 0
    /** Bytes of the fixed header that have come; 1 when `dead`. */
    headBytes = 0
    /** The first byte of the packet: type and flags. */
    first = 0
    /** The remaining length, 0..268,435,455; -1 for one of more than four bytes (2.2.3), which ends the stream. */
    bodyBytes = 0
    /** The packet exceeds `maxPacketBytes`. */
    oversize = false
    inBody = false
    /** Bytes of the body held or skipped so far. */
    done = 0
    held: Buffer | undefined = undefined
    /** Of an oversize PUBLISH with QoS 1. */
    skippedId = 0
    dead = false

    /**
     * @param maxPacketBytes largest packet to take whole, fixed header included: 16..65,535 bytes. A packet may
     * need this much twice, once held and once as payload.
     */
    constructor(
        readonly maxPacketBytes: number,
        readonly headFault: HeadFault,
        readonly decode: Decode,
    ) {}
}

/**
 * Takes the next bytes of the stream. The chunk must stay unchanged until `nextPacket` returns undefined;
 * pushing another one before that throws. After a malformed packet, bytes are dropped.
 */
export function pushChunk(framer: Framer, chunk: Buffer) {
    if (framer.chunk !== undefined)
        throw new Error("push before the last chunk was used up")
    framer.chunk = chunk
    framer.at = 0
}

/** Forgets everything: for a new connection. */
export function resetFramer(framer: Framer) {
    framer.dead = false
    framer.inBody = false
    framer.oversize = false
    framer.headBytes = 0
    framer.chunk = undefined
    framer.held = undefined
}

/** No packet comes after a malformed one. */
export function endStream(framer: Framer) {
    resetFramer(framer)
    framer.dead = true
    // What comes is looked at, and dropped, by nextPiece: the short way need not ask.
    framer.headBytes = 1
}

/** Bytes held of a packet whose rest hasn't come yet, without the chunk at hand. */
export function heldBytes(framer: Framer): number {
    return framer.held === undefined ? 0 : framer.held.length
}

/** The next packet, or undefined when it needs more bytes or has met a malformed packet. Never loops over a body. */
export function nextPacket(framer: Framer): Packet | undefined {
    const chunk = framer.chunk
    const at = framer.at
    if (chunk === undefined) return undefined
    const end = chunk.length
    if (framer.headBytes > 0) return nextPiece(framer, chunk, at, end)
    // A small packet that lies within the chunk, as most do, goes without what the others need.
    const bodyBytes = chunk[at + 1]
    if (bodyBytes < 128) {
        const nextAt = at + 2 + bodyBytes
        if (nextAt <= end)
            if (bodyBytes + 2 <= framer.maxPacketBytes) {
                framer.first = chunk[at]
                framer.bodyBytes = bodyBytes
                if ((framer.first & MESSAGE_MASK) !== MESSAGE) {
                    framer.headBytes = 2
                    const fault = framer.headFault(framer)
                    if (fault !== undefined) return fault
                    framer.headBytes = 0
                }
                if (nextAt < end) framer.at = nextAt
                else framer.chunk = undefined
                return framer.decode(framer, chunk, at + 2)
            }
    }
    return nextPiece(framer, chunk, at, end)
}

/** Goes on with a packet that may be cut or oversize. */
function nextPiece(
    framer: Framer,
    chunk: Buffer,
    from: number,
    end: number,
): Packet | undefined {
    if (framer.dead) return usedUp(framer)
    let at = from
    if (!framer.inBody) {
        let n = framer.headBytes
        if (n === 0 && at < end) {
            framer.first = chunk[at++]
            framer.bodyBytes = 0
            n = 1
        }
        let b = 128
        while (b > 127 && at < end && n < 5) {
            b = chunk[at++]
            framer.bodyBytes |= (b & 127) << ((n << 3) - n - 7)
            n++
        }
        framer.headBytes = n
        if (b > 127) {
            if (n < 5) return usedUp(framer)
            framer.bodyBytes = -1
        }
        framer.oversize = n + framer.bodyBytes > framer.maxPacketBytes
        const fault = framer.headFault(framer)
        if (fault !== undefined) return fault
        framer.inBody = true
        framer.done = 0
    }
    const rest = end - at
    const bodyBytes = framer.bodyBytes
    const held = framer.held
    if (rest < bodyBytes || held !== undefined || framer.oversize)
        return hold(framer, chunk, at, rest)
    return take(framer, chunk, at, at + bodyBytes, end)
}

/** Keeps what has come of a packet that is cut or oversize, and takes it once its last byte is there. */
function hold(
    framer: Framer,
    chunk: Buffer,
    at: number,
    rest: number,
): Packet | undefined {
    const bodyBytes = framer.bodyBytes
    const done = framer.done
    const maxPacketBytes = framer.maxPacketBytes
    if (framer.held === undefined)
        framer.held = Buffer.alloc(
            bodyBytes < maxPacketBytes ? bodyBytes : maxPacketBytes,
        )
    const held = framer.held
    const missing = bodyBytes - done
    const bytes = rest < missing ? rest : missing
    const room = held.length - done
    if (room > 0) held.blitAt(done, chunk, at, bytes < room ? bytes : room)
    // Where a PUBLISH has its packet identifier may be beyond what is held.
    const idAt = 2 + ((held[0] << 8) | held[1]) - done
    if (idAt >= 0 && idAt < bytes) framer.skippedId = chunk[at + idAt] << 8
    if (idAt >= -1 && idAt + 1 < bytes) framer.skippedId |= chunk[at + idAt + 1]
    framer.done = done + bytes
    if (bytes < missing) return usedUp(framer)
    framer.held = undefined
    return take(framer, held, 0, at + bytes, chunk.length)
}

function take(
    framer: Framer,
    source: Buffer,
    at: number,
    nextAt: number,
    end: number,
): Packet {
    if (nextAt < end) framer.at = nextAt
    else framer.chunk = undefined
    framer.inBody = false
    const packet = framer.decode(framer, source, at)
    framer.oversize = false
    if (!framer.dead) framer.headBytes = 0
    return packet
}

function usedUp(framer: Framer): undefined {
    framer.chunk = undefined
    return undefined
}
