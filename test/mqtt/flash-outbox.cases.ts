// The flash-backed outbox: what each record is, every point at which the power may go, and what it may cost.
import { ALLOWED_BYTES } from "../../src/core/write-budget"
import { markDup, publishPacket, topicOf } from "../../src/mqtt/encode"
import {
    FlashOutbox,
    KEEP_AFTER_MS,
    SETTLE_MS,
    type FlashWrite,
} from "../../src/mqtt/flash-outbox"
import {
    formatSlot,
    MESSAGE_MAX_BYTES,
    readSlot,
    SLOTS,
    type FlashRecord,
    type SlotProblem,
} from "../../src/mqtt/flash-slot"
import {
    acked,
    connected,
    flightOf,
    send,
    type Flight,
} from "../../src/mqtt/in-flight"
import { put, type Overflow } from "../../src/mqtt/outbox"
import type { Session } from "../../src/mqtt/session"
import { type Case, equal } from "../cases"
import { Quiet } from "./in-flight.cases"

/** A device with its flash. A write takes two steps: the store has it, and the device has read it back. */
export class Device {
    nowMs = 1000
    queue = new Quiet(1, 64, 4, 30000)
    rules = new FlashOutbox()
    writing: FlashWrite | undefined = undefined
    writes = 0
    writtenBytes = 0

    constructor(
        readonly flash: (Buffer | undefined)[] = blank(),
        private readonly overflow?: Overflow,
    ) {
        this.start()
    }

    /** The program starts, with what it finds in flash. */
    start() {
        this.writing = undefined
        this.queue = new Quiet(16, 4096, 4, 30000, this.overflow)
        this.rules = new FlashOutbox()
        for (const f of this.rules.restore(readAll(this.flash), this.nowMs))
            put(this.queue, f)
    }

    accept(payload: string, topic = "t") {
        const packet = publishPacket(topic, payload, 1, false, 1, false)
        const dropped = put(this.queue, flightOf(packet, this.nowMs))
        for (const f of dropped || []) this.rules.settled(f, this.nowMs)
    }

    /** Sends what the window lets through. */
    send() {
        connected(this.queue, false, this.nowMs)
        const self = this
        const session: any = {
            codec: { receiveMaximum: 65535 },
            freePacketId: () => (self.lastId = self.lastId + 1),
            port: { send: () => 0 },
        }
        while (send(this.queue, session as Session, this.nowMs));
    }
    private lastId = 0

    /** PUBACK for one that is in flight. */
    ack(payload: string) {
        for (const f of this.queue.list)
            if (payloadOf(f) === payload && acked(this.queue, f.packetId)) {
                this.rules.settled(f, this.nowMs)
                return
            }
        throw new Error(`${payload} is not in flight`)
    }

    /** Takes the next write out of the rules, if there is one. */
    begin(): boolean {
        this.writing = this.rules.next(this.queue, this.nowMs)
        return this.writing !== undefined
    }

    /** The store has it. */
    take() {
        const { at, bytes } = this.writing as FlashWrite
        equal(bytes.length <= 200, true, "the store's limit")
        this.flash[at] = bytes
        this.writes++
        this.writtenBytes += 24 + ((bytes.length + 7) & ~7)
    }

    /** The device has read it back. */
    done(ok = true) {
        this.writing = undefined
        this.rules.written(ok, this.nowMs)
    }

    /** Lets time pass, with whatever is written meanwhile. */
    run(forMs: number) {
        const untilMs = this.nowMs + forMs
        while (true) {
            const dueMs = this.rules.dueMs(this.queue, this.nowMs)
            if (dueMs < 0 || dueMs > untilMs) break
            if (dueMs > this.nowMs) this.nowMs = dueMs
            if (!this.begin()) continue
            this.take()
            this.done()
        }
        this.nowMs = untilMs
    }

    /** What a start now would find. */
    found(): string {
        const rules = new FlashOutbox()
        return letters(rules.restore(readAll(this.flash), this.nowMs))
    }

