// One MQTT session after another as timelines: what a broker says and when, and what the session
// does about it. Everything it does is one text, so that order counts.
import { wordsOf, type Reason } from "../../src/core/reason"
import { mqtt311 } from "../../src/mqtt/codec"
import { publishPacket } from "../../src/mqtt/encode"
import { flightOf, InFlight, send, type Flight } from "../../src/mqtt/in-flight"
import type { Publish } from "../../src/mqtt/packets"
import { put } from "../../src/mqtt/outbox"
import {
    hear,
    sendPacket,
    Session,
    type SessionOptions,
    type SessionPort,
    type Subscription,
} from "../../src/mqtt/session"
import { type Case, equal } from "../cases"

function isWaiting({ state }: Subscription): boolean {
    return state === "new" || state === "asked"
}

function text(bytes: Buffer, from: number, to: number): string {
    return bytes.slice(from, to).toString()
}

/** A packet of ours in words; all are below 130 bytes here. */
export function said(p: Buffer): string {
    const id = p.length > 3 ? (p[2] << 8) | p[3] : 0
    switch (p[0]) {
        case 0x10:
            return p[9] & 2 ? "CONNECT" : "CONNECT to the old session"
        case 0x30:
        case 0x31: {
            const at = 4 + ((p[2] << 8) | p[3])
            const retain = p[0] === 0x31 ? " retain" : ""
            return `PUBLISH ${text(p, 4, at)}=${text(p, at, p.length)}${retain}`
        }
        case 0x32:
        case 0x3a: {
            const at = 4 + ((p[2] << 8) | p[3])
            const dup = p[0] === 0x3a ? " DUP" : ""
            const own = (p[at] << 8) | p[at + 1]
            return `PUBLISH ${own} ${text(p, 4, at)}=${text(p, at + 2, p.length)}${dup}`
        }
        case 0x40:
            return `PUBACK ${id}`
        case 0x82:
            return `SUBSCRIBE ${id} ${text(p, 6, p.length - 1)}`
        case 0xa2:
            return `UNSUBSCRIBE ${id} ${text(p, 6, p.length)}`
        case 0xc0:
            return "PINGREQ"
        case 0xe0:
            return "DISCONNECT"
        default:
            return "??"
    }
}

export function defaultOptions(): SessionOptions {
    return {
        connect: { clientId: "x", keepAliveSeconds: 60, cleanSession: true },
        pingMs: 10000,
        codec: mqtt311(128),
    }
}

/** A session and its world: packets it says and its news in `journal`; a refusal or a violation ends it, as on the device. */
export class World implements SessionPort {
    readonly session: Session
    journal = ""
    nowMs = 0
    /** Every subscription there has been, and how it was at the last look. */
    private readonly seen: { s: Subscription; was: string; off: boolean }[] = []
    /** What the socket answers to a write. */
    code = 0

    constructor(readonly options: SessionOptions = defaultOptions()) {
        // Something waits already, so that each message comes by `deliver`, in order with all else.
        this.session = new Session(options, this, [0])
    }

    note(what: string) {
        this.watch()
        this.add(what)
    }

    private add(what: string) {
        this.journal += this.journal ? ", " + what : what
    }

    send(packet: Buffer): number {
        this.note(said(packet))
        return this.code
    }
    connack(code: number, sessionPresent: boolean) {
        this.note(`connack ${code}${sessionPresent ? " present" : ""}`)
        if (code !== 0) this.session.close()
    }
    deliver(subscription: Subscription, message: Publish) {
        const { topic, payload } = message
        this.note(
            `${subscription.topicFilter} gets ${topic}=${payload.toString()}`,
        )
    }
    dropped(what: string, topic: string, bytes: number, reason: string) {
        if (what === "in") this.note(`skipped ${topic} of ${bytes}`)
        if (what === "out") this.note(`unsent ${topic} of ${bytes}: ${reason}`)
    }
    violation(reason: Reason) {
        this.note(`violation ${wordsOf(reason)}`)
        this.session.close()
    }
    dismissed(code: number) {
        this.note(`dismissed ${code}`)
        this.session.close()
    }
    silent() {
        this.note("silent")
        this.session.close()
    }

