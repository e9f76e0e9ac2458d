// Follows every QoS 1 message that a program publishes, from its own words and on the wire: `tx <number>` when it was
// accepted, `fx <number> <outcome>` when it was told what became of it, as test/bytecode/soak-app.ts prints them; the payload
// is `<key> <number>`. What must hold: in order on each topic, again only as the same message, and nothing told
// "acknowledged" that no broker has acknowledged. What is in flash when the program starts anew has to be sent again, before
// anything new, until a broker has it. What reaches the strict broker goes through a receiver's Dedup.
import { Dedup } from "../../src/core/dedup"
import { POISON_TRIES } from "../../src/mqtt/in-flight"
import type { Inbound } from "../lab/broker"
import type { Packet } from "../lab/mqtt-wire"
import type { Report } from "./invariants"

/** A message, as far as it has come. */
interface Outbound {
    topic: string
    number: number
    /** Its place on its topic: numbers of this start, below zero what came out of flash. */
    place: number
    times: number
    acknowledged: boolean
}

/** More than a device has in flight and in its outbox. */
const REMEMBER = 64

export class OutboundWatch {
    /** By key, on the wire in this program start. */
    private readonly seen = new Map<string, Outbound>()
    /** The key of each number of this start. */
    private readonly keys = new Map<number, string>()
    /** Accepted in this start and not settled. */
    private readonly open = new Set<number>()
    /** Keys of what came out of flash at this start, and their places. */
    private places = new Map<string, number>()
    /** Keys of what has been in flash at a start and that no broker has acknowledged since. */
    private readonly owed = new Set<string>()
    /** The last place on each topic. */
    private readonly newest = new Map<string, number>()
    /** What waits for its PUBACK on this connection: key by identifier. */
    private flying = new Map<number, string>()
    private readonly dedup = new Dedup(REMEMBER)
    /** Keys that passed the receiver's Dedup, the latest. */
    private readonly passed = new Set<string>()
    accepted = 0
    acknowledged = 0
    repeats = 0
    dropped = 0
    /** Messages that were in flash at a start. */
    restored = 0

    /** @param kept payloads of what the device's flash holds, in order */
    constructor(
        private readonly report: Report,
        private readonly kept: () => string[] = () => [],
    ) {}

    /** The program starts anew: what it had in RAM is gone, what is in flash is not. */
    restarted() {
        const keys = this.kept().map(payload => payload.split(" ")[0])
        this.excuse(keys)
        this.seen.clear()
        this.keys.clear()
        this.open.clear()
        this.newest.clear()
        this.flying.clear()
        this.places = new Map(keys.map((key, i) => [key, i - keys.length]))
        this.restored += keys.length
        for (const key of keys) this.owed.add(key)
    }

    /** What the broker closed on each time is no longer owed: it has been set aside, and flash knows. */
    private excuse(kept: string[]) {
        for (const key of this.owed)
            if (
                !kept.includes(key) &&
                (this.seen.get(key)?.times ?? 0) >= POISON_TRIES
            ) {
                this.owed.delete(key)
                this.dropped++
            }
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
            if (!this.ofNumber(number)?.acknowledged) this.open.add(number)
        }
        const settled = /^> fx (\d+) (.*)$/.exec(text)
        if (!settled) return
        const number = Number(settled[1])
        const [, , outcome] = settled
        this.open.delete(number)
        if (outcome !== "acknowledged") {
            this.dropped++
            if (!outcome.startsWith("dropped: broker closed on it"))
                this.report("once", `message ${number}: ${outcome}`)
        } else if (!this.ofNumber(number)?.acknowledged)
            this.report("once", `${number} acknowledged by nobody`)
        this.seen.delete(this.keys.get(number) ?? "")
        this.keys.delete(number)
    }

    private ofNumber(number: number): Outbound | undefined {
        return this.seen.get(this.keys.get(number) ?? "")
    }

    /** A packet from the device. */
    sent(packet: Packet) {
        if (packet.cmd !== "publish" || packet.qos !== 1) return
        const [key, text] = `${packet.payload}`.split(" ")
        const { topic } = packet
        this.flying.set(packet.messageId!, key)
        const before = this.seen.get(key)
        if (before) {
            this.repeats++
            before.times++
            if (before.topic !== topic)
                this.report("once", `${key} again, on another topic`)
            return
        }
        this.first(key, Number(text), topic, packet.dup)
    }

    /** A message is on the wire for the first time in this start. */
    private first(key: string, number: number, topic: string, dup: boolean) {
        const inFlash = this.places.get(key)
        const place = inFlash ?? number
        if (inFlash === undefined) {
            if (this.keys.has(number))
                return this.report("once", `${number} again, with another key`)
            this.keys.set(number, key)
        }
        if (dup) this.report("once", `${number} is new and has DUP`)
        if (place <= (this.newest.get(topic) ?? -Infinity))
            this.report("order", `${number} on ${topic} after a later one`)
        this.newest.set(topic, place)
        this.seen.set(key, {
            topic,
            number,
            place,
            times: 1,
            acknowledged: false,
        })
    }

    /** A packet from a broker. */
    received(packet: Packet) {
        if (packet.cmd !== "puback") return
        const key = this.flying.get(packet.messageId!)
        const message = key === undefined ? undefined : this.seen.get(key)
        if (!message) return
        message.acknowledged = true
        this.acknowledged++
        this.owed.delete(key!)
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
        const { open } = this
        if (open.size)
            this.report(
                "once",
                `accepted and never acknowledged: ${[...open].join()}`,
            )
        this.excuse(this.kept().map(payload => payload.split(" ")[0]))
        if (this.owed.size)
            this.report(
                "flash outbox",
                `in flash at a start and never acknowledged: ${[...this.owed].join()}`,
            )
    }
}
