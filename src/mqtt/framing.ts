// Cuts a byte stream into MQTT packets: fixed header, remaining length, and skipping what is too
// large (2.2). Knows nothing of packet types, so that every MQTT version can use it.
// Rule of the room: pure. What it holds is at most one packet of `maxPacketBytes` plus one chunk.
import { copy } from "./bytes"

/** What `Framer.next` found. */
export const enum Frame {
    /** The chunk is used up: `push` another one. */
    none,
    /** `first` and `bodyBytes` are known and `oversize()` is decided; the body isn't at hand whole. Once a packet. */
    head,
    /** A packet: its body is `source[at .. at+bodyBytes)`. Not preceded by `head` when it lay in one chunk. */
    whole,
    /** The body bytes `offset .. offset+pieceBytes` of an oversize packet, at `source[at]`. */
    piece,
    /** A remaining length of more than four bytes (2.2.3): the stream can't be read any further. */
    badLength,
}

const enum Stage {
    first,
    length,
    body,
    hold,
    skip,
}

/**
 * A packet that lies within one chunk is read in place; only one that does not is put together in
 * a Buffer of its own, of exactly its size.
 */
export class Framer {
    // the VM looks fields up one by one in this order: busy ones first, and few of them
    /** The first byte of the packet: type and flags. */
    first = 0
    /** The remaining length, 0..268,435,455. */
    bodyBytes = 0
    private stage = Stage.first
    private chunk: Buffer | undefined = undefined
    private chunkAt = 0
    source: Buffer | undefined = undefined
    at = 0
    /** Size of the whole packet, fixed header included. */
    packetBytes = 0
    /** Bytes of the body held or skipped so far. */
    private done = 0
    private held: Buffer | undefined = undefined
    offset = 0
    pieceBytes = 0

    /** @param maxPacketBytes largest packet to put together, fixed header included */
    constructor(readonly maxPacketBytes: number) {}

    /** Whether the packet exceeds `maxPacketBytes` and comes in pieces. */
    oversize(): boolean {
        return this.packetBytes > this.maxPacketBytes
    }

    /** Takes the next bytes of the stream. Throws when `next` has not yet returned `Frame.none`. */
    push(chunk: Buffer) {
        if (this.chunk !== undefined)
            throw new Error("push before next() had used up the last chunk")
        this.chunk = chunk
        this.chunkAt = 0
    }

    /** Forgets everything: for a new stream. */
    reset() {
        this.stage = Stage.first
        this.chunk = undefined
        this.source = undefined
        this.held = undefined
    }

    /** Bytes held of a packet whose rest hasn't come yet, without the chunk at hand. */
    heldBytes(): number {
        return this.held === undefined ? 0 : this.held.length
    }

    /** The next thing in the chunk. Never loops over a body. */
    next(): Frame {
        const chunk = this.chunk
        if (chunk === undefined) return Frame.none
        const end = chunk.length
        let at = this.chunkAt

        let stage = this.stage

        if (stage === Stage.first && at < end) {
            if (at + 1 < end) {
                // the usual case: a whole packet of less than 130 bytes
                const bodyBytes = chunk[at + 1]
                if (
                    bodyBytes < 128 &&
                    bodyBytes <= end - at - 2 &&
                    bodyBytes <= this.maxPacketBytes - 2
                ) {
                    this.first = chunk[at]
                    this.bodyBytes = bodyBytes
                    this.packetBytes = bodyBytes + 2
                    this.source = chunk
                    this.at = at + 2
                    this.chunkAt = at + 2 + bodyBytes
                    return Frame.whole
                }
            }
            this.first = chunk[at++]
            this.bodyBytes = 0
            this.packetBytes = 1
            stage = Stage.length
        }
        while (stage === Stage.length && at < end) {
            const b = chunk[at++]
            const n = this.packetBytes++
            this.bodyBytes |= (b & 127) << ((n << 3) - n - 7)
            if (b < 128) stage = Stage.body
            else if (n === 4) return Frame.badLength
        }
        this.stage = stage
        const bodyBytes = this.bodyBytes
        const rest = end - at
        this.chunkAt = at

        if (stage === Stage.body) {
            this.packetBytes += bodyBytes
            this.done = 0
            if (this.oversize()) {
                this.stage = Stage.skip
                return Frame.head
            }
            if (rest < bodyBytes) {
                this.stage = Stage.hold
                return Frame.head
            }
            this.stage = Stage.first
            this.source = chunk
            this.at = at
            this.chunkAt = at + bodyBytes
            return Frame.whole
        }

        if (rest > 0) {
            // hold or skip: only these two leave anything in the chunk
            const missing = bodyBytes - this.done
            const bytes = rest < missing ? rest : missing
            const offset = this.done
            this.done = offset + bytes
            this.chunkAt = at + bytes
            if (bytes === missing) this.stage = Stage.first
            if (stage === Stage.skip) {
                this.source = chunk
                this.at = at
                this.offset = offset
                this.pieceBytes = bytes
                return Frame.piece
            }
            let held = this.held
            if (held === undefined) held = this.held = Buffer.alloc(bodyBytes)
            copy(held, offset, chunk, at, bytes)
            if (bytes === missing) {
                this.held = undefined
                this.source = held
                this.at = 0
                return Frame.whole
            }
        }
        this.chunk = undefined
        this.source = undefined
        return Frame.none
    }
}