    /** What waits and what is in flight. */
    has(): string {
        return letters(this.queue.list)
    }

    /** What has been said, as it stands in lines. */
    said(): string {
        let out = ""
        for (const n of this.rules.news)
            out += `${out ? "; " : ""}${n.value}, ${n.allowed}: ${n.used}`
        this.rules.news = []
        return out
    }
}

function readAll(flash: (Buffer | undefined)[]) {
    const records: (FlashRecord | SlotProblem)[] = []
    for (const bytes of flash) records.push(readSlot(bytes))
    return records
}

function blank(): (Buffer | undefined)[] {
    const flash: (Buffer | undefined)[] = []
    for (let i = 0; i <= SLOTS; ++i) flash.push(undefined)
    return flash
}

export function payloadOf(f: Flight): string {
    const head = 6 + topicOf(f.packet).length
    return f.packet.slice(head, f.packet.length).toString()
}

function letters(flights: Flight[]): string {
    let out = ""
    for (const f of flights) out += payloadOf(f)
    return out
}

/** A device whose flash holds these messages, one letter each, all at rest. */
function holding(payloads: string): Device {
    const d = new Device()
    for (let i = 0; i < payloads.length; ++i) d.accept(payloads.slice(i, i + 1))
    d.run(KEEP_AFTER_MS)
    return d
}

/** Steps and what a start after each would find: the table of every point at which the power may go. */
function cuts(
    name: string,
    device: () => Device,
    steps: [what: string, found: string, run: (d: Device) => void][],
): Case {
    return {
        name: `power cut: ${name}`,
        run: () => {
            const d = device()
            for (const step of steps) {
                step[2](d)
                equal(d.found(), step[1], step[0])
            }
        },
    }
}

const wait = (d: Device) => {
    d.nowMs += KEEP_AFTER_MS
}
const begins = (d: Device) => equal(d.begin(), true, "a write")
const takes = (d: Device) => d.take()
const done = (d: Device) => d.done()

function cutRows(): Case[] {
    return [
        cuts(
            "a message that waits, arrives, and is marked",
            () => new Device(),
            [
                ["accepted", "", d => d.accept("a")],
                ["it has waited for 10 s", "", wait],
                ["the write has begun", "", begins],
                ["the store has it", "a", takes],
                ["it is read back", "a", done],
                ["it is sent", "a", d => d.send()],
                [
                    "PUBACK came: a start now sends it again",
                    "a",
                    d => d.ack("a"),
                ],
                ["the mark has begun", "a", begins],
                ["the store has it", "", takes],
                ["it is read back", "", done],
                ["nothing more is written", "", d => equal(d.begin(), false)],
            ],
        ),
        cuts(
            "PUBACK comes between a message's write and its reading back",
            () => new Device(),
            [
                ["accepted and sent", "", d => (d.accept("a"), d.send())],
                ["the write has begun", "", d => (wait(d), begins(d))],
                ["PUBACK came", "", d => d.ack("a")],
                ["the store has it: a start now sends it again", "a", takes],
                ["it is read back", "a", done],
                ["the mark has begun", "a", begins],
                ["the store has it", "", takes],
                [
                    "it is read back, and that is all",
                    "",
                    d => (done(d), equal(d.begin(), false)),
                ],
            ],
        ),
        cuts(
            "the next message says that the one before is settled",
            () => holding("a"),
            [
                ["another waits", "a", d => (d.accept("b"), wait(d))],
                ["the first is acknowledged", "a", d => (d.send(), d.ack("a"))],
                ["the write over its slot has begun", "a", begins],
                ["the store has it", "b", takes],
                ["it is read back", "b", done],
                ["no mark is needed", "b", d => equal(d.begin(), false)],
            ],
        ),
        cuts("what comes back is at rest where it was", () => holding("abc"), [
            ["a start", "abc", d => d.start()],
            ["nothing is written for it", "abc", d => d.run(3600000)],
            ["another start, before anything is sent", "abc", d => d.start()],
            ["all is sent", "abc", d => d.send()],
            ["the second is acknowledged", "abc", d => d.ack("b")],
            ["and marked 10 s later", "ac", d => d.run(SETTLE_MS)],
            ["a start", "ac", d => d.start()],
            [
                "sent, acknowledged",
                "ac",
                d => (d.send(), d.ack("c"), d.ack("a")),
            ],
            ["and marked at once", "", d => d.run(0)],
        ]),
        cuts(
            "the outbox drops what is in flash",
            () => new Device(undefined, dropAll),
            [
                [
                    "one waits in flash",
                    "a",
                    d => (d.accept("a"), d.run(KEEP_AFTER_MS)),
                ],
                ["another takes its place in RAM", "a", d => d.accept("b")],
                ["it is marked", "", d => d.run(0)],
                ["the other in flash", "b", d => d.run(KEEP_AFTER_MS)],
            ],
        ),
    ]
}

