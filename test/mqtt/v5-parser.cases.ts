// MQTT 5 packets in: every packet a broker may send with every property, every way to cut the stream, and the
// table of what it must not send, by statement of the standard.
import {
    heldBytes,
    nextPacket,
    pushChunk,
    resetFramer,
} from "../../src/mqtt/framing"
import { type Case, equal } from "../cases"
import type { Packet } from "../../src/mqtt/packets"
import { Parser5 } from "../../src/mqtt/v5-parser"
import { MAX_PROPERTIES, type Property } from "../../src/mqtt/v5-properties"

/** Properties as text: `31=why 38=name:value`. */
export function showProperties(list: Property[] | undefined): string {
    let text = ""
    for (const p of list || []) {
        const { value } = p
        const name = p.name === undefined ? "" : p.name + ":"
        const shown =
            typeof value === "number" || typeof value === "string"
                ? `${value}`
                : value.toString("hex")
        text += ` ${p.id}=${name}${shown}`
    }
    return text
}

/** A packet as one line, so that streams compare as text. */
export function show(packet: Packet): string {
    switch (packet.type) {
        case "connack":
            return `connack present=${packet.sessionPresent} code=${packet.code} level=${packet.level}${showProperties(packet.properties)}`
        case "publish":
            return `publish ${packet.topic} ${packet.payload.toString("hex")} qos=${packet.qos} retain=${!!packet.retain} dup=${!!packet.dup} id=${packet.packetId || 0}${showProperties(packet.properties)}`
        case "puback":
            return `puback ${packet.packetId} ${packet.code} ${packet.reason}`
        case "suback":
        case "unsuback":
            return `${packet.type} ${packet.packetId}${list(packet.codes)} ${packet.reason}`
        case "disconnect":
            return `disconnect ${packet.code}${showProperties(packet.properties)}`
        case "malformed":
            return malformedLine(packet.reason as string, packet.code)
        default:
            return packet.type
    }
}

/** The code stands between the clause and the words. */
function malformedLine(reason: string, code: number | undefined): string {
    const at = reason.indexOf(" ")
    return `malformed ${reason.slice(0, at)} ${code}${reason.slice(at)}`
}

function list(codes: number[] | undefined): string {
    let text = ""
    for (const code of codes || []) text += ` ${code}`
    return text
}

/** All packets that `parser` gives out now, one line each. */
export function drain(parser: Parser5): string {
    let lines = ""
    while (true) {
        const packet = nextPacket(parser)
        if (packet === undefined) return lines
        lines = lines + show(packet) + "\n"
    }
}

/** Cuts `hex` in two at up to eight places, and into single bytes; the packets are the same every time. */
function read(hex: string, expected: string) {
    const all = Buffer.from(hex, "hex")
    const parser = new Parser5(256)
    for (let at = 0; at <= all.length; at += 1 + (all.length >> 3)) {
        pushChunk(parser, all.slice(0, at))
        let lines = drain(parser)
        pushChunk(parser, all.slice(at))
        lines += drain(parser)
        equal(lines, expected + "\n", `cut at ${at}`)
        equal(heldBytes(parser), 0, "held")
    }
    let lines = ""
    for (let at = 0; at < all.length; ++at) {
        pushChunk(parser, all.slice(at, at + 1))
        lines += drain(parser)
    }
    equal(lines, expected + "\n", "byte by byte")
}

function good(cases: Case[], name: string, hex: string, expected: string) {
    cases.push({ name: `v5: ${name}`, run: () => read(hex, expected) })
}

/** One input, in one chunk and byte by byte, that must give exactly one malformed packet, and then silence. */
function bad(cases: Case[], name: string, hex: string, expected: string) {
    cases.push({
        name: `v5 malformed: ${name}`,
        run: () => {
            const parser = new Parser5(256)
            pushChunk(parser, Buffer.from("d000" + hex + "d000", "hex"))
            const lines = drain(parser)
            equal(lines.slice(0, 9), "pingresp\n")
            const wanted = `malformed MQTT-${expected}`
            equal(lines.slice(9, 9 + wanted.length), wanted)
            equal(lines.indexOf("\n", 9), lines.length - 1, "lines end at")
            pushChunk(parser, Buffer.from("d000", "hex"))
            equal(nextPacket(parser), undefined, "after death")
            resetFramer(parser)
            const all = Buffer.from(hex, "hex")
            let apart = ""
            for (let at = 0; at < all.length; ++at) {
                pushChunk(parser, all.slice(at, at + 1))
                apart = apart + drain(parser)
            }
            equal(apart, lines.slice(9), "byte by byte")
            equal(heldBytes(parser), 0, "held")
        },
    })
}