    /** Notes what has become of subscriptions since the last look. */
    watch() {
        for (const seen of this.seen) {
            const { s, was } = seen
            const isOpen = was === "new" || was === "asked"
            seen.was = s.state
            if (isOpen && !isWaiting(s)) this.settled(s)
            if (s.packetId) seen.off = false
            if (s.state !== "dropped" || s.packetId || seen.off) continue
            seen.off = true
            this.unsubscribed(s)
        }
    }
    settled(s: Subscription) {
        this.add(`${s.topicFilter} is ${s.state}`)
    }
    unsubscribed(s: Subscription) {
        this.add(`${s.topicFilter} is off`)
    }

    /** Takes what is in the journal out. */
    did(): string {
        this.watch()
        const done = this.journal
        this.journal = ""
        return done
    }

    /** Checks what was done since the last look. */
    expect(what: string) {
        equal(this.did(), what, `at ${this.nowMs}`)
    }

    /** Bytes from the broker. */
    hears(bytes: Buffer) {
        let more = hear(this.session, this.nowMs, bytes)
        this.watch()
        while (more) {
            more = hear(this.session, this.nowMs)
            this.watch()
        }
    }

    hearsHex(hex: string) {
        this.hears(Buffer.from(hex, "hex"))
    }

    /** Lets time pass: a tick whenever one is due, up to `untilMs`. */
    runTo(untilMs: number) {
        while (true) {
            const dueMs = this.session.dueMs()
            if (dueMs < 0 || dueMs > untilMs) break
            this.nowMs = dueMs
            this.session.tick(dueMs)
            const nextMs = this.session.dueMs()
            equal(nextMs < 0 || nextMs > dueMs, true, "a tick moves on")
        }
        this.nowMs = untilMs
    }

    /** CONNECT and CONNACK 0. */
    connect(sessionPresent: boolean) {
        this.session.open(this.nowMs)
        this.hearsHex(sessionPresent ? "20020100" : "20020000")
    }

    /** Sends QoS 1 messages that may go. */
    resend() {
        const flights = this.options.reliable as InFlight
        while (send(flights, this.session, this.nowMs));
    }

    /** The application publishes to "t" with QoS 1. */
    accept(payload: string) {
        const flights = this.options.reliable as InFlight
        const packet = publishPacket("t", payload, 1, false, 1, false)
        put(flights, flightOf(packet, this.nowMs))
        this.resend()
    }

    /** CONNECT and CONNACK 0; nothing of it stays in the journal but what comes after. */
    comeUp() {
        this.session.open(this.nowMs)
        this.did()
        this.hearsHex("20020000")
        equal(this.journal.slice(0, 9), "connack 0", "news")
        this.journal = this.journal.slice(11)
    }

    subscribe(filter: string, qos: 0 | 1 = 0): Subscription {
        const s: Subscription = {
            topicFilter: filter,
            qos,
            state: "new",
            handlers: [() => {}],
            packetId: 0,
            dueMs: 0,
        }
        this.seen.push({ s, was: "new", off: false })
        this.session.subscribe(s, this.nowMs)
        return s
    }

    unsubscribe(s: Subscription) {
        this.session.unsubscribe(s, this.nowMs)
    }
}

function hex2(n: number): string {
    const digits = "0123456789abcdef"
    return digits[(n >> 4) & 15] + digits[n & 15]
}

function hex4(n: number): string {
    return hex2(n >> 8) + hex2(n)
}

export function suback(id: number, code: number): string {
    return `9003${hex4(id)}${hex2(code)}`
}

export function unsuback(id: number): string {
    return `b002${hex4(id)}`
}

function publish(topic: string, payload: string, id: number): Buffer {
    const qos = id > 0 ? 1 : 0
    return publishPacket(topic, payload, qos, false, id, false)
}

/** A session that is up; its subscriptions are live with the ids 1, 2, ... */
function upWith(...filters: string[]): World {
    const w = new World()
    w.comeUp()
    for (const filter of filters) w.subscribe(filter)
    for (let id = 1; id <= filters.length; ++id) w.hearsHex(suback(id, 0))
    w.did()
    return w
}

function setLastPacketId(w: World, id: number) {
    const inside: any = w.session
    inside.lastPacketId = id
}

/** QoS 1 out, noted in a journal. */
class Noted extends InFlight {
    constructor(private readonly world: World) {
        super(16, 4096, 4, 30000)
    }
    override settle(flight: Flight) {
        this.world.note(`acknowledged ${flight.packetId}`)
    }
}

/** A session that is up, with QoS 1 out. */
function withQos1(): World {
    const options = defaultOptions()
    const w = new World(options)
    options.reliable = new Noted(w)
    w.connect(false)
    w.did()
    return w
}

