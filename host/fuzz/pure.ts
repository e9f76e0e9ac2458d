// Streams through the parser and the session under Node: nothing may throw, loop or hold more than
// its limit, and what comes out may not depend on how a stream was cut or on what came before it.
import "../device-methods"
import {
    heldBytes,
    nextPacket,
    pushChunk,
    resetFramer,
} from "../../src/mqtt/framing"
import { mqtt311 } from "../../src/mqtt/codec"
import { Parser } from "../../src/mqtt/parser"
import type { Packet } from "../../src/mqtt/packets"
import { hear, Session, type Subscription } from "../../src/mqtt/session"
import { chunksOf, streamOf, type Stream } from "./streams"

export const TOPICS = ["a", "a/b", "dev/cmd/ping", "ü/€", "+", "x".repeat(300)]

/** A packet limit below what streams hold, and the default. */
const LIMITS = [64, 1024]

/** A stream that did harm. */
export interface Find {
    what: string
    /** The chunks, as hex. */
    chunks: string[]
}

/** All that is reused from one stream to the next, as on a device. */
export class PureFuzz {
    private readonly parsers: Parser[]
    private readonly session = makeSession()
    /** Packets seen so far, by type. */
    readonly packets: Record<string, number> = {}

    /** @param make makes a parser with this limit; a test of the fuzz gives broken ones */
    constructor(private readonly make = (limit: number) => new Parser(limit)) {
        this.parsers = LIMITS.map(make)
    }

    /** Runs one stream; what it did wrong, or undefined. */
    run(stream: Stream): Find | undefined {
        try {
            LIMITS.forEach((limit, i) => this.parse(stream, limit, i))
            this.session.run(chunksOf(stream))
        } catch (e) {
            return findOf(stream, (e as Error).message)
        }
        return undefined
    }

    private parse(stream: Stream, limit: number, i: number) {
        const reused = this.parsers[i]
        resetFramer(reused)
        const inPieces = read(reused, chunksOf(stream), limit)
        const whole = read(
            this.make(limit),
            stream.bytes.length ? [stream.bytes] : [],
            limit,
        )
        if (inPieces.join() !== whole.join())
            throw new Error(
                `cut differently, it reads differently: ${inPieces} / ${whole}`,
            )
        if (i > 0) return
        for (const packet of whole) {
            const type = packet.slice(0, packet.indexOf(" "))
            this.packets[type] = (this.packets[type] ?? 0) + 1
        }
    }
}

function findOf(stream: Stream, what: string): Find {
    return { what, chunks: chunksOf(stream).map(c => c.toString("hex")) }
}

/** The packets of a stream in short; throws when the parser does what it must not. */
function read(parser: Parser, chunks: Buffer[], limit: number): string[] {
    const seen: string[] = []
    let ended = false
    for (const chunk of chunks) {
        pushChunk(parser, chunk)
        let budget = chunk.length + 2
        for (;;) {
            const packet = nextPacket(parser)
            if (packet === undefined) break
            if (--budget < 0) throw new Error("more packets than bytes")
            if (ended) throw new Error("a packet after a malformed one")
            ended = packet.type === "malformed"
            check(packet, limit)
            seen.push(short(packet))
        }
        if (heldBytes(parser) > 2 * limit)
            throw new Error(`holds ${heldBytes(parser)} bytes`)
    }
    return seen
}

function check(packet: Packet, limit: number) {
    if (packet.type !== "publish" && packet.type !== "oversize") return
    const { topic, qos, packetId } = packet
    if (qos !== 0 && qos !== 1) throw new Error(`QoS ${qos}`)
    if ((qos === 0) !== !packetId)
        throw new Error(`QoS ${qos} with identifier ${packetId}`)
    if (!topic || /[+#\0]/.test(topic)) throw new Error(`topic ${topic}`)
    if (packet.type === "oversize") return
    if (packet.payload.length > limit) throw new Error("larger than the limit")
}

function short(packet: Packet): string {
    switch (packet.type) {
        case "publish": {
            const { topic, payload, qos, retain, dup, packetId } = packet
            return `publish ${topic} ${payload.toString("hex")} ${qos} ${retain} ${dup} ${packetId}`
        }
        default:
            return `${packet.type} ${JSON.stringify(packet)}`
    }
}

/** A session with a few subscriptions, and a port that counts. */
function makeSession() {
    let sent = 0
    let delivered = 0
    let over = false
    const end = () => {
        over = true
    }
    const session = new Session(
        {
            connect: {
                clientId: "fuzz",
                keepAliveSeconds: 60,
                cleanSession: true,
            },
            birth: { topic: "s", payload: "online", retain: true },
            pingMs: 10_000,
            codec: mqtt311(1024),
        },
        {
            send() {
                sent++
                return 0
            },
            connack: code => void (code && end()),
            deliver() {
                delivered++
            },
            dropped() {},
            violation: end,
            dismissed: end,
            silent: end,
        },
        // Something waits already, so that each message comes by `deliver`.
        [0],
    )
    const FILTERS = ["a/+", "#", "dev/cmd/+", "none"]
    for (const filter of FILTERS) {
        const handlers = [() => {}]
        const s: Subscription = {
            topicFilter: filter,
            qos: 1,
            state: "new",
            handlers,
            packetId: 0,
            dueMs: 0,
        }
        session.subscribe(s, 0)
    }
    let nowMs = 0
    const run = (chunks: Buffer[]) => {
        sent = delivered = 0
        over = false
        session.open(nowMs)
        // The rest of a stream is most interesting after CONNACK; now and then it comes without.
        const greeting = chunks.length & 3 ? [Buffer.from([0x20, 2, 0, 0])] : []
        const all = [...greeting, ...chunks]
        let packets = 0
        for (const chunk of all) {
            if (over) break
            let more = hear(session, nowMs, chunk)
            packets++
            while (!over && more) {
                more = hear(session, nowMs)
                packets++
            }
            nowMs += 3
            session.tick(nowMs)
        }
        // CONNECT, birth, the filters again for each answer, PUBACKs.
        if (sent > 3 + 2 * FILTERS.length + 2 * packets)
            throw new Error(`${sent} packets out for ${packets} in`)
        if (delivered > FILTERS.length * packets)
            throw new Error(`${delivered} deliveries of ${packets} packets`)
        session.close()
    }
    return { run }
}

/** Runs the streams `from` .. `from + count - 1`; the first find ends it. */
export function fuzzPure(
    seed: number,
    from: number,
    count: number,
    progress: (done: number) => void = () => {},
    make?: (limit: number) => Parser,
): { done: number; packets: Record<string, number>; find?: Find } {
    const fuzz = new PureFuzz(make)
    for (let i = 0; i < count; ++i) {
        const find = fuzz.run(streamOf(seed, from + i, TOPICS))
        if (find) return { done: i, packets: fuzz.packets, find }
        if (i % 10_000 === 0) progress(i)
    }
    return { done: count, packets: fuzz.packets }
}