/** Everything goes for what is new. */
function dropAll(waiting: unknown[]): number {
    return waiting.length ? 0 : -1
}

function many(letter: string, count: number): string {
    let out = ""
    for (let i = 0; i < count; ++i) out += letter
    return out
}

/** A record with a message. */
function record(payload = "x", topic = "t"): FlashRecord {
    return {
        number: 7,
        debtBytes: 1234,
        upS: 100000,
        settled: 0xa5,
        message: {
            packet: publishPacket(topic, payload, 1, true, 513, false),
            properties: Buffer.from("0200000001", "hex"),
            waitedS: 70000,
        },
    }
}

function text(r: FlashRecord | string): string {
    if (typeof r === "string") return r
    const { number, debtBytes, upS, settled, message } = r
    const head = `${number} ${debtBytes} ${upS} ${settled}`
    if (!message) return head
    const { packet, properties, waitedS } = message
    const own = properties ? properties.toString("hex") : "none"
    return `${head} ${packet.toString("hex")} ${own} ${waitedS}`
}

/** A value in flash that is no record. */
function wrong(what: string, problem: string, bytes: () => Buffer): Case {
    return {
        name: `slot: ${what} is ${problem}`,
        run: () => equal(text(readSlot(bytes())), problem),
    }
}

/** A record whose PUBLISH is these bytes. */
function carrying(hex: string): Buffer {
    const r = record()
    r.message = { packet: Buffer.from(hex, "hex"), waitedS: 0 }
    return formatSlot(r)
}

function slotRows(): Case[] {
    return [
        {
            name: "slot: what is read is what was written",
            run: () => {
                const r = record()
                equal(text(readSlot(formatSlot(r))), text(r))
                r.message = undefined
                equal(text(readSlot(formatSlot(r))), text(r), "a mark")
                equal(formatSlot(r).length, 15)
                const long = record(many("p", MESSAGE_MAX_BYTES - 13))
                equal(formatSlot(long).length, 200, "the longest")
                equal(text(readSlot(formatSlot(long))), text(long))
                equal(readSlot(undefined), "missing")
            },
        },
        {
            name: "slot: a byte that is touched, a byte less and a byte more are unreadable, wherever",
            run: () => {
                const bytes = formatSlot(record())
                for (let i = 0; i < bytes.length; ++i) {
                    bytes[i] ^= 0x10
                    equal(readSlot(bytes), "unreadable", `byte ${i}`)
                    bytes[i] ^= 0x10
                    equal(readSlot(bytes.slice(0, i)), "unreadable", `${i}`)
                }
                const more = Buffer.alloc(bytes.length + 1)
                for (let i = 0; i < bytes.length; ++i) more[i] = bytes[i]
                equal(readSlot(more), "unreadable", "longer")
            },
        },
        wrong("nothing but zeros", "unreadable", () => Buffer.alloc(40)),
        wrong("more than the store holds", "unreadable", () =>
            Buffer.alloc(201),
        ),
        wrong("number 0", "unreadable", () => {
            const r = record()
            r.number = 0
            return formatSlot(r)
        }),
        wrong("a number nobody gets to", "unreadable", () => {
            const r = record()
            r.number = 0x7fffffff
            return formatSlot(r)
        }),
        wrong("QoS 0", "unreadable", () => carrying("3005000174" + "7879")),
        wrong("another packet", "unreadable", () =>
            carrying("8206000100017400"),
        ),
        wrong("a topic with a wildcard", "unreadable", () =>
            carrying("3206000123" + "0001" + "78"),
        ),
        wrong("a topic without an end", "unreadable", () =>
            carrying("3206ff0174" + "0001" + "78"),
        ),
        wrong("no topic", "unreadable", () =>
            carrying("32050000" + "0001" + "78"),
        ),
        wrong("a length of its own", "unreadable", () =>
            carrying("3207000174" + "0001" + "78"),
        ),
    ]
}