/** A PUBLISH to "t" with QoS 0, this property section and the payload "p". */
function publish(propertiesHex: string): string {
    const bytes = propertiesHex.length >> 1
    return (
        "30" + byte(bytes + 5) + "000174" + byte(bytes) + propertiesHex + "70"
    )
}

function connack(propertiesHex: string): string {
    const bytes = propertiesHex.length >> 1
    return "20" + byte(bytes + 3) + "0000" + byte(bytes) + propertiesHex
}

function disconnect(propertiesHex: string): string {
    const bytes = propertiesHex.length >> 1
    return "e0" + byte(bytes + 2) + "00" + byte(bytes) + propertiesHex
}

function byte(n: number): string {
    const digits = "0123456789abcdef"
    return digits[n >> 4] + digits[n & 15]
}

const PUBLISHED = "publish t 70 qos=0 retain=false dup=false id=0"
const ACCEPTED = "connack present=false code=0 level=5"

function goodOnes(): Case[] {
    const cases: Case[] = []
    good(cases, "PINGRESP", "d000", "pingresp")
    good(cases, "CONNACK", "2003000000", ACCEPTED)
    good(
        cases,
        "CONNACK with session present",
        "2003010000",
        "connack present=true code=0 level=5",
    )
    good(
        cases,
        "CONNACK: busy, and why",
        "20090089061f0003617079",
        "connack present=false code=137 level=5 31=apy",
    )
    good(
        cases,
        "CONNACK of two bytes: a broker that speaks only MQTT 3.1.1",
        "20020001",
        "connack present=false code=1 level=4",
    )
    good(
        cases,
        "CONNACK: numbers",
        connack("1100000e10" + "13001e" + "210001" + "220003" + "2700000100"),
        ACCEPTED + " 17=3600 19=30 33=1 34=3 39=256",
    )
    good(
        cases,
        "CONNACK: the largest numbers",
        connack("11ffffffff" + "13ffff" + "2780000000"),
        ACCEPTED + " 17=4294967295 19=65535 39=2147483648",
    )
    good(
        cases,
        "CONNACK: flags",
        connack("2400" + "2500" + "2801" + "2900" + "2a00"),
        ACCEPTED + " 36=0 37=0 40=1 41=0 42=0",
    )
    good(
        cases,
        "CONNACK: texts, a user property twice",
        connack(
            "1200016e" +
                "1a000172" +
                "1c000173" +
                "26000161000162" +
                "26000161000163",
        ),
        ACCEPTED + " 18=n 26=r 28=s 38=a:b 38=a:c",
    )
    good(cases, "PUBLISH without properties", publish(""), PUBLISHED)
    good(
        cases,
        "PUBLISH with QoS 1, retain and DUP",
        "3b08000174000a00" + "7071",
        "publish t 7071 qos=1 retain=true dup=true id=10",
    )
    good(
        cases,
        "PUBLISH with every property",
        publish(
            "0101" +
                "0200000005" +
                "03000163" +
                "08000172" +
                "0900020102" +
                "0b8101" +
                "0b05" +
                "26000161000162",
        ),
        PUBLISHED + " 1=1 2=5 3=c 8=r 9=0102 11=129 11=5 38=a:b",
    )
    good(cases, "PUBACK as short as it can be", "4002000b", "puback 11 0 ")
    good(cases, "PUBACK with a code", "4003000b10", "puback 11 16 ")
    good(
        cases,
        "PUBACK with a code and a reason",
        "4008000b97041f000178",
        "puback 11 151 x",
    )
    good(cases, "SUBACK", "9006000c00010287", "suback 12 1 2 135 ")
    good(
        cases,
        "SUBACK with a reason",
        "9008000c041f00017887",
        "suback 12 135 x",
    )
    good(cases, "UNSUBACK", "b005000d000011", "unsuback 13 0 17 ")
    good(cases, "DISCONNECT with nothing", "e000", "disconnect 0")
    good(cases, "DISCONNECT with a code", "e0018e", "disconnect 142")
    good(
        cases,
        "DISCONNECT: server moved, where to, and why",
        "e00e9d0c1c0004623a39392600000000",
        "disconnect 157 28=b:99 38=:",
    )
    return cases
}

