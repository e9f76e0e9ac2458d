// Byte streams as a broker might send them and as no broker would: correct packets in a row, then
// mutated. All from one random source, and fast: a million of them are wanted.
import { below } from "../../src/core/int"
import { Sfc32, type Random } from "../../src/core/random"

/** A stream and how it is cut into chunks. */
export interface Stream {
    bytes: Buffer
    /** Ends of the chunks, ascending; the last is bytes.length. */
    cuts: number[]
}

/** Chunks of a device are no larger. */
const MAX_CHUNK_BYTES = 1024

/** The stream of a number: the same one each time. */
export function streamOf(
    seed: number,
    index: number,
    topics: readonly string[],
): Stream {
    const random = new Sfc32(seed, index, 0x66757a7a, 1)
    // Seeds that differ little start alike.
    for (let i = 0; i < 12; ++i) random.next()
    const d = new Draw(random)
    const packets: Buffer[] = []
    for (let count = 1 + d.below(6); count > 0; --count)
        packets.push(packet(d, topics))
    let bytes = Buffer.concat(packets)
    // One in eight stays as it is.
    if (d.below(8))
        for (let count = 1 + d.below(4); count > 0; --count)
            bytes = mutated(d, bytes)
    return { bytes, cuts: cut(d, bytes.length) }
}

/** The chunks of a stream, each a copy, as a socket gives them. */
export function chunksOf({ bytes, cuts }: Stream): Buffer[] {
    return cuts.map((end, i) =>
        Buffer.from(bytes.subarray(i ? cuts[i - 1] : 0, end)),
    )
}

class Draw {
    constructor(private readonly random: Random) {}
    below(n: number): number {
        return below(n, this.random)
    }
    pick<T>(list: readonly T[]): T {
        return list[this.below(list.length)]
    }
}

const TEXTS = ["", "a", "5", "{}", "ü€😀", "\u0000", "x".repeat(130), "on"]
const EDGES = [0, 1, 2, 0x7f, 0x80, 0xc0, 0xe2, 0xff]
const EDGE_SIZES = [0, 1, 120, 127, 128, 1000, 1024, 1025, 2000, 9000]

function packet(d: Draw, topics: readonly string[]): Buffer {
    const id = d.below(4) ? 1 + d.below(6) : d.below(65536)
    const two = [id >> 8, id & 255]
    switch (d.below(9)) {
        case 0:
            return Buffer.from([0x20, 2, d.below(2), d.below(7)])
        case 1:
            return Buffer.from([0x90, 3, ...two, d.pick([0, 1, 2, 0x80])])
        case 2:
            return Buffer.from([0xb0, 2, ...two])
        case 3:
            return Buffer.from([0x40, 2, ...two])
        case 4:
            return Buffer.from([0xd0, 0])
        default:
            return publish(d, topics, two)
    }
}

function publish(d: Draw, topics: readonly string[], id: number[]): Buffer {
    const topic = Buffer.from(d.pick(topics))
    const qos = d.below(2)
    const payload = d.below(10)
        ? Buffer.from(d.pick(TEXTS))
        : Buffer.alloc(d.pick(EDGE_SIZES), 0x61)
    const body = 2 + topic.length + 2 * qos + payload.length
    return Buffer.concat([
        Buffer.from([0x30 | (qos << 1) | d.below(2), ...lengthBytes(body)]),
        Buffer.from([topic.length >> 8, topic.length & 255]),
        topic,
        Buffer.from(qos ? id : []),
        payload,
    ])
}

function lengthBytes(n: number): number[] {
    const bytes: number[] = []
    do {
        bytes.push((n & 127) | (n > 127 ? 128 : 0))
        n >>= 7
    } while (n > 0)
    return bytes
}

function mutated(d: Draw, bytes: Buffer): Buffer {
    const n = bytes.length
    if (n === 0) return Buffer.from([d.below(256)])
    // Where it hurts is mostly the head of the first packet.
    const at = d.below(3) ? d.below(n) : d.below(Math.min(n, 6))
    const copy = Buffer.from(bytes)
    switch (d.below(8)) {
        case 0:
            copy[at] ^= 1 << d.below(8)
            return copy
        case 1:
            copy[at] = d.pick(EDGES)
            return copy
        case 2:
            copy[at] = d.below(256)
            return copy
        case 3: // a piece is missing
            return Buffer.concat([
                bytes.subarray(0, at),
                bytes.subarray(at + 1 + d.below(8)),
            ])
        case 4: // a piece comes twice
            return Buffer.concat([
                bytes.subarray(0, at),
                bytes.subarray(Math.max(0, at - d.below(8))),
            ])
        case 5: {
            const more = Buffer.alloc(1 + d.below(4))
            for (let i = 0; i < more.length; ++i) more[i] = d.below(256)
            return Buffer.concat([
                bytes.subarray(0, at),
                more,
                bytes.subarray(at),
            ])
        }
        case 6: // cut short
            return bytes.subarray(0, at)
        default: // a length that is longer than what comes
            copy[at] |= 0x80
            return copy
    }
}

function cut(d: Draw, length: number): number[] {
    const cuts: number[] = []
    const most = d.pick([1, 3, 20, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES])
    for (let at = 0; at < length;) {
        at = Math.min(length, at + 1 + d.below(most))
        cuts.push(at)
    }
    return cuts
}
