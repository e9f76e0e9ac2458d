// Packets in: every packet a server may send, every way to cut the stream, the table of what it must
// not send, and messages larger than what is held.
import {
    heldBytes,
    nextPacket,
    pushChunk,
    resetFramer,
} from "../../src/mqtt/framing"
import { type Case, equal, throws } from "../cases"
import { wordsOf } from "../../src/core/reason"
import { Parser } from "../../src/mqtt/parser"
import type { Packet } from "../../src/mqtt/packets"

/** A packet as one line, so that streams compare as text. */
export function show(packet: Packet): string {
    switch (packet.type) {
        case "connack":
            return `connack present=${packet.sessionPresent} code=${packet.code}`
        case "publish":
            return `publish ${packet.topic} ${packet.payload.toString("hex")} qos=${packet.qos} retain=${!!packet.retain} dup=${!!packet.dup} id=${packet.packetId || 0}`
        case "oversize":
            return `oversize ${packet.topic} in ${packet.packetBytes} qos=${packet.qos} id=${packet.packetId}`
        case "puback":
            return `puback ${packet.packetId}`
        case "unsuback":
            return `unsuback ${packet.packetId}`
        case "suback": {
            let line = `suback ${packet.packetId}`
            for (const code of packet.codes) line = line + " " + code
            return line
        }
        case "malformed":
            return `malformed ${wordsOf(packet.reason)}`
        default:
            return packet.type
    }
}

/** All packets that `parser` gives out now, one line each. */
export function drain(parser: Parser): string {
    let lines = ""
    while (true) {
        const packet = nextPacket(parser)
        if (packet === undefined) return lines
        lines = lines + show(packet) + "\n"
    }
}

function parse(hex: string): string {
    const parser = new Parser(1024)
    pushChunk(parser, Buffer.from(hex, "hex"))
    return drain(parser)
}

// CONNACK, PUBLISH QoS 0 and 1 with retain, PUBACK, SUBACK, UNSUBACK, PINGRESP, and a PUBLISH of
// 130 bytes, whose remaining length takes two
const MIXED =
    "20020100" +
    "30050001616869" +
    "33090003612f62000a6869" +
    "4002000b" +
    "9004000c0180" +
    "b002000d" +
    "d000"
const MIXED_LINES =
    "connack present=true code=0\n" +
    "publish a 6869 qos=0 retain=false dup=false id=0\n" +
    "publish a/b 6869 qos=1 retain=true dup=false id=10\n" +
    "puback 11\n" +
    "suback 12 1 128\n" +
    "unsuback 13\n" +
    "pingresp\n"

/** Strings are Node's and not the device's. */
const HOLDS_NONCHARACTERS = Buffer.from("efbfbf", "hex").toString() !== "\uFFFD"

/** Cuts MIXED in two at each byte from `first` to `last`. */
function splitAt(first: number, last: number) {
    const all = Buffer.from(MIXED, "hex")
    const parser = new Parser(64)
    for (let at = first; at <= last && at <= all.length; ++at) {
        pushChunk(parser, all.slice(0, at))
        const before = drain(parser)
        pushChunk(parser, all.slice(at))
        equal(before + drain(parser), MIXED_LINES, `split at ${at}`)
        equal(heldBytes(parser), 0, "held")
    }
}

/** Cuts MIXED into pieces of `bytes` bytes. */
function pieces(bytes: number) {
    const all = Buffer.from(MIXED, "hex")
    const parser = new Parser(1024)
    let lines = ""
    for (let at = 0; at < all.length; at += bytes) {
        const to = at + bytes
        pushChunk(parser, all.slice(at, to < all.length ? to : all.length))
        lines = lines + drain(parser)
    }
    equal(lines, MIXED_LINES)
}

/**
 * Sends a PUBLISH of `bodyBytes` in chunks of 1,024 bytes, head first, then a small one in the same
 * chunk as its end; at no time more than the limit is held.
 */