/** 40 user properties of 5 bytes each, then one that is not allowed: read are the first 32. */
function manyProperties() {
    let section = ""
    for (let i = 0; i < 40; ++i) section += "2600000000"
    // 202 bytes of properties: two bytes of length each
    const hex = "30d101" + "000174" + "ca01" + section + "ff00" + "7071"
    const parser = new Parser5(256)
    pushChunk(parser, Buffer.from(hex, "hex"))
    const packet = nextPacket(parser)
    equal(packet && packet.type, "publish")
    if (packet === undefined || packet.type !== "publish") return
    equal(packet.payload.toString("hex"), "7071", "payload")
    equal((packet.properties || []).length, MAX_PROPERTIES, "properties")
}

function wrongFrames(cases: Case[]) {
    bad(cases, "reserved packet type 0", "0000", "4.13.1-1 129")
    bad(cases, "CONNECT from a broker", "1000", "4.13.1-1 130 packet type 1")
    bad(cases, "SUBSCRIBE from a broker", "8200", "4.13.1-1 130 packet type 8")
    bad(cases, "UNSUBSCRIBE from a broker", "a200", "4.13.1-1 130")
    bad(cases, "PINGREQ from a broker", "c000", "4.13.1-1 130 packet type 12")
    bad(cases, "PUBREC", "50020001", "4.13.1-1 130 packet type 5 belongs")
    bad(cases, "PUBREL", "62020001", "4.13.1-1 130 packet type 6 belongs")
    bad(cases, "PUBCOMP", "70020001", "4.13.1-1 130 packet type 7 belongs")
    bad(cases, "AUTH", "f0021800", "4.12.0-6 130 AUTH")
    bad(cases, "an empty AUTH", "f000", "4.12.0-6 130 AUTH")
    bad(cases, "CONNACK with flags", "2103000000", "2.1.3-1 129")
    bad(cases, "PUBACK with flags", "42020001", "2.1.3-1 129")
    bad(cases, "SUBACK with flags", "920400010000", "2.1.3-1 129")
    bad(cases, "UNSUBACK with flags", "b80400010000", "2.1.3-1 129")
    bad(cases, "PINGRESP with flags", "df00", "2.1.3-1 129")
    bad(cases, "DISCONNECT with flags", "e100", "2.1.3-1 129")
    bad(cases, "remaining length of 5 bytes", "308080808001", "1.5.5-1 129")
    bad(cases, "remaining length in two bytes for one", "d08000", "1.5.5-1")
    bad(cases, "the same in four", "30858080" + "00", "1.5.5-1 129")
    bad(cases, "PINGRESP with a body", "d00100", "4.13.1-1 130")
    bad(cases, "empty CONNACK", "2000", "4.13.1-1 129 packet type 2")
    bad(cases, "PUBACK of one byte", "400100", "4.13.1-1 129 packet type 4")
    bad(cases, "SUBACK without properties", "9003000100", "4.13.1-1 129")
    bad(cases, "UNSUBACK as MQTT 3.1.1 has it", "b0020001", "4.13.1-1 129")
    bad(cases, "a packet above the limit", "30ff01", "3.1.2-27 149 packet of")
    bad(cases, "and one of 200 MB", "30ffffff7f", "3.1.2-27 149")
}

