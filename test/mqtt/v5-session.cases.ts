// A session that speaks MQTT 5: what the broker has said about itself and why is kept to and passed on, and what
// waits grows old.
import { publishPacket } from "../../src/mqtt/encode"
import { flightOf, InFlight, type Flight } from "../../src/mqtt/in-flight"
import { put, type Entry } from "../../src/mqtt/outbox"
import type { Subscription } from "../../src/mqtt/session"
import { Codec5 } from "../../src/mqtt/v5-codec"
import { messageExpiry } from "../../src/mqtt/v5-expiry"
import {
    encodeProperties,
    Owner,
    PropertyId,
    valueAt,
    type Property,
} from "../../src/mqtt/v5-properties"
import { type Case, equal } from "../cases"
import { defaultOptions, World } from "./session.cases"

/** A world in which the packets that go out are noted as hex, but for CONNECT. */
class World5 extends World {
    override send(packet: Buffer): number {
        if (packet[0] !== 0x10) this.note(packet.toString("hex"))
        return this.code
    }
    override settled(s: Subscription) {
        this.note(`${s.topicFilter} is ${s.state} by the broker: ${s.why}`)
    }
}

/** QoS 1 out, whose losses are noted. */
class Noted extends InFlight {
    constructor(private readonly world: World) {
        super(16, 4096, 4, 30000)
    }
    override settle(_flight: Flight, code: number, fault?: string) {
        if (fault !== undefined) return this.world.note(`lost: ${fault}`)
        const { reason } = this.world.session.codec.verdict(code, false)
        this.world.note(`${code}: ${reason}`)
    }
}

function codec(): Codec5 {
    return new Codec5(
        1024,
        { host: "h", port: 1883, tls: false },
        { expiry: messageExpiry },
    )
}

/** A world after this CONNACK; the birth is 10 bytes of MQTT 5, the farewell 11. */
function up(connack: string): World5 {
    const options = defaultOptions()
    options.codec = codec()
    options.birth = { topic: "b", payload: "hello", retain: false }
    options.farewell = { topic: "b", payload: "so long", retain: false }
    const w = new World5(options)
    options.reliable = new Noted(w)
    connect(w, connack)
    return w
}

function connect(w: World5, connack: string) {
    w.session.open(w.nowMs)
    w.hearsHex(connack)
}

const OK = "2003000000"
const PRESENT = "2003010000"
const BIRTH = "300900016200" + "68656c6c6f"

function expiry(seconds: number): Property[] {
    return [
        { id: PropertyId.userProperty, value: "v", name: "n" },
        { id: PropertyId.contentType, value: "text" },
        { id: PropertyId.payloadFormat, value: 1 },
        { id: PropertyId.messageExpiry, value: seconds },
    ]
}

/** A message that has waited since 500 ms; the seconds it has left at each of the times, "-" for none. */
function ages(name: string, seconds: number, at: number[], expected: string) {
    return {
        name: `v5 expiry: ${name}`,
        run: () => {
            const given = encodeProperties(Owner.publish, expiry(seconds))
            const before = given.toString("hex")
            const entry: Entry = {
                packet: publishPacket("t", "x", 0, false, 0, false),
                properties: given,
                sinceMs: 500,
            }
            let out = ""
            for (const atMs of at) {
                const over = messageExpiry(entry, atMs)
                const bytes = entry.properties as Buffer
                const from = valueAt(bytes, PropertyId.messageExpiry)
                const hex = bytes.slice(from, from + 4).toString("hex")
                out += (out ? " " : "") + (over ? "-" : "") + hex
            }
            equal(out, expected)
            equal(given.toString("hex"), before, "the application's own")
        },
    }
}

/** Bytes that are no properties: nothing in them expires. */
function never(what: string, hex: string): Case {
    return {
        name: `v5 expiry: ${what}`,
        run: () => {
            const packet = publishPacket("t", "x", 0, false, 0, false)
            const properties = Buffer.from(hex, "hex")
            const entry: Entry = { packet, properties, sinceMs: 0 }
            equal(messageExpiry(entry, 1000000000), false)
            equal((entry.properties as Buffer).toString("hex"), hex)
        },
    }
}