function big(
    headHex: string,
    bodyHex: string,
    bodyBytes: number,
    expected: string,
) {
    const parser = new Parser(256)
    const head = Buffer.from(headHex + bodyHex, "hex")
    const chunk = Buffer.alloc(1024)
    let left = bodyBytes - (bodyHex.length >> 1)
    pushChunk(parser, head)
    let lines = drain(parser)
    while (left >= chunk.length) {
        equal(heldBytes(parser) <= 256, true, "held within the limit")
        pushChunk(parser, chunk)
        lines = lines + drain(parser)
        left -= chunk.length
    }
    equal(lines, "", "before its last byte")
    const last = Buffer.alloc(left + 5)
    last.set(Buffer.from("3003000162", "hex"), left)
    pushChunk(parser, last)
    equal(
        drain(parser),
        expected + "\npublish b  qos=0 retain=false dup=false id=0\n",
    )
    equal(heldBytes(parser), 0, "held afterwards")
}

/** One input, in one chunk and byte by byte, that must give exactly one malformed packet, and then silence. */
function bad(list: Case[], name: string, hex: string, expected: string) {
    list.push({
        name: `malformed: ${name}`,
        run: () => {
            const parser = new Parser(1024)
            // a good packet first and one after it that must not come out
            pushChunk(parser, Buffer.from("d000" + hex + "d000", "hex"))
            const lines = drain(parser)
            equal(lines.slice(0, 9), "pingresp\n")
            equal(
                lines.slice(9, 9 + 10 + expected.length),
                `malformed ${expected}`,
            )
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

function malformed(list: Case[]) {
    bad(list, "reserved packet type 0", "0000", "MQTT-4.8.0-1 reserved")
    bad(list, "reserved packet type 15", "f000", "MQTT-4.8.0-1 reserved")
    bad(list, "CONNECT from a server", "1000", "MQTT-4.8.0-1 packet type 1 is")
    bad(list, "SUBSCRIBE from a server", "8200", "MQTT-4.8.0-1 packet type 8")
    bad(
        list,
        "UNSUBSCRIBE from a server",
        "a200",
        "MQTT-4.8.0-1 packet type 10",
    )
    bad(list, "PINGREQ from a server", "c000", "MQTT-4.8.0-1 packet type 12")
    bad(list, "DISCONNECT from a server", "e000", "MQTT-4.8.0-1 packet type 14")
    bad(
        list,
        "PUBREC, which answers QoS 2",
        "50020001",
        "MQTT-4.8.0-1 packet type 5 belongs to QoS 2",
    )
    bad(
        list,
        "PUBREL",
        "62020001",
        "MQTT-4.8.0-1 packet type 6 belongs to QoS 2",
    )
    bad(
        list,
        "PUBCOMP",
        "70020001",
        "MQTT-4.8.0-1 packet type 7 belongs to QoS 2",
    )
    bad(
        list,
        "CONNACK with flags",
        "21020000",
        "MQTT-2.2.2-2 packet type 2 with flags 1",
    )
    bad(list, "PUBACK with flags", "42020001", "MQTT-2.2.2-2")
    bad(list, "SUBACK with flags", "9203000100", "MQTT-2.2.2-2")
    bad(list, "UNSUBACK with flags", "b8020001", "MQTT-2.2.2-2")
    bad(
        list,
        "PINGRESP with flags",
        "df00",
        "MQTT-2.2.2-2 packet type 13 with flags 15",
    )
    bad(
        list,
        "remaining length of 5 bytes",
        "308080808001",
        "MQTT-4.8.0-1 remaining length",
    )
    bad(
        list,
        "remaining length of FF FF FF FF",
        "20ffffffff",
        "MQTT-4.8.0-1 remaining length",
    )
    bad(
        list,
        "PINGRESP with a body",
        "d00100",
        "MQTT-4.8.0-1 packet type 13 of a wrong size",
    )
    bad(
        list,
        "CONNACK of 1 byte",
        "200100",
        "MQTT-4.8.0-1 packet type 2 of a wrong size",
    )
    bad(
        list,
        "CONNACK of 3 bytes, as MQTT 5 has it",
        "2003000000",
        "MQTT-4.8.0-1",
    )
    bad(list, "empty CONNACK", "2000", "MQTT-4.8.0-1")
    bad(
        list,
        "CONNACK with reserved flag bits",
        "20020200",
        "MQTT-4.8.0-1 CONNACK",
    )
    bad(
        list,
        "CONNACK with reserved flag bit 7",
        "20028000",
        "MQTT-4.8.0-1 CONNACK",
    )
    bad(
        list,
        "session present with a refusal",
        "20020105",
        "MQTT-3.2.2-4 CONNACK with session present and a refusal",
    )
    bad(
        list,
        "PUBACK of 3 bytes",
        "4003000100",
        "MQTT-4.8.0-1 packet type 4 of a wrong",
    )
    bad(
        list,
        "PUBACK of 1 byte",
        "400101",
        "MQTT-4.8.0-1 packet type 4 of a wrong",
    )
    bad(list, "PUBACK with identifier 0", "40020000", "MQTT-2.3.1-6")
    bad(list, "UNSUBACK with identifier 0", "b0020000", "MQTT-2.3.1-7")
    bad(
        list,
        "UNSUBACK of 3 bytes, as MQTT 5 has it",
        "b003000100",
        "MQTT-4.8.0-1",
    )
    bad(
        list,
        "SUBACK without a code",
        "90020001",
        "MQTT-4.8.0-1 packet type 9 of a wrong size",
    )
    bad(
        list,
        "SUBACK with more codes than a SUBSCRIBE has filters",
        "908302",
        "MQTT-4.8.0-1 packet type 9 of a wrong size",
    )
    bad(list, "SUBACK with identifier 0", "9003000000", "MQTT-2.3.1-7")
    bad(
        list,
        "SUBACK with code 3",
        "900400010003",
        "MQTT-3.9.3-2 SUBACK with an unknown return code",
    )
    bad(list, "SUBACK with code 127", "900300017f", "MQTT-3.9.3-2")
    bad(list, "SUBACK with code 129", "9003000181", "MQTT-3.9.3-2")
    bad(list, "PUBLISH with QoS 3", "360500016100", "MQTT-3.3.1-4")
    bad(
        list,
        "PUBLISH with QoS 2, never subscribed to",
        "34060001610001aa",
        "MQTT-3.8.4-6",
    )
    bad(list, "PUBLISH with DUP and QoS 0", "3803000161", "MQTT-3.3.1-2")
    bad(list, "empty PUBLISH", "3000", "MQTT-3.3.2-1 PUBLISH without a topic")
    bad(list, "PUBLISH of 1 byte", "300100", "MQTT-3.3.2-1")
    bad(
        list,
        "topic longer than its packet",
        "3003000261",
        "MQTT-3.3.2-1 topic longer",
    )
    bad(
        list,
        "topic of 65,535 bytes in a packet of 4",
        "3004ffff6161",
        "MQTT-3.3.2-1",
    )
    bad(list, "empty topic", "30020000", "MQTT-4.7.3-1")
    bad(
        list,
        "QoS 1 without an identifier",
        "3203000161",
        "MQTT-2.3.1-1 PUBLISH without",
    )
    bad(
        list,
        "QoS 1 with half an identifier",
        "320400016101",
        "MQTT-2.3.1-1 PUBLISH without",
    )
    bad(
        list,
        "QoS 1 with identifier 0",
        "32050001610000",
        "MQTT-2.3.1-1 PUBLISH with",
    )
    bad(list, "+ in a topic", "30050003612f2b", "MQTT-3.3.2-2")
    bad(list, "# in a topic", "3003000123", "MQTT-3.3.2-2")
    bad(list, "U+0000 in a topic", "30050003610062", "MQTT-1.5.3-2")
    bad(
        list,
        "stray continuation byte in a topic",
        "30050003618062",
        "MQTT-1.5.3-1",
    )
    bad(list, "FF in a topic", "30050003ff6162", "MQTT-1.5.3-1")
    bad(
        list,
        "topic that ends inside a character of 2 bytes",
        "3004000261c3",
        "MQTT-1.5.3-1",
    )
    bad(
        list,
        "topic that ends inside a character of 4 bytes",
        "30060004" + "61f09f98",
        "MQTT-1.5.3-1",
    )
    bad(
        list,
        "first byte of a character and then another one",
        "30050003c36161",
        "MQTT-1.5.3-1",
    )
    bad(list, "overlong slash C0 AF", "30040002c0af", "MQTT-1.5.3-1")
    bad(list, "overlong E0 80 AF", "30050003e080af", "MQTT-1.5.3-1")
    bad(list, "surrogate ED A0 80", "30050003eda080", "MQTT-1.5.3-1")
    bad(list, "code point above U+10FFFF", "30060004f4908080", "MQTT-1.5.3-1")
    bad(list, "five-byte form F8", "30070005f888808080", "MQTT-1.5.3-1")
    const nonCharacter = "30050003efbfbf"
    if (!HOLDS_NONCHARACTERS) bad(list, "U+FFFF", nonCharacter, "MQTT-1.5.3-1")
    else
        list.push({
            name: "U+FFFF, which may be refused (1.5.3), is text where strings can hold it",
            run: () => equal(parse(nonCharacter).slice(0, 7), "publish"),
        })
}

export function cases(): Case[] {
    const list: Case[] = [
        {
            name: "CONNACK codes come out as they are, reserved ones too",
            run: () => {
                equal(parse("20020000"), "connack present=false code=0\n")
                equal(parse("20020005"), "connack present=false code=5\n")
                equal(parse("200200ff"), "connack present=false code=255\n")
            },
        },
        {
            name: "a stream with every packet, in one chunk",
            run: () => equal(parse(MIXED), MIXED_LINES),
        },
        {
            name: "T5: the same stream cut in two at bytes 0 to 14",
            run: () => splitAt(0, 14),
        },
        {
            name: "T5: the same stream cut in two at bytes 15 to 29",
            run: () => splitAt(15, 29),
        },
        {
            name: "T5: the same stream cut in two at bytes 30 to its end",
            run: () => splitAt(30, 99),
        },
        {
            name: "T5: the same stream byte by byte",
            run: () => pieces(1),
        },
        {
            name: "T5: the same stream in pieces of 3 and of 7 bytes",
            run: () => {
                pieces(3)
                pieces(7)
            },
        },
        {
            name: "T5: CONNACK as 1 + 1 + 2 bytes",
            run: () => {
                const parser = new Parser(1024)
                pushChunk(parser, Buffer.from("20", "hex"))
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.from("02", "hex"))
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.from("0000", "hex"))
                equal(drain(parser), "connack present=false code=0\n")
            },
        },
        {
            name: "T5: a two-byte remaining length cut in between",
            run: () => {
                const parser = new Parser(1024)
                pushChunk(parser, Buffer.from("3083", "hex"))
                equal(nextPacket(parser), undefined)
                const rest = Buffer.alloc(132)
                rest.set(Buffer.from("01000161", "hex"), 0)
                rest[131] = 7
                pushChunk(parser, rest)
                const packet = nextPacket(parser)
                if (packet === undefined || packet.type !== "publish")
                    throw new Error("no publish")
                equal(packet.topic, "a")
                equal(packet.payload.length, 128)
                equal(packet.payload[127], 7)
                equal(nextPacket(parser), undefined)
            },
        },
        {
            name: "T5: 200 PINGRESP in one segment come out one by one",
            run: () => {
                const parser = new Parser(1024)
                const chunk = Buffer.alloc(400)
                for (let i = 0; i < 400; i += 2) chunk[i] = 0xd0
                pushChunk(parser, chunk)
                let count = 0
                while (nextPacket(parser) !== undefined) ++count
                equal(count, 200)
            },
        },
        {
            name: "a chunk of no bytes changes nothing",
            run: () => {
                const parser = new Parser(1024)
                pushChunk(parser, Buffer.alloc(0))
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.from("d0", "hex"))
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.alloc(0))
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.from("00", "hex"))
                equal(drain(parser), "pingresp\n")
            },
        },
        {
            name: "pushing before the last chunk is used up is a programmer's error",
            run: () => {
                const parser = new Parser(1024)
                pushChunk(parser, Buffer.from("d000d000", "hex"))
                nextPacket(parser)
                throws(
                    () => pushChunk(parser, Buffer.from("d000", "hex")),
                    "push before the last chunk",
                )
            },
        },
        {
            name: "an overlong remaining length is accepted, as 3.1.1 does not forbid it",
            run: () =>
                equal(
                    parse("d08000" + "d0808000" + "d080808000"),
                    "pingresp\npingresp\npingresp\n",
                ),
        },
        {
            name: "PUBLISH with DUP, retain and an empty payload",
            run: () =>
                equal(
                    parse("3b05000161ffff"),
                    "publish a  qos=1 retain=true dup=true id=65535\n",
                ),
        },
        {
            name: "the payload is a copy, the chunk may be reused",
            run: () => {
                const parser = new Parser(1024)
                const chunk = Buffer.from("30050001616869", "hex")
                pushChunk(parser, chunk)
                const packet = nextPacket(parser)
                for (let i = 0; i < chunk.length; ++i) chunk[i] = 0
                if (packet === undefined || packet.type !== "publish")
                    throw new Error("no publish")
                equal(packet.payload.toString("hex"), "6869")
            },
        },
        {
            name: "topics beyond ASCII: 2, 3 and 4 bytes a character, U+FEFF, U+FFFD",
            run: () => {
                equal(
                    parse("300b0009c3bce282acf09f9880"),
                    "publish ü€😀  qos=0 retain=false dup=false id=0\n",
                )
                equal(
                    parse("30080006efbbbfefbfbd"),
                    "publish \uFEFF\uFFFD  qos=0 retain=false dup=false id=0\n",
                )
            },
        },
        {
            name: "reset forgets half a packet",
            run: () => {
                const parser = new Parser(1024)
                pushChunk(parser, Buffer.from("30050001", "hex"))
                equal(nextPacket(parser), undefined)
                equal(heldBytes(parser), 5)
                resetFramer(parser)
                equal(heldBytes(parser), 0)
                pushChunk(parser, Buffer.from("d000", "hex"))
                equal(drain(parser), "pingresp\n")
            },
        },
        {
            name: "SUBACK with 256 codes, the most one SUBSCRIBE can ask for",
            run: () => {
                const parser = new Parser(1024)
                const chunk = Buffer.alloc(261)
                chunk.set(Buffer.from("9082020001", "hex"), 0)
                pushChunk(parser, chunk)
                const packet = nextPacket(parser)
                if (packet === undefined || packet.type !== "suback")
                    throw new Error("no suback")
                equal(packet.codes.length, 256)
            },
        },
        {
            name: "a packet of exactly the limit is delivered, one byte more is oversize",
            run: () => {
                const parser = new Parser(16)
                pushChunk(
                    parser,
                    Buffer.from("300e000161" + "0102030405060708090a0b", "hex"),
                )
                equal(
                    drain(parser),
                    "publish a 0102030405060708090a0b qos=0 retain=false dup=false id=0\n",
                )
                pushChunk(
                    parser,
                    Buffer.from(
                        "300f000161" + "0102030405060708090a0b0cd000",
                        "hex",
                    ),
                )
                equal(drain(parser), "oversize a in 17 qos=0 id=0\npingresp\n")
            },
        },
        {
            name: "S5: 20 kB with QoS 0, skipped while counting, then a small one",
            run: () =>
                big(
                    "31a09c01",
                    "0003612f62",
                    20000,
                    "oversize a/b in 20004 qos=0 id=0",
                ),
        },
        {
            name: "S5: 20 kB with QoS 1 keeps its packet identifier",
            run: () =>
                big(
                    "3aa09c01",
                    "0003612f621234",
                    20000,
                    "oversize a/b in 20004 qos=1 id=4660",
                ),
        },
        {
            name: "S5: 200 kB with QoS 0",
            run: () =>
                big(
                    "30c09a0c",
                    "00016100",
                    200000,
                    "oversize a in 200004 qos=0 id=0",
                ),
        },
        {
            name: "S5: 200 kB with QoS 1",
            run: () =>
                big(
                    "32c09a0c",
                    "0001610001",
                    200000,
                    "oversize a in 200004 qos=1 id=1",
                ),
        },
        {
            name: "oversize byte by byte gives topic and identifier too",
            run: () => {
                const parser = new Parser(16)
                const all = Buffer.from(
                    "3214" +
                        "0003612f62" +
                        "1234" +
                        "00000000000000000000000000" +
                        "d000",
                    "hex",
                )
                let lines = ""
                for (let i = 0; i < all.length; ++i) {
                    pushChunk(parser, all.slice(i, i + 1))
                    lines = lines + drain(parser)
                }
                equal(lines, "oversize a/b in 22 qos=1 id=4660\npingresp\n")
            },
        },
        {
            name: "an oversize topic is cut between two characters, the identifier behind it is found",
            run: () => {
                const parser = new Parser(16)
                // 8 times "ü" and a slash first: byte 16 is inside a character
                pushChunk(
                    parser,
                    Buffer.from(
                        "321a" + "00152f" + "c3bcc3bcc3bcc3bcc3bc",
                        "hex",
                    ),
                )
                equal(drain(parser), "")
                equal(heldBytes(parser) <= 16, true, "held within the limit")
                pushChunk(
                    parser,
                    Buffer.from("c3bcc3bcc3bcc3bcc3bc" + "0102aa", "hex"),
                )
                equal(drain(parser), "oversize /üüüüüü in 28 qos=1 id=258\n")
            },
        },
        {
            name: "an oversize PUBLISH is checked like a small one",
            run: () => {
                const parser = new Parser(16)
                pushChunk(
                    parser,
                    Buffer.from(
                        "300f0000" + "00000000000000000000000000",
                        "hex",
                    ),
                )
                equal(drain(parser), "malformed MQTT-4.7.3-1 empty topic\n")
                resetFramer(parser)
                pushChunk(
                    parser,
                    Buffer.from(
                        "3010000f" + "0000000000000000000000000000",
                        "hex",
                    ),
                )
                equal(
                    drain(parser),
                    "malformed MQTT-3.3.2-1 topic longer than its packet\n",
                )
                resetFramer(parser)
                pushChunk(
                    parser,
                    Buffer.from(
                        "30100003612f2b" + "0000000000000000000000",
                        "hex",
                    ),
                )
                equal(
                    drain(parser),
                    "malformed MQTT-3.3.2-2 topic holds a wildcard\n",
                )
                resetFramer(parser)
                pushChunk(
                    parser,
                    Buffer.from(
                        "3010000361e282" + "0000000000000000000000",
                        "hex",
                    ),
                )
                equal(
                    drain(parser),
                    "malformed MQTT-1.5.3-1 topic isn't well-formed UTF-8\n",
                )
                resetFramer(parser)
                pushChunk(
                    parser,
                    Buffer.from(
                        "32100001610000" + "0000000000000000000000",
                        "hex",
                    ),
                )
                equal(
                    drain(parser),
                    "malformed MQTT-2.3.1-1 PUBLISH with packet identifier 0\n",
                )
            },
        },
        {
            name: "an oversize SUBACK is a protocol violation",
            run: () => {
                const parser = new Parser(16)
                pushChunk(parser, Buffer.from("900f0001", "hex"))
                equal(
                    drain(parser),
                    "malformed MQTT-4.8.0-1 packet type 9 above the packet limit\n",
                )
            },
        },
        {
            name: "an HTTP answer is recognised by its first bytes, not waited for",
            run: () => {
                // "HTTP/1.1 400" would be a PUBACK with 84 bytes
                equal(
                    parse("485454502f312e3120343030"),
                    "malformed MQTT-2.2.2-2 packet type 4 with flags 8, must be 0\n",
                )
            },
        },
        {
            name: "a limit of 1,024 bytes, to the byte",
            run: () => {
                const parser = new Parser(1024)
                const chunk = Buffer.alloc(1024)
                chunk.set(Buffer.from("30fd07000161", "hex"), 0)
                pushChunk(parser, chunk)
                const packet = nextPacket(parser)
                equal(packet === undefined ? "" : packet.type, "publish")
                chunk.set(Buffer.from("30fe07000161", "hex"), 0)
                equal(nextPacket(parser), undefined)
                pushChunk(parser, chunk)
                equal(nextPacket(parser), undefined)
                pushChunk(parser, Buffer.from("00", "hex"))
                equal(drain(parser), "oversize a in 1025 qos=0 id=0\n")
            },
        },
    ]
    malformed(list)
    return list
}