function wrongPublishes(cases: Case[]) {
    bad(cases, "PUBLISH with QoS 3", "3600", "3.3.1-4 129")
    bad(cases, "PUBLISH with QoS 2", "3400", "3.8.4-8 130")
    bad(cases, "PUBLISH with DUP and QoS 0", "3800", "3.3.1-2 129")
    bad(cases, "empty PUBLISH", "3000", "3.3.2-1 129")
    bad(cases, "topic longer than its packet", "3003000574", "4.13.1-1 129")
    bad(cases, "empty topic", "3003000000", "4.7.3-1 130")
    bad(cases, "topic with a wildcard", "30040001" + "2b00", "3.3.2-2 129")
    bad(cases, "topic with #", "30040001" + "2300", "3.3.2-2 129")
    bad(cases, "ill-formed topic", "30040001" + "ff00", "1.5.4-1 129")
    bad(cases, "topic with half a pair", "30060003eda08000", "1.5.4-1 129")
    bad(cases, "topic with U+0000", "30040001" + "0000", "1.5.4-2 129")
    bad(cases, "identifier 0", "3206000174000000", "2.2.1-4 130")
    bad(cases, "no identifier", "3203000174", "4.13.1-1 129 packet ends")
    bad(cases, "no property length", "3003000174", "4.13.1-1 129 packet ends")
    bad(cases, "properties beyond the packet", "300400017405", "4.13.1-1 129")
    bad(
        cases,
        "property length longer than needed",
        "30050001748000",
        "1.5.5-1",
    )
    bad(
        cases,
        "property length of 5 bytes",
        "30080001748080808001",
        "1.5.5-1 129",
    )
    bad(
        cases,
        "topic alias, though none was allowed",
        publish("230001"),
        "3.1.2-30 148",
    )
    bad(cases, "topic alias 0", publish("230000"), "3.3.2-8 130")
    bad(
        cases,
        "wildcard in the response topic",
        publish("0800012b"),
        "3.3.2-14 130",
    )
    bad(cases, "# in the response topic", publish("08000123"), "3.3.2-14 130")
    bad(cases, "ill-formed response topic", publish("080001ff"), "1.5.4-1 129")
    bad(cases, "ill-formed content type", publish("030001c3"), "1.5.4-1 129")
    bad(
        cases,
        "ill-formed name of a user property",
        publish("260001ff0000"),
        "1.5.4-1",
    )
    bad(cases, "ill-formed user property", publish("2600000001ff"), "1.5.4-1")
    bad(cases, "U+0000 in a user property", publish("260000000100"), "1.5.4-2")
    bad(
        cases,
        "payload format 2",
        publish("0102"),
        "4.13.1-1 130 property 1 is 2",
    )
    bad(cases, "subscription identifier 0", publish("0b00"), "4.13.1-1 130")
    bad(cases, "identifier longer than needed", publish("0b8100"), "1.5.5-1")
}

/** Each property that may be there once, twice. */
const ONCE_IN_PUBLISH = [
    "0100",
    "0200000001",
    "03000161",
    "08000161",
    "09000161",
]
const ONCE_IN_CONNACK = [
    "1100000001",
    "12000161",
    "130001",
    "1a000161",
    "1c000161",
    "1f000161",
    "210001",
    "220001",
    "2400",
    "2500",
    "2700000001",
    "2800",
    "2900",
    "2a00",
]

/** Properties that have no place in a PUBLISH from a broker. */
const NOT_IN_PUBLISH = [
    "1100000000",
    "12000161",
    "130001",
    "15000161",
    "160000",
    "1700",
    "1800000000",
    "1900",
    "1a000161",
    "1c000161",
    "1f000161",
    "210001",
    "220001",
    "2400",
    "2500",
    "2700000001",
    "2800",
    "2900",
    "2a00",
]
const NOT_IN_CONNACK = [
    "0100",
    "0200000001",
    "03000161",
    "08000161",
    "09000161",
    "0b01",
    "1700",
    "1800000000",
    "1900",
    "230001",
]
const NOT_IN_DISCONNECT = [
    "0100",
    "0200000001",
    "03000161",
    "08000161",
    "09000161",
    "0b01",
    "12000161",
    "130001",
    "15000161",
    "160000",
    "1700",
    "1800000000",
    "1900",
    "1a000161",
    "210001",
    "220001",
    "230001",
    "2400",
    "2500",
    "2700000001",
    "2800",
    "2900",
    "2a00",
]