function ruleRows(): Case[] {
    return [
        {
            name: "flash hears nothing of what is acknowledged within 10 s",
            run: () => {
                const d = new Device()
                for (let i = 0; i < 20; ++i) {
                    d.accept("a")
                    d.send()
                    d.run(KEEP_AFTER_MS - 1)
                    d.ack("a")
                }
                d.run(3600000)
                equal(d.writes, 0)
            },
        },
        {
            name: "order is kept across starts, whatever slots are used, and before anything new",
            run: () => {
                const d = holding("abcdefgh")
                d.accept("i")
                d.send()
                d.ack("b")
                d.run(KEEP_AFTER_MS)
                equal(d.found(), "acdefghi", "i took b's slot")
                d.start()
                d.accept("j")
                equal(d.has(), "acdefghij")
                d.send()
                for (const c of ["a", "c", "d", "e"]) d.ack(c)
                d.run(60000)
                equal(d.found(), "fghij")
            },
        },
        {
            name: "eight slots: the ninth waits in RAM until one is free",
            run: () => {
                const d = holding("abcdefghi")
                equal(d.found(), "abcdefgh")
                equal(d.writes, 8)
                d.run(600000)
                equal(d.writes, 8)
                d.send()
                d.ack("a")
                d.run(0)
                equal(d.found(), "bcdefghi")
            },
        },
        {
            name: "too large for a slot: in RAM only, said once, and those behind it are kept",
            run: () => {
                const d = new Device()
                const long = many("x", MESSAGE_MAX_BYTES)
                d.accept(long)
                d.accept(long)
                d.accept("b")
                d.run(KEEP_AFTER_MS + 60000)
                equal(d.found(), "b")
                equal(
                    d.said(),
                    "189 B message, at most 181 B in flash: RAM only",
                )
            },
        },
        {
            name: "what can't be read is empty, said once, costs what is in hand, and is written over",
            run: () => {
                const d = holding("abc")
                ;(d.flash[1] as Buffer)[20] ^= 1
                d.flash[5] = Buffer.from("rubbish")
                d.start()
                equal(d.has(), "ac")
                equal(d.said(), "2 unreadable, messages: the others")
                d.accept("d")
                d.run(60000)
                equal(
                    d.said(),
                    "6000 B written, 6000 B and 1 more a minute: RAM only",
                )
                equal(d.found(), "ac")
                // 24 + 32 + 40 bytes
                d.run(96 * 60000)
                equal(d.found(), "acd")
                equal((d.flash[1] as Buffer).length, 27)
            },
        },
        {
            name: "a store that does not answer: nothing is read, and nothing written over what is there",
            run: () => {
                const rules = new FlashOutbox()
                const { queue } = holding("a")
                equal(rules.restore(undefined, 0).length, 0)
                equal(rules.news.length, 1)
                equal(rules.dueMs(queue, 1000000000), -1)
                equal(rules.next(queue, 1000000000), undefined)
            },
        },
        {
            name: "a write that fails: in RAM for an hour, then tried again",
            run: () => {
                const d = new Device()
                d.accept("a")
                wait(d)
                begins(d)
                d.done(false)
                equal(
                    d.said(),
                    "no write, a store that takes it: RAM only for 1 h",
                )
                equal(d.begin(), false)
                d.run(3599999)
                equal(d.writes, 0)
                d.run(1)
                equal(d.found(), "a")
            },
        },
        {
            name: "about to reboot: what waits is written at once, and what is settled marked",
            run: () => {
                const d = holding("ab")
                d.send()
                d.ack("a")
                d.accept("c")
                equal(d.rules.isIdle(d.queue, d.nowMs), true)
                d.rules.urgent = true
                equal(d.rules.isIdle(d.queue, d.nowMs), false)
                d.run(0)
                equal(d.found(), "bc")
                equal(d.rules.isIdle(d.queue, d.nowMs), true)
            },
        },
        {
            name: "what was written as a resend comes back as new, without DUP",
            run: () => {
                const d = new Device()
                d.accept("a")
                d.send()
                markDup(d.queue.list[0].packet)
                d.run(KEEP_AFTER_MS)
                d.start()
                equal(d.has(), "a")
                equal(d.queue.list[0].packet[0] & 8, 0, "DUP")
            },
        },
        {
            name: "how long a message has waited outlives the start, as far as one can know",
            run: () => {
                const d = new Device()
                d.accept("a")
                d.run(25000)
                // written at 11 s; no chip reset
                d.start()
                equal(d.queue.list[0].sinceMs, 1000, "exactly")
                // A chip reset: the clock begins anew.
                d.nowMs = 3000
                d.start()
                equal(d.nowMs - d.queue.list[0].sinceMs, 13000)
            },
        },
    ]
}