export function cases(): Case[] {
    return [
        {
            name: "CONNECT, and nothing else before CONNACK; then birth, then SUBSCRIBE",
            run: () => {
                const options = defaultOptions()
                options.birth = { topic: "s", payload: "on", retain: true }
                const w = new World(options)
                w.subscribe("a")
                equal(w.session.open(0), 0, "code")
                w.expect("CONNECT")
                equal(w.session.dueMs(), -1, "due")
                w.subscribe("b")
                w.session.tick(1000000)
                w.expect("")
                w.hearsHex("20020000")
                w.expect(
                    "connack 0, PUBLISH s=on retain, SUBSCRIBE 1 a, SUBSCRIBE 2 b",
                )
                equal(w.session.up, true, "up")
            },
        },
        {
            name: "bytes without a connection are dropped: before the first, after DISCONNECT and after the end",
            run: () => {
                const w = new World()
                w.hears(publish("a", "from the run before", 0))
                w.expect("")
                w.comeUp()
                w.session.leave(0)
                w.did()
                w.hears(publish("a", "1", 0))
                w.session.close()
                w.hears(publish("a", "2", 0))
                w.expect("")
            },
        },
        {
            name: "S7: birth after every CONNACK; farewell before DISCONNECT, once",
            run: () => {
                const options = defaultOptions()
                options.birth = { topic: "s", payload: "on", retain: true }
                options.farewell = { topic: "s", payload: "off", retain: true }
                const w = new World(options)
                w.session.leave(0)
                w.expect("")
                w.comeUp()
                w.expect("PUBLISH s=on retain")
                w.session.close()
                w.comeUp()
                w.expect("PUBLISH s=on retain")
                w.session.leave(0)
                w.session.leave(0)
                w.session.tick(1000000)
                w.expect("PUBLISH s=off retain, DISCONNECT")
                equal(w.session.up, false, "up")
                equal(w.session.dueMs(), -1, "due")
            },
        },
        {
            name: "W5: what the socket says about CONNECT is passed on",
            run: () => {
                const w = new World()
                w.code = -10
                equal(w.session.open(0), -10, "code")
            },
        },
        {
            name: "session present is passed on, and subscriptions are made all the same",
            run: () => {
                const w = new World()
                w.subscribe("a")
                w.session.open(0)
                w.did()
                w.hearsHex("20020100")
                w.expect("connack 0 present, SUBSCRIBE 1 a")
            },
        },
        {
            name: "H1: a return code is news, and nothing is sent",
            run: () => {
                for (let code = 1; code <= 6; ++code) {
                    const w = new World()
                    w.subscribe("a")
                    w.session.open(0)
                    w.did()
                    w.hearsHex(`200200${hex2(code)}`)
                    w.expect(`connack ${code}`)
                    equal(w.session.up, false, "up")
                }
            },
        },
        {
            name: "a packet before CONNACK ends the connection",
            run: () => {
                for (const packet of [
                    "d000",
                    suback(1, 0),
                    unsuback(1),
                    "40020001",
                    "3003000161",
                ]) {
                    const w = new World()
                    w.subscribe("a")
                    w.session.open(0)
                    w.did()
                    w.hearsHex(packet)
                    w.expect("violation MQTT-3.2.0-1 first was not CONNACK")
                }
            },
        },
        {
            name: "a second CONNACK, of any code, ends the connection",
            run: () => {
                for (const packet of ["20020000", "20020005"]) {
                    const w = upWith()
                    w.hearsHex(packet)
                    w.expect("violation MQTT-3.2.0-2 second CONNACK")
                    equal(w.session.up, false, "up")
                }
            },
        },
        {
            name: "what is malformed ends the connection, with its clause, and nothing after it counts",
            run: () => {
                const w = upWith("a")
                w.hearsHex("d001ff" + "30030001" + "61")
                w.expect(
                    "violation MQTT-4.8.0-1 packet type 13 of a wrong size",
                )
            },
        },
        {
            name: "K1: the broker falls silent: PINGREQ before keep alive is over, then given up",
            run: () => {
                const w = upWith()
                w.runTo(52499)
                w.expect("")
                w.runTo(52500)
                w.expect("PINGREQ")
                w.runTo(62499)
                w.expect("")
                w.runTo(62500)
                w.expect("silent")
                equal(w.session.dueMs(), -1, "due")
            },
        },
        {
            name: "K2: QoS 0 publishes every keep alive/3 into a silent broker change nothing about that",
            run: () => {
                const w = upWith()
                const packet = publish("t", "x", 0)
                for (let i = 1; w.session.up; ++i) {
                    w.runTo(i * 20000)
                    if (w.session.up) sendPacket(w.session, packet, w.nowMs)
                }
                w.expect(
                    "PUBLISH t=x, PUBLISH t=x, PINGREQ, PUBLISH t=x, silent",
                )
                equal(w.nowMs <= 80000, true, "in time")
            },
        },
        {
            name: "any packet is a sign of life: a PINGRESP, a PUBLISH, half of one",
            run: () => {
                for (const life of ["d000", "30030001" + "61", "3003"]) {
                    const w = upWith()
                    w.runTo(52500)
                    w.expect("PINGREQ")
                    w.runTo(62499)
                    w.hearsHex(life)
                    w.runTo(62500)
                    w.expect("")
                    // 1 ms before 52.5 s after PINGREQ, our last packet
                    w.runTo(104999)
                    w.expect("")
                    w.runTo(105000)
                    w.expect("PINGREQ")
                }
            },
        },
        {
            name: "a device that only listens pings all the same: the broker must hear from it",
            run: () => {
                const w = upWith()
                let pings = 0
                for (let i = 1; i <= 36; ++i) {
                    w.runTo(i * 5000)
                    w.hears(publish("t", "x", 0))
                    if (w.did() === "PINGREQ") pings++
                }
                equal(pings, 3, "PINGREQ in 180 s")
            },
        },
        {
            name: "a device that talks and is answered needs no ping",
            run: () => {
                const w = upWith()
                for (let i = 1; i <= 10; ++i) {
                    w.runTo(i * 50000)
                    sendPacket(w.session, publish("t", "x", 0), w.nowMs)
                    w.hearsHex("40020001")
                    w.expect("PUBLISH t=x")
                }
            },
        },
        {
            name: "keep alive 0: never a ping, never silent",
            run: () => {
                const options = defaultOptions()
                options.connect.keepAliveSeconds = 0
                const w = new World(options)
                w.comeUp()
                equal(w.session.dueMs(), -1, "due")
                w.session.tick(1000000000)
                w.expect("")
                equal(w.session.up, true, "up")
            },
        },
        {
            name: "keep alive 65,535 s and 1 s: a ping an eighth early",
            run: () => {
                const options = defaultOptions()
                options.connect.keepAliveSeconds = 65535
                const long = new World(options)
                long.comeUp()
                equal(long.session.dueMs(), 57343125, "due")
                options.connect.keepAliveSeconds = 1
                const short = new World(options)
                short.comeUp()
                equal(short.session.dueMs(), 875, "due")
            },
        },
        {
            name: "MQTT 5's Server Keep Alive makes the pings more frequent, never rarer, and 0 doesn't end them",
            run: () => {
                const due = (ours: number, theirs: number) => {
                    const options = defaultOptions()
                    options.connect.keepAliveSeconds = ours
                    options.codec.heard = packet => {
                        if (packet.type === "connack")
                            packet.keepAliveSeconds = theirs
                        return undefined
                    }
                    const w = new World(options)
                    w.comeUp()
                    return w.session.dueMs()
                }
                equal(due(60, 5), 5 * 875, "5 s")
                equal(due(60, 65535), 60 * 875, "65,535 s")
                equal(due(60, 0), 60 * 875, "0")
                equal(due(0, 20), 20 * 875, "20 s where we ask for none")
                equal(due(0, 0), -1, "none at all")
            },
        },
        {
            name: "S2: three SUBSCRIBE, acks out of order: each handler hears its own answer",
            run: () => {
                const w = upWith()
                w.subscribe("a")
                w.subscribe("b")
                w.subscribe("c", 1)
                w.expect("SUBSCRIBE 1 a, SUBSCRIBE 2 b, SUBSCRIBE 3 c")
                w.hearsHex(suback(3, 1) + suback(1, 0x80) + suback(2, 0))
                w.expect("c is live, a is refused, b is live")
            },
        },
        {
            name: "S2: packet identifiers wrap from 65535 to 1 and skip those in use",
            run: () => {
                const w = new World()
                w.comeUp()
                w.subscribe("a") // 1, and its answer does not come
                setLastPacketId(w, 65533)
                w.subscribe("b")
                w.subscribe("c")
                w.subscribe("d")
                w.expect(
                    "SUBSCRIBE 1 a, SUBSCRIBE 65534 b, SUBSCRIBE 65535 c, SUBSCRIBE 2 d",
                )
                w.hearsHex(suback(65535, 0) + suback(1, 0))
                w.expect("c is live, a is live")
                setLastPacketId(w, 65535)
                w.subscribe("e")
                w.expect("SUBSCRIBE 1 e")
                w.subscribe("f")
                w.expect("SUBSCRIBE 3 f")
            },
        },
        {
            name: "S3: SUBACK 0x80: told, the link stays, nothing is delivered",
            run: () => {
                const w = upWith()
                const s = w.subscribe("a")
                w.did()
                w.hearsHex(suback(1, 0x80))
                w.expect("a is refused")
                w.hears(publish("a", "x", 0))
                w.expect("")
                equal(s.state, "refused", "state")
                equal(w.session.up, true, "up")
            },
        },
        {
            name: "S3: refused but still wanted: asked for again 60 s later, and after that refusal once more",
            run: () => {
                const w = upWith()
                w.subscribe("a")
                w.did()
                w.hearsHex(suback(1, 0x80))
                equal(w.session.dueMs(), 52500, "the ping is sooner")
                w.runTo(59999)
                w.hearsHex("d000")
                w.expect("a is refused, PINGREQ")
                w.runTo(60000)
                w.expect("SUBSCRIBE 2 a")
                w.hearsHex(suback(2, 0x80))
                w.runTo(119999)
                w.hearsHex("d000")
                w.expect("a is refused, PINGREQ")
                w.runTo(120000)
                w.expect("SUBSCRIBE 3 a")
                w.hearsHex(suback(3, 0))
                w.hears(publish("a", "x", 0))
                w.expect("a is live, a gets a=x")
            },
        },
        {
            name: "S3: refused, and gone by then, forgotten or with the connection: not asked for again",
            run: () => {
                const w = upWith()
                const s = w.subscribe("a")
                w.did()
                w.hearsHex(suback(1, 0x80))
                w.session.forget(s)
                w.runTo(52000)
                w.session.close()
                w.expect("a is refused")
                equal(w.session.dueMs(), -1, "due")
            },
        },
        {
            name: "S3: no SUBACK: told after the ping time, the link stays, a late answer is harmless",
            run: () => {
                const w = upWith()
                w.subscribe("a")
                w.did()
                w.runTo(9999)
                w.expect("")
                w.runTo(10000)
                w.expect("a is unanswered")
                w.hearsHex(suback(1, 0))
                w.expect("")
                equal(w.session.up, true, "up")
            },
        },
        {
            name: "S3: a PUBLISH before its SUBACK is delivered",
            run: () => {
                const w = upWith()
                w.subscribe("a/#")
                w.did()
                w.hears(publish("a/b", "x", 0))
                w.expect("a/# gets a/b=x")
            },
        },
        {
            name: "a message goes to each handler whose filter matches, in the order they came",
            run: () => {
                const w = upWith("a/+", "b", "#", "a/x")
                w.hears(publish("a/x", "1", 0))
                w.expect("a/+ gets a/x=1, # gets a/x=1, a/x gets a/x=1")
            },
        },
        {
            name: "while nothing waits a message goes straight to where the handlers' calls wait",
            run: () => {
                const w = upWith("a/+", "b", "#", "a/x")
                const { calls, subscriptions } = w.session
                calls.insert(0, -1)
                w.hears(publish("a/x", "1", 0))
                w.expect("# gets a/x=1, a/x gets a/x=1")
                equal(calls.length, 2)
                equal(calls[0], subscriptions[0])
                equal(calls[1].topic, "a/x")
            },
        },
        {
            name: "no more than four SUBSCRIBE wait for their answers at a time",
            run: () => {
                const w = upWith()
                for (let i = 0; i < 7; ++i) w.subscribe("f" + i)
                w.expect(
                    "SUBSCRIBE 1 f0, SUBSCRIBE 2 f1, SUBSCRIBE 3 f2, SUBSCRIBE 4 f3",
                )
                w.hearsHex(suback(2, 0))
                w.expect("f1 is live, SUBSCRIBE 5 f4")
                w.hearsHex(suback(1, 0) + suback(5, 0))
                w.expect(
                    "f0 is live, SUBSCRIBE 6 f5, f4 is live, SUBSCRIBE 7 f6",
                )
                w.runTo(10000)
                w.expect(
                    "f2 is unanswered, f3 is unanswered, f5 is unanswered, f6 is unanswered",
                )
            },
        },
        {
            name: "an UNSUBACK makes room for the SUBSCRIBE that waits",
            run: () => {
                const w = upWith("a", "b", "c", "d")
                const { subscriptions } = w.session
                for (const s of subscriptions.slice()) w.unsubscribe(s)
                w.subscribe("e")
                w.expect(
                    "UNSUBSCRIBE 5 a, UNSUBSCRIBE 6 b, UNSUBSCRIBE 7 c, UNSUBSCRIBE 8 d",
                )
                w.hearsHex(unsuback(7))
                w.expect("c is off, SUBSCRIBE 9 e")
            },
        },
        {
            name: "every subscription is made again once a connection, whatever became of it, but none that was dropped",
            run: () => {
                const w = upWith("a", "b", "c")
                const { subscriptions } = w.session
                w.subscribe("d")
                w.hearsHex(suback(4, 0x80))
                w.unsubscribe(subscriptions[1])
                w.hearsHex(unsuback(5))
                w.did()
                for (let round = 0; round < 2; ++round) {
                    w.session.close()
                    for (const s of subscriptions)
                        equal(s.state, "new", "state")
                    w.expect("")
                    w.comeUp()
                    const id = 6 + round * 3
                    w.expect(
                        `SUBSCRIBE ${id} a, SUBSCRIBE ${id + 1} c, SUBSCRIBE ${id + 2} d`,
                    )
                    w.hearsHex(suback(id, 0))
                    w.hearsHex(suback(id + 1, 0) + suback(id + 2, 0x80))
                    w.expect("a is live, c is live, d is refused")
                }
            },
        },
        {
            name: "unsubscribe without a connection: done at once, and it is not asked for again",
            run: () => {
                const w = new World()
                const s = w.subscribe("a")
                w.unsubscribe(s)
                w.expect("a is dropped, a is off")
                w.comeUp()
                w.expect("")
                w.unsubscribe(s)
                w.expect("")
                equal(s.packetId, 0, "nobody waits")
            },
        },
        {
            name: "unsubscribe while SUBACK is awaited: whoever waits for it is told at once, and only once",
            run: () => {
                const w = upWith()
                const s = w.subscribe("a")
                w.did()
                w.unsubscribe(s)
                w.expect("a is dropped, UNSUBSCRIBE 2 a")
                w.hearsHex(suback(1, 0) + unsuback(2))
                w.expect("a is off")
            },
        },
        {
            name: "unsubscribe while SUBACK is awaited, and the connection is lost: nobody waits for ever",
            run: () => {
                const w = upWith()
                const s = w.subscribe("a")
                w.unsubscribe(s)
                w.did()
                w.session.close()
                w.expect("a is off")
                w.comeUp()
                w.expect("")
            },
        },
        {
            name: "unsubscribe what is live, refused or unanswered: UNSUBSCRIBE, told when it is answered",
            run: () => {
                const w = upWith("a")
                const refused = w.subscribe("b")
                w.hearsHex(suback(2, 0x80))
                const late = w.subscribe("c")
                w.runTo(10000)
                w.did()
                w.unsubscribe(w.session.subscriptions[0])
                w.unsubscribe(refused)
                w.unsubscribe(late)
                w.expect("UNSUBSCRIBE 4 a, UNSUBSCRIBE 5 b, UNSUBSCRIBE 6 c")
                w.hears(publish("a", "x", 0))
                w.expect("")
                w.hearsHex(unsuback(6) + unsuback(4))
                w.expect("c is off, a is off")
                w.runTo(20000)
                w.expect("b is off")
                equal(w.session.up, true, "up")
            },
        },
        {
            name: "unsubscribe one of two handlers of a filter: the other keeps its messages",
            run: () => {
                const w = upWith("a", "a")
                const { subscriptions } = w.session
                w.unsubscribe(subscriptions[0])
                w.expect("a is off")
                w.hears(publish("a", "x", 0))
                w.expect("a gets a=x")
                w.unsubscribe(subscriptions[0])
                w.expect("UNSUBSCRIBE 3 a")
            },
        },
        {
            name: "a filter that the broker holds for a dropped handler goes with the last who wanted it",
            run: () => {
                const w = upWith("a")
                for (let i = 0; i < 4; ++i) w.subscribe("f" + i)
                const last = w.subscribe("a") // waits for room
                w.did()
                w.unsubscribe(w.session.subscriptions[0])
                w.expect("a is off")
                w.unsubscribe(last)
                w.expect("a is dropped, UNSUBSCRIBE 6 a")
            },
        },
        {
            name: "the connection is lost while UNSUBACK is awaited: the caller is told",
            run: () => {
                const w = upWith("a", "b")
                w.unsubscribe(w.session.subscriptions[0])
                w.did()
                w.session.close()
                w.expect("a is off")
                w.comeUp()
                w.expect("SUBSCRIBE 4 b")
                w.hearsHex(unsuback(3))
                w.expect("")
            },
        },
        {
            name: "unsubscribe after DISCONNECT has left is told at once",
            run: () => {
                const w = upWith("a")
                w.session.leave(0)
                w.did()
                w.unsubscribe(w.session.subscriptions[0])
                w.expect("a is off")
            },
        },
        {
            name: "a message with QoS 1 is acked, also when nobody wants it",
            run: () => {
                const w = upWith("a")
                w.hears(publish("a", "x", 65535))
                w.expect("PUBACK 65535, a gets a=x")
                w.hears(publish("b", "x", 1))
                w.expect("PUBACK 1")
            },
        },
        {
            name: "S5: a message above the limit is skipped and reported, and acked with QoS 1",
            run: () => {
                const w = upWith("a")
                const big = Buffer.alloc(207)
                big[0] = 0x32
                big[1] = 0xcc
                big[2] = 0x01
                big[4] = 1
                big[5] = 0x61
                big[7] = 9
                w.hears(big.slice(0, 100))
                w.expect("")
                w.hears(big.slice(100))
                w.expect("PUBACK 9, skipped a of 207")
                w.hears(publish("a", "x", 0))
                w.expect("a gets a=x")
            },
        },
        {
            name: "SUBACK or UNSUBACK for an identifier that waits for nothing, or for the other, is ignored",
            run: () => {
                const w = upWith()
                w.subscribe("a")
                w.did()
                w.hearsHex(suback(7, 0) + unsuback(1) + unsuback(9))
                w.hearsHex("40020003")
                w.expect("")
                w.hearsHex(suback(1, 0) + suback(1, 0x80))
                w.expect("a is live")
            },
        },
        {
            name: "SUBACK with two codes for one filter ends the connection; it is asked for again",
            run: () => {
                const w = upWith()
                w.subscribe("a")
                w.did()
                w.hearsHex("900400010000")
                w.expect(
                    "violation MQTT-3.8.4-5 SUBACK for another number of filters",
                )
                w.comeUp()
                w.expect("SUBSCRIBE 2 a")
            },
        },
        {
            name: "the connection is lost in the middle of a packet: the next one begins clean",
            run: () => {
                const w = upWith("a")
                w.hearsHex("30050001" + "61")
                w.session.close()
                w.comeUp()
                w.did()
                w.hears(publish("a", "x", 0))
                w.expect("a gets a=x")
                // in the middle of one that is skipped
                w.hearsHex("30ff7f0001" + "61")
                w.session.close()
                w.comeUp()
                w.did()
                w.hears(publish("a", "y", 0))
                w.expect("a gets a=y")
            },
        },
        {
            name: "a violation between other packets: those before count, those after do not",
            run: () => {
                const w = upWith("a")
                w.hearsHex(
                    "3004000161" + "31" + "20020000" + "3004000161" + "32",
                )
                w.expect("a gets a=1, violation MQTT-3.2.0-2 second CONNACK")
            },
        },
        {
            name: "identifiers go on from connection to connection",
            run: () => {
                const w = upWith("a")
                w.session.close()
                w.comeUp()
                w.expect("SUBSCRIBE 2 a")
                w.hearsHex(suback(1, 0x80))
                w.expect("")
                w.hearsHex(suback(2, 0))
                w.expect("a is live")
            },
        },
        {
            name: "S1 with QoS 1 out: PUBACK lost, session present: same identifier, DUP; no session: as new",
            run: () => {
                const w = withQos1()
                w.accept("a")
                w.expect("PUBLISH 1 t=a")
                w.session.close()
                w.connect(true)
                w.expect("CONNECT to the old session, connack 0 present")
                w.resend()
                w.expect("PUBLISH 1 t=a DUP")
                w.session.close()
                w.connect(false)
                w.resend()
                w.expect("CONNECT to the old session, connack 0, PUBLISH 1 t=a")
                w.hearsHex("40020001" + "40020001" + "40020309")
                w.expect("acknowledged 1")
            },
        },
        {
            name: "S2: SUBSCRIBE and PUBLISH share the identifiers, which come round and leave out what is in flight",
            run: () => {
                const w = withQos1()
                w.accept("a")
                w.subscribe("f")
                w.accept("b")
                w.expect("PUBLISH 1 t=a, SUBSCRIBE 2 f, PUBLISH 3 t=b")
                ;(w.session as any).lastPacketId = 65534
                w.accept("c")
                w.accept("d")
                w.expect("PUBLISH 65535 t=c, PUBLISH 4 t=d")
                w.hearsHex("40020004" + "4002ffff")
                w.expect("acknowledged 4, acknowledged 65535")
                w.hearsHex(suback(2, 0) + "40020001")
                w.expect("f is live, acknowledged 1")
                ;(w.session as any).lastPacketId = 65535
                w.accept("e")
                w.accept("f")
                w.accept("g")
                w.expect("PUBLISH 1 t=e, PUBLISH 2 t=f, PUBLISH 4 t=g")
            },
        },
        {
            name: "a repetition is acknowledged again and not delivered again; a new message under its identifier is",
            run: () => {
                const w = withQos1()
                w.subscribe("t")
                w.hearsHex(suback(1, 0))
                w.did()
                w.hearsHex("32060001740009" + "78")
                w.expect("PUBACK 9, t gets t=x")
                w.session.close()
                w.connect(true)
                w.did()
                w.hearsHex("3a060001740009" + "78")
                w.expect("PUBACK 9")
                w.hearsHex("3a060001740009" + "79")
                w.expect("PUBACK 9, t gets t=y")
            },
        },
        {
            name: "unsubscribe without a connection: where the broker has kept the session, it is told at the next",
            run: () => {
                const w = withQos1()
                for (let i = 0; i < 6; ++i) w.subscribe("f" + i)
                const { subscriptions } = w.session
                w.session.close()
                while (subscriptions.length) w.unsubscribe(subscriptions[0])
                w.subscribe("f2")
                w.did()
                w.connect(true)
                w.expect(
                    "CONNECT to the old session, connack 0 present, SUBSCRIBE 5 f2, UNSUBSCRIBE 6 f0, UNSUBSCRIBE 7 f1, UNSUBSCRIBE 8 f3",
                )
                w.hearsHex(unsuback(6))
                w.expect("f0 is off, UNSUBSCRIBE 9 f4")
                // Those that had no answer are asked once more.
                w.session.close()
                w.expect("f1 is off, f3 is off, f4 is off")
                w.connect(true)
                w.expect(
                    "CONNECT to the old session, connack 0 present, SUBSCRIBE 10 f2, UNSUBSCRIBE 11 f5, UNSUBSCRIBE 12 f1, UNSUBSCRIBE 13 f3",
                )
                w.hearsHex(unsuback(11) + unsuback(12) + unsuback(13))
                w.expect("f5 is off, UNSUBSCRIBE 14 f4, f1 is off, f3 is off")
                w.hearsHex(unsuback(14))
                w.did()
                w.session.close()
                w.connect(true)
                w.expect(
                    "CONNECT to the old session, connack 0 present, SUBSCRIBE 15 f2",
                )
            },
        },
        {
            name: "unsubscribe without a connection: a new session knows nothing of it; no more than 64 are remembered",
            run: () => {
                const w = withQos1()
                w.session.close()
                for (let i = 0; i < 70; ++i) w.unsubscribe(w.subscribe("f" + i))
                w.did()
                const { gone } = w.options.reliable as any
                equal(gone.length, 64, "remembered")
                w.connect(false)
                w.expect("CONNECT to the old session, connack 0")
                w.session.close()
                w.connect(true)
                w.expect("CONNECT to the old session, connack 0 present")
            },
        },
        {
            name: "after what can't be taken the next CONNECT asks for a new session, the one after not",
            run: () => {
                const w = withQos1()
                w.hearsHex("3404000161" + "31")
                w.did()
                w.connect(false)
                w.session.close()
                w.connect(false)
                w.expect(
                    "CONNECT, connack 0, CONNECT to the old session, connack 0",
                )
            },
        },
    ]
}
