// Follows every QoS 1 message that a program publishes, from its own words and on the wire: `tx <number>` when it was
// accepted, `fx <number> <outcome>` when it was told what became of it, as test/bytecode/soak-app.ts prints them; the payload
// is `<key> <number>`. What must hold: in order on each topic, again only as the same message, and nothing told
// "acknowledged" that no broker has acknowledged. What reaches the strict broker goes through a receiver's Dedup.
import { Dedup } from "../../src/core/dedup"
import type { Inbound } from "../lab/broker"
import type { Packet } from "../lab/mqtt-wire"
import type { Report } from "./invariants"

/** A message, as far as it has come. */
interface Outbound {
    topic: string
    key: string
    acknowledged: boolean
}

/** More than a device has in flight and in its outbox. */
const REMEMBER = 64

export class OutboundWatch {
    /** By number, of this program start, on the wire so far. */
    private readonly seen = new Map<number, Outbound>()
    /** Accepted and not settled. */
    private readonly open = new Set<number>()
    /** The newest number on each topic. */
    private readonly newest = new Map<string, number>()
    /** What waits for its PUBACK on this connection: number by identifier. */
    private flying = new Map<number, number>()
    private readonly dedup = new Dedup(REMEMBER)
    /** Keys that passed the receiver's Dedup, the latest. */
    private readonly passed = new Set<string>()
    accepted = 0
    acknowledged = 0
    repeats = 0
    dropped = 0

    constructor(private readonly report: Report) {}

    /** The program starts anew: what it had in RAM is gone. */
    restarted() {
        this.seen.clear()
        this.open.clear()
        this.newest.clear()
        this.flying.clear()
    }

    /** A new connection. */
    dialled() {
        this.flying = new Map()
    }

    /** A line on the console. */
    heard(text: string) {
        const accepted = /^> tx (\d+)$/.exec(text)
        if (accepted) {
            this.accepted++
            const number = Number(accepted[1])
            // It may have been settled before it was printed.
            if (!this.seen.get(number)?.acknowledged) this.open.add(number)
        }
        const settled = /^> fx (\d+) (.*)$/.exec(text)
        if (!settled) return
        const number = Number(settled[1])
        this.open.delete(number)
        if (settled[2] !== "acknowledged") {
            this.dropped++
            if (!settled[2].startsWith("dropped: broker closed on it"))
                this.report("once", `message ${number}: ${settled[2]}`)
        } else if (!this.seen.get(number)?.acknowledged)
            this.report("once", `${number} acknowledged by nobody`)
        this.seen.delete(number)
    }

    /** A packet from the device. */
    sent(packet: Packet) {
        if (packet.cmd !== "publish" || packet.qos !== 1) return
        const [key, text] = `${packet.payload}`.split(" ")
        const number = Number(text)
        const { topic } = packet
        this.flying.set(packet.messageId!, number)
        const before = this.seen.get(number)
        if (before) {
            this.repeats++
            if (before.key !== key || before.topic !== topic)
                this.report("once", `${number} again, with another key`)
            return
        }
        if (packet.dup) this.report("once", `${number} is new and has DUP`)
        if (number <= (this.newest.get(topic) ?? 0))
            this.report("order", `${number} on ${topic} after a later one`)
        this.newest.set(topic, number)
        this.seen.set(number, { topic, key, acknowledged: false })
    }

    /** A packet from a broker. */
    received(packet: Packet) {
        if (packet.cmd !== "puback") return
        const message = this.seen.get(this.flying.get(packet.messageId!)!)
        if (!message) return
        message.acknowledged = true
        this.acknowledged++
    }

    /** A message has reached the strict broker. */
    published({ qos, payload }: Inbound) {
        if (qos !== 1) return
        const [key] = `${payload}`.split(" ")
        if (!this.dedup.isFirst(key)) return
        if (this.passed.has(key))
            this.report("once", `${key} passed the receiver's Dedup twice`)
        this.passed.add(key)
    }

    /** All is well, and has been for a while. */
    settledAll() {
        if (this.open.size)
            this.report(
                "once",
                `accepted and never acknowledged: ${[...this.open].join()}`,
            )
    }
}
