// Reads what a device does on the wire, byte for byte, and holds it against MQTT's order of things:
// one socket, CONNECT first, DISCONNECT last, each subscription once. It tells the policy's watch what
// it saw, so that lines and deeds are compared.
import { WireReader, type Packet } from "../lab/mqtt-wire"
import { SLACK_MS, type Report } from "./invariants"
import { REOPEN_MS } from "./policy-bounds"
import type { OutboundWatch } from "./outbound-watch"
import type { PolicyWatch } from "./policy-watch"

/** SUBSCRIBEs that a session sends at a time. */
const WINDOW = 4

/** SUBACK's code for no; in MQTT 5 the first of many. */
const REFUSED = 0x80

/** Longer than the CONNACKs of the lab's brokers. */
const HEAD_BYTES = 32

/** A filter that was refused is asked for again within this. */
const ASK_AGAIN_MS = 65_000

/** One connection of the device. */
interface Wire {
    id: number
    open: boolean
    /** TCP came about. */
    opened: boolean
    said: number
    left: boolean
    /** The first bytes from the broker, until it is known whether they are CONNACK 0. */
    head: number[]
    /** When CONNACK 0 was whole; -1 before. */
    upMs: number
    asked: Map<string, number>
    /** Filters in SUBSCRIBEs without their answer, by identifier. */
    pending: Map<number, string>
    /** Filters the broker refused on this connection: they may wait for the next. */
    refused: Set<string>
    reader: WireReader
    /** Of what the broker sends; it may send anything. */
    answers: WireReader
}

export class WireWatch {
    private wire: Wire | undefined
    private endedMs = -Infinity
    private nowMs = 0
    /** When each filter was refused last: the program may take its time to ask again. */
    private readonly refusedMs = new Map<string, number>()

    /**
     * @param filters what the program subscribes to, always
     * @param pingMs how long a SUBSCRIBE may stay unanswered
     */
    constructor(
        private readonly filters: readonly string[],
        private readonly pingMs: number,
        private readonly policy: PolicyWatch,
        private readonly report: Report,
        private readonly outbound?: OutboundWatch,
    ) {}

    /** One thing that the network saw: `#7 dial tcp broker:1883`, `#7 >` with bytes. */
    event(atMs: number, what: string, bytes: Uint8Array | undefined) {
        const space = what.indexOf(" ")
        const id = Number(what.slice(1, space))
        const op = what.slice(space + 1)
        if (op.startsWith("dial")) return this.dial(atMs, id)
        const wire = this.wire
        if (!wire || wire.id !== id) return
        // A dial that was given up: no connection there to be closed.
        const over = op === "close" || op.includes("ETIMEDOUT")
        if (!wire.opened && over) wire.open = false
        else if (op === "open") this.opened(wire, atMs)
        else if (op === ">") this.sent(wire, bytes!)
        // What comes after a close that the program was told of, right or wrong, reaches nobody.
        else if (op === "<") {
            if (wire.open) this.received(wire, atMs, bytes!)
        } else if (!op.startsWith("write returned")) this.end(wire, atMs)
    }

    private dial(atMs: number, id: number) {
        if (this.wire?.open && this.wire.opened)
            this.report("one socket", "a dial while a connection is open")
        else if (atMs - this.endedMs < REOPEN_MS)
            this.report(
                "one socket",
                `a dial ${atMs - this.endedMs} ms after a close`,
            )
        const wire: Wire = {
            id,
            open: true,
            opened: false,
            said: 0,
            left: false,
            head: [],
            upMs: -1,
            asked: new Map(),
            pending: new Map(),
            refused: new Set(),
            answers: new WireReader(
                packet => this.answered(wire, packet),
                () => {},
            ),
            reader: new WireReader(
                packet => this.packet(wire, packet),
                reason => this.report("standard", `malformed: ${reason}`),
            ),
        }
        this.wire = wire
        this.outbound?.dialled()
        this.policy.dial(atMs)
    }

    private opened(wire: Wire, atMs: number) {
        wire.opened = true
        this.policy.opened(atMs)
    }

    private end(wire: Wire, atMs: number) {
        if (!wire.open) return
        wire.open = false
        this.endedMs = atMs
        this.complete(wire, atMs)
        this.policy.ended(atMs)
    }

    private sent(wire: Wire, bytes: Uint8Array) {
        if (wire.left) this.report("DISCONNECT last", `${bytes.length} B more`)
        wire.reader.push(bytes)
    }

    private packet(wire: Wire, packet: Packet) {
        const { cmd } = packet
        if (wire.said++ === 0 ? cmd !== "connect" : cmd === "connect")
            this.report("CONNECT first", `${cmd} as number ${wire.said}`)
        else if (cmd !== "connect" && wire.upMs < 0)
            this.report("CONNECT first", `${cmd} before CONNACK`)
        if (wire.left) this.report("DISCONNECT last", cmd)
        if (cmd === "disconnect") wire.left = true
        wire.answers.speak(wire.reader.version)
        this.outbound?.sent(packet)
        if (packet.cmd !== "subscribe") return
        for (const { topic } of packet.subscriptions) {
            const times = (wire.asked.get(topic) ?? 0) + 1
            wire.asked.set(topic, times)
            wire.pending.set(packet.messageId!, topic)
            if (times > 1 && this.filters.includes(topic))
                this.report("subscriptions", `${topic} made ${times} times`)
        }
    }

    private answered(wire: Wire, packet: Packet) {
        this.outbound?.received(packet)
        if (packet.cmd !== "suback") return
        const filter = wire.pending.get(packet.messageId!)
        if (filter === undefined || Number(packet.granted[0]) < REFUSED) return
        this.refusedMs.set(filter, this.nowMs)
        wire.asked.delete(filter)
        wire.refused.add(filter)
    }

    private received(wire: Wire, atMs: number, bytes: Uint8Array) {
        this.policy.received(atMs)
        this.nowMs = atMs
        wire.answers.push(bytes)
        if (wire.upMs >= 0 || !this.isAccepted(wire, bytes)) return
        wire.upMs = atMs
        this.policy.connack()
    }

    /** Whether the stream has begun with a whole CONNACK 0, in the version of CONNECT. */
    private isAccepted(wire: Wire, bytes: Uint8Array): boolean {
        const { head } = wire
        const is5 = wire.reader.version === 5
        for (const byte of bytes) if (head.length < HEAD_BYTES) head.push(byte)
        if (head[0] !== 0x20 || head[3] !== 0) return false
        return is5
            ? head[1] >= 3 && head.length >= 2 + head[1]
            : head[1] === 2 && head.length >= 4
    }

    /** Each subscription has been made by now, if there was time. */
    private complete(wire: Wire, atMs: number) {
        if (wire.upMs < 0) return
        const rounds = Math.ceil(this.filters.length / WINDOW)
        const neededMs = rounds * (this.pingMs + SLACK_MS) + 5000
        if (atMs - wire.upMs < neededMs) return
        const missing = this.filters.filter(
            f =>
                !wire.asked.has(f) &&
                !wire.refused.has(f) &&
                atMs - (this.refusedMs.get(f) ?? -Infinity) > ASK_AGAIN_MS,
        )
        if (missing.length && this.policy.phase === "connected")
            this.report(
                "subscriptions",
                `${missing.join()} not made in ${atMs - wire.upMs} ms`,
            )
    }

    /** What should have happened by now? */
    look(nowMs: number) {
        if (this.wire?.open) this.complete(this.wire, nowMs)
    }
}