function wrongProperties(cases: Case[]) {
    for (const p of ONCE_IN_PUBLISH)
        bad(
            cases,
            `property ${p.slice(0, 2)} twice in PUBLISH`,
            publish(p + p),
            "4.13.1-1 130 property",
        )
    for (const p of ONCE_IN_CONNACK)
        bad(
            cases,
            `property ${p.slice(0, 2)} twice in CONNACK`,
            connack(p + p),
            "4.13.1-1 130 property",
        )
    for (const p of NOT_IN_PUBLISH)
        bad(
            cases,
            `property ${p.slice(0, 2)} in PUBLISH`,
            publish(p),
            "4.13.1-1 130 property",
        )
    for (const p of NOT_IN_CONNACK)
        bad(
            cases,
            `property ${p.slice(0, 2)} in CONNACK`,
            connack(p),
            "4.13.1-1 130 property",
        )
    for (const p of NOT_IN_DISCONNECT)
        bad(
            cases,
            `property ${p.slice(0, 2)} in DISCONNECT`,
            disconnect(p),
            "4.13.1-1 130 property",
        )
    for (const id of ["00", "04", "10", "1b", "2b", "7f"])
        bad(
            cases,
            `property ${id}, which there is not`,
            publish(id + "00"),
            "4.13.1-1 129 unknown property",
        )
    bad(
        cases,
        "property cut short",
        publish("0200"),
        "4.13.1-1 129 packet ends",
    )
    bad(
        cases,
        "text cut short",
        publish("030005" + "61"),
        "4.13.1-1 129 packet ends",
    )
    bad(
        cases,
        "user property without a value",
        publish("26000161"),
        "4.13.1-1 129 packet ends",
    )
}

function wrongAnswers(cases: Case[]) {
    bad(cases, "CONNACK with reserved flags", "2003020000", "3.2.2-1 129")
    bad(cases, "session present with a refusal", "2003018700", "3.2.2-6 130")
    bad(
        cases,
        "CONNACK with a code that means success",
        "2003000100",
        "3.2.2-8 130",
    )
    bad(
        cases,
        "authentication method in CONNACK",
        connack("15000161"),
        "4.12.0-6 130",
    )
    bad(
        cases,
        "authentication data in CONNACK",
        connack("160000"),
        "4.12.0-6 130",
    )
    bad(
        cases,
        "Receive Maximum 0",
        connack("210000"),
        "4.13.1-1 130 property 33 is 0",
    )
    bad(
        cases,
        "Maximum Packet Size 0",
        connack("2700000000"),
        "4.13.1-1 130 property 39 is 0",
    )
    bad(
        cases,
        "Maximum QoS 2",
        connack("2402"),
        "4.13.1-1 130 property 36 is 2",
    )
    bad(
        cases,
        "Retain Available 2",
        connack("2502"),
        "4.13.1-1 130 property 37 is 2",
    )
    bad(
        cases,
        "bytes after CONNACK's properties",
        "200400000000",
        "4.13.1-1 129 bytes left",
    )
    bad(cases, "PUBACK with identifier 0", "40020000", "2.2.1-5 130")
    bad(cases, "PUBACK with an unknown success", "4003000111", "3.4.2-1 130")
    bad(cases, "SUBACK with identifier 0", "900400000000", "2.2.1-6 130")
    bad(cases, "SUBACK with QoS 3", "900400010003", "3.9.3-2 130")
    bad(cases, "SUBACK without a code", "9004000101" + "26", "4.13.1-1 129")
    bad(cases, "UNSUBACK with identifier 0", "b00400000000", "2.2.1-6 130")
    bad(
        cases,
        "UNSUBACK with an unknown success",
        "b00400010001",
        "3.11.3-2 130",
    )
    bad(
        cases,
        "DISCONNECT with a code only clients have",
        "e00104",
        "3.14.2-1 130",
    )
    bad(
        cases,
        "session expiry in DISCONNECT",
        disconnect("1100000001"),
        "3.14.2-2 130",
    )
}

export function cases(): Case[] {
    const cases = goodOnes()
    cases.push({
        name: `v5: of 41 properties the first ${MAX_PROPERTIES} are read`,
        run: manyProperties,
    })
    cases.push({
        name: "v5: a packet of exactly the limit is taken, one byte more is not",
        run: () => {
            const parser = new Parser5(16)
            pushChunk(
                parser,
                Buffer.from(
                    "300e" + "00017400" + "61616161616161616161",
                    "hex",
                ),
            )
            equal(drain(parser).slice(0, 9), "publish t")
            pushChunk(parser, Buffer.from("300f" + "00017400", "hex"))
            equal(drain(parser).slice(0, 23), "malformed MQTT-3.1.2-27")
        },
    })
    wrongFrames(cases)
    wrongPublishes(cases)
    wrongProperties(cases)
    wrongAnswers(cases)
    return cases
}