/** Too long for the VM, which ends a program that does so much without a wait. */
export function longCases(): Case[] {
    return [
        {
            name: "budget: what is in hand, then a byte a minute; what does not fit waits in RAM and is said",
            run: () => {
                const d = new Device()
                // 24 + 32 + 40 bytes each, acknowledged at once after the write
                for (let i = 0; i < 62; ++i) {
                    d.accept("a")
                    d.run(KEEP_AFTER_MS)
                    equal(d.found(), "a", `${i}`)
                    d.send()
                    d.ack("a")
                    d.run(0)
                }
                equal(d.said(), "")
                equal(d.writtenBytes, 62 * (56 + 40))
                d.accept("b")
                d.run(KEEP_AFTER_MS)
                equal(d.found(), "")
                equal(d.said().indexOf("RAM only") > 0, true)
                // A restart changes nothing about it.
                d.start()
                d.accept("c")
                d.run(KEEP_AFTER_MS)
                equal(d.found(), "")
                d.run(96 * 60000)
                equal(d.found(), "c")
            },
        },
        {
            name: "budget: a week of outages, crashes and power cuts writes at most 6,000 bytes and one a minute more",
            run: () => {
                const d = new Device(undefined, dropAll)
                let uptimeMs = 0
                for (let i = 0; i < 2000; ++i) {
                    d.accept("0123456789")
                    const forMs = 11000 + (i & 63) * 9000
                    d.run(forMs)
                    uptimeMs += forMs
                    if ((i & 3) === 0) {
                        d.send()
                        if (d.queue.held) d.ack("0123456789")
                        d.run(100)
                    }
                    if ((i & 15) === 7) d.start()
                    if ((i & 63) === 40) {
                        d.nowMs = 1000
                        d.start()
                    }
                }
                const limit = ALLOWED_BYTES + uptimeMs / 60000
                equal(d.writtenBytes <= limit, true, `${d.writtenBytes} B`)
                equal(d.writtenBytes > limit / 2, true, `${d.writtenBytes} B`)
            },
        },
    ]
}

export function cases(): Case[] {
    const list = slotRows()
    for (const row of cutRows()) list.push(row)
    for (const row of ruleRows()) list.push(row)
    return list
}
