// Cuts a byte stream into MQTT packets: fixed header, remaining length, and what is too large
// (2.2). A parser of one MQTT version extends it with what packets mean.
// Rule of the room: pure. What it holds is at most one packet of `maxPacketBytes` plus one chunk.
import { copy } from "./bytes"
import type { Malformed, Packet } from "./parser"

/**
 * A packet that lies within one chunk is read in place; only one that does not is put together in
 * a Buffer of its own, of exactly its size.
 */
export abstract class Framer {
    // the VM looks fields up one by one in this order: busy ones first, and few of them
    /** The first byte of the packet: type and flags. */
    first!: number
    /** The remaining length, 0..268,435,455; -1 for one of more than four bytes (2.2.3), which ends the stream. */
    bodyBytes!: number
    private chunk: Buffer | undefined
    private at!: number
    /** Bytes of the fixed header that have come. */
    headBytes = 0
    private inBody: boolean | undefined
    /** Bytes of the body held or skipped so far. */
    private done!: number
    private held: Buffer | undefined
    /** Of an oversize PUBLISH with QoS 1. */
    protected skippedId!: number
    /** The packet exceeds `maxPacketBytes`. */
    protected oversize!: boolean
    private dead: boolean | undefined

    /**
     * @param maxPacketBytes largest packet to take whole, fixed header included: 16..65,535 bytes. A packet may
     * need this much twice, once held and once as payload.
     */
    constructor(readonly maxPacketBytes: number) {}

    /** What is wrong with the fixed header, known before the body has come. */
    protected abstract headFault(): Malformed | undefined

    /** Reads a packet's body, `source[at .. at+bodyBytes)`; of an oversize one only the first `maxPacketBytes` bytes are there. */
    protected abstract decode(source: Buffer, at: number): Packet

    /**
     * Takes the next bytes of the stream. The chunk must stay unchanged until `next` returns undefined;
     * pushing another one before that throws. After a malformed packet, bytes are dropped.
     */
    push(chunk: Buffer) {
        if (this.dead) return
        if (this.chunk !== undefined)
            throw new Error("push before next() had used up the last chunk")
        this.chunk = chunk
        this.at = 0
    }

    /** Forgets everything: for a new connection. */
    reset() {
        this.dead = false
        this.inBody = false
        this.headBytes = 0
        this.chunk = undefined
        this.held = undefined
    }

    /** No packet comes after a malformed one. */
    protected die() {
        this.reset()
        this.dead = true
    }

    /**
     * Bytes held of a packet whose rest hasn't come yet, without the chunk at hand.
     * @devsWhenUsed
     */
    heldBytes(): number {
        return this.held === undefined ? 0 : this.held.length
    }

    /** The next packet, or undefined when it needs more bytes or has met a malformed packet. Never loops over a body. */
    next(): Packet | undefined {
        const chunk = this.chunk
        if (chunk === undefined) return undefined
        const end = chunk.length
        let at = this.at
        if (!this.inBody) {
            let n = this.headBytes
            if (n === 0 && at < end) {
                this.first = chunk[at++]
                this.bodyBytes = 0
                n = 1
            }
            let b = 128
            while (b > 127 && at < end && n < 5) {
                b = chunk[at++]
                this.bodyBytes |= (b & 127) << ((n << 3) - n - 7)
                n++
            }
            this.headBytes = n
            if (b > 127) {
                if (n < 5) return this.usedUp()
                this.bodyBytes = -1
            }
            this.oversize = n + this.bodyBytes > this.maxPacketBytes
            const fault = this.headFault()
            if (fault !== undefined) return fault
            this.inBody = true
            this.done = 0
        }
        const rest = end - at
        const { bodyBytes, held } = this
        if (rest < bodyBytes || held !== undefined || this.oversize)
            return this.hold(chunk, at, rest)
        return this.take(chunk, at, at + bodyBytes)
    }

    /** Keeps what has come of a packet that is cut or oversize, and takes it once its last byte is there. */
    private hold(chunk: Buffer, at: number, rest: number): Packet | undefined {
        const { bodyBytes, done, maxPacketBytes } = this
        if (this.held === undefined)
            this.held = Buffer.alloc(
                bodyBytes < maxPacketBytes ? bodyBytes : maxPacketBytes,
            )
        const held = this.held
        const missing = bodyBytes - done
        const bytes = rest < missing ? rest : missing
        const room = held.length - done
        if (room > 0) copy(held, done, chunk, at, bytes < room ? bytes : room)
        // Where a PUBLISH has its packet identifier may be beyond what is held.
        const idAt = 2 + ((held[0] << 8) | held[1]) - done
        if (idAt >= 0 && idAt < bytes) this.skippedId = chunk[at + idAt] << 8
        if (idAt >= -1 && idAt + 1 < bytes)
            this.skippedId |= chunk[at + idAt + 1]
        this.done = done + bytes
        if (bytes < missing) return this.usedUp()
        this.held = undefined
        return this.take(held, 0, at + bytes)
    }

    private take(source: Buffer, at: number, nextAt: number): Packet {
        this.at = nextAt
        this.inBody = false
        const packet = this.decode(source, at)
        this.headBytes = 0
        return packet
    }

    private usedUp(): undefined {
        this.chunk = undefined
        return undefined
    }
}