function expiryRows(): Case[] {
    return [
        ages(
            "counted in whole seconds, from when it began to wait",
            60,
            [500, 1499, 1500, 1600, 2499, 2500, 60499],
            "0000003c 0000003c 0000003b 0000003b 0000003b 0000003a 00000001",
        ),
        ages(
            "over; what must go all the same goes with 1",
            2,
            [2500],
            "-00000001",
        ),
        ages("0 is over after a second", 0, [1400, 1500], "00000000 -00000001"),
        ages("beyond 31 bits", 4294967295, [10500], "fffffff5"),
        ages("after 40 days", 4294967295, [3456000500], "ffcb43ff"),
        never("without one", "0101"),
        never("an unknown property before it", "7702" + "0000003c"),
        never("cut off", "020000"),
        never("a text that ends beyond the end", "03ffff" + "020000003c"),
        never("a length that is cut off", "03"),
        never("a varint without an end", "0bffff"),
        never("nothing", ""),
    ]
}

export function cases(): Case[] {
    const list = expiryRows()
    for (const row of sessions()) list.push(row)
    return list
}

/** Accepts a QoS 1 message with 2 s to live. */
function accept(w: World5) {
    const properties = encodeProperties(Owner.publish, expiry(2))
    const packet = publishPacket("t", "x", 1, false, 1, false)
    const flight = flightOf(packet, w.nowMs, undefined, properties)
    put(w.options.reliable as InFlight, flight)
}

function sessions(): Case[] {
    return [
        {
            name: "v5: birth and farewell go as far as the broker's Maximum Packet Size",
            run: () => {
                const w = up(OK)
                w.expect(`connack 0, ${BIRTH}`)
                const some = up("200800000527" + "0000000b")
                some.expect(`connack 0, ${BIRTH}`)
                some.session.leave(0)
                some.expect(
                    "unsent b of 12: larger than the broker takes, e000",
                )
                up("200800000527" + "0000000a").expect(
                    "connack 0, unsent b of 10: larger than the broker takes",
                )
            },
        },
        {
            name: "v5: SUBACK's code and its words are why",
            run: () => {
                const w = up(OK)
                w.did()
                w.subscribe("a")
                w.subscribe("b")
                w.did()
                w.hearsHex("9004" + "0001" + "00" + "87")
                w.expect("a is refused by the broker: not authorised")
                w.hearsHex(
                    "900b" + "0002" + "07" + "1f0004" + "6e6f7065" + "87",
                )
                w.expect("b is refused by the broker: not authorised: nope")
            },
        },
        {
            name: "v5: PUBACK's words are its own, not those of CONNACK",
            run: () => {
                const w = up("2008000005" + "1f0002" + "6869")
                accept(w)
                w.resend()
                accept(w)
                w.resend()
                w.did()
                w.hearsHex("4003" + "0001" + "97")
                w.expect("151: quota exceeded")
                w.hearsHex("400a" + "0002" + "97" + "06" + "1f0003" + "617079")
                w.expect("151: quota exceeded: apy")
            },
        },
        {
            name: "v5: a message that is late is dropped, but not one the broker may know",
            run: () => {
                const w = up(OK)
                accept(w)
                w.resend()
                accept(w)
                w.did()
                w.session.close()
                w.nowMs = 3000
                connect(w, PRESENT)
                w.resend()
                const again = w.did().split(", ")
                equal(again.length, 4, "connack, birth, one again, one lost")
                equal(again[2].slice(0, 2), "3a", "with DUP")
                equal(again[2].indexOf("0200000001") > 0, true, "with 1 s")
                equal(again[3], "lost: expired")
                // Its second is over, and a new session knows nothing of it.
                w.session.close()
                w.nowMs = 4000
                connect(w, OK)
                w.resend()
                w.expect(`connack 0, ${BIRTH}, lost: expired`)
            },
        },
    ]
}
