// Packets out: golden bytes, worked out by hand from the figures of MQTT 3.1.1, and refusals.
import { type Case, equal, throws } from "../cases"
import {
    type ConnectOptions,
    connectPacket,
    begin,
    filterPacket,
    markDup,
    pubackPacket,
    publishPacket,
} from "../../src/mqtt/encode"
import { checkConnect } from "../../src/mqtt/checks"

function basic(): ConnectOptions {
    return { clientId: "d1", keepAliveSeconds: 60, cleanSession: true }
}

function is(packet: Buffer, hex: string, what?: string) {
    equal(packet.toString("hex"), hex, what)
}

/** What a keep alive of `seconds` looks like in CONNECT (its bytes 10 and 11). */
function keepAliveHex(seconds: number): string {
    const options = basic()
    options.keepAliveSeconds = seconds
    return connectPacket(options).toString("hex").slice(20, 24)
}

function checkKeepAlive(seconds: number) {
    const options = basic()
    options.keepAliveSeconds = seconds
    checkConnect(options)
}

/** A string of `2^doublings` times `text`. */
function long(text: string, doublings: number): string {
    let s = text
    for (let i = 0; i < doublings; ++i) s = s + s
    return s
}

export function cases(): Case[] {
    return [
        {
            name: "CONNECT: id, keep alive and clean session",
            run: () =>
                is(connectPacket(basic()), "100e00044d5154540402003c00026431"),
        },
        {
            name: "CONNECT: a kept session clears the clean session flag",
            run: () => {
                const options = basic()
                options.cleanSession = false
                is(connectPacket(options), "100e00044d5154540400003c00026431")
            },
        },
        {
            name: "CONNECT: an empty client id is allowed with a clean session",
            run: () => {
                const options = basic()
                options.clientId = ""
                is(connectPacket(options), "100c00044d5154540402003c0000")
            },
        },
        {
            name: "CONNECT: an empty client id is refused with a kept session",
            run: () => {
                const options = basic()
                options.clientId = ""
                options.cleanSession = false
                throws(
                    () => checkConnect(options),
                    "clientId length in bytes is 0: must be 1..65535",
                )
            },
        },
        {
            name: "CONNECT: username and password, the password as text or bytes",
            run: () => {
                const options = basic()
                options.username = "u"
                options.password = "pw"
                const golden =
                    "101500044d51545404c2003c000264310001" + "7500027077"
                is(connectPacket(options), golden, "text")
                options.password = Buffer.from("7077", "hex")
                is(connectPacket(options), golden, "bytes")
            },
        },
        {
            name: "CONNECT: a username alone, even an empty one, sets its flag only",
            run: () => {
                const options = basic()
                options.username = ""
                is(
                    connectPacket(options),
                    "101000044d5154540482003c000264310000",
                )
            },
        },
        {
            name: "CONNECT: a password without a username is refused",
            run: () => {
                const options = basic()
                options.password = "pw"
                throws(() => checkConnect(options), "needs a username")
            },
        },
        {
            name: "CONNECT: will with QoS 1 and retain, before username and password",
            run: () => {
                const options = basic()
                options.username = "u"
                options.password = "p"
                options.will = {
                    topic: "w/t",
                    payload: "off",
                    qos: 1,
                    retain: true,
                }
                is(
                    connectPacket(options),
                    "101e00044d51545404ee003c000264310003772f7400036f66660001750001" +
                        "70",
                )
            },
        },
        {
            name: "CONNECT: will with QoS 0, no retain and an empty payload",
            run: () => {
                const options = basic()
                options.will = {
                    topic: "w",
                    payload: "",
                    qos: 0,
                    retain: false,
                }
                is(
                    connectPacket(options),
                    "101300044d5154540406003c000264310001770000",
                )
            },
        },
        {
            name: "CONNECT: a will with QoS 3 or an empty topic is refused",
            run: () => {
                const options = basic()
                options.will = {
                    topic: "w",
                    payload: "",
                    qos: 3 as 2,
                    retain: false,
                }
                throws(
                    () => checkConnect(options),
                    "will.qos is 3: must be 0..2",
                )
                options.will = { topic: "", payload: "", qos: 0, retain: false }
                throws(
                    () => checkConnect(options),
                    "will.topic length in bytes is 0: must be 1..65535",
                )
            },
        },
        {
            name: "CONNECT: U+0000 in id, username or will topic is refused",
            run: () => {
                const options = basic()
                options.will = {
                    topic: "w\u0000",
                    payload: "",
                    qos: 0,
                    retain: false,
                }
                throws(() => checkConnect(options), "will.topic holds the")
                options.username = "u\u0000"
                options.will = undefined
                throws(() => checkConnect(options), "username holds the")
                options.clientId = "\u0000"
                throws(() => checkConnect(options), "clientId holds the")
            },
        },
        {
            name: "CONNECT: lengths are bytes of UTF-8, not characters",
            run: () => {
                const options = basic()
                options.clientId = "ü€😀"
                is(
                    connectPacket(options),
                    "101500044d5154540402003c0009c3bce282acf09f9880",
                )
            },
        },
        {
            name: "CONNECT: a body of 128 bytes has a two-byte remaining length",
            run: () => {
                const options = basic()
                options.clientId = long("a", 7).slice(0, 115)
                is(connectPacket(options).slice(0, 4), "107f0004", "127")
                options.clientId = long("a", 7).slice(0, 116)
                is(connectPacket(options).slice(0, 5), "1080010004", "128")
            },
        },
        {
            name: "keep alive 300 goes out as 01 2C, not as 44 (H4)",
            run: () => equal(keepAliveHex(300), "012c"),
        },
        {
            name: "keep alive 256 goes out as 01 00 (H4)",
            run: () => equal(keepAliveHex(256), "0100"),
        },
        {
            name: "keep alive 65535 goes out as FF FF (H4)",
            run: () => equal(keepAliveHex(65535), "ffff"),
        },
        {
            name: "keep alive 0, off, goes out as 00 00 (H4)",
            run: () => equal(keepAliveHex(0), "0000"),
        },
        {
            name: "keep alive 65536, -1, half a second and NaN are refused (H4)",
            run: () => {
                throws(
                    () => checkKeepAlive(65536),
                    "keepAliveSeconds is 65536: must be 0..65535",
                )
                throws(() => checkKeepAlive(-1), "keepAliveSeconds is -1")
                throws(() => checkKeepAlive(1 / 2), "must be 0..65535")
                throws(() => checkKeepAlive(0 / 0), "must be 0..65535")
            },
        },
        {
            name: "PUBLISH: QoS 0 carries no packet identifier",
            run: () =>
                is(
                    publishPacket("a/b", "hi", 0, false, 0, false),
                    "30070003612f626869",
                ),
        },
        {
            name: "PUBLISH: QoS 1 carries its packet identifier between topic and payload",
            run: () =>
                is(
                    publishPacket("a/b", "hi", 1, false, 0x1234, false),
                    "32090003612f6212346869",
                ),
        },
        {
            name: "PUBLISH: retain is bit 0, DUP is bit 3",
            run: () => {
                is(publishPacket("a", "", 0, true, 0, false), "3103000161")
                is(
                    publishPacket("a", "", 1, false, 65535, true),
                    "3a05000161ffff",
                )
                is(publishPacket("a", "", 1, true, 1, true), "3b050001610001")
            },
        },
        {
            name: "PUBLISH: marking a sent packet DUP equals encoding it anew",
            run: () => {
                const packet = publishPacket("a", "x", 1, true, 7, false)
                markDup(packet)
                is(
                    packet,
                    publishPacket("a", "x", 1, true, 7, true).toString("hex"),
                )
            },
        },
        {
            name: "PUBLISH: a Buffer payload goes out untouched, NUL and all",
            run: () =>
                is(
                    publishPacket(
                        "a",
                        Buffer.from("00ff80c3", "hex"),
                        0,
                        false,
                        0,
                        false,
                    ),
                    "300700016100ff80c3",
                ),
        },
        {
            name: "PUBLISH: topic and payload lengths are bytes of UTF-8",
            run: () =>
                is(
                    publishPacket("ü", "€", 0, false, 0, false),
                    "30070002c3bce282ac",
                ),
        },
        {
            name: "PUBLISH: remaining lengths of 127 and 128 take 1 and 2 bytes",
            run: () => {
                const three = publishPacket(
                    "a",
                    Buffer.alloc(124),
                    0,
                    false,
                    0,
                    false,
                )
                equal(three.length, 129)
                is(three.slice(0, 5), "307f000161")
                const four = publishPacket(
                    "a",
                    Buffer.alloc(125),
                    0,
                    false,
                    0,
                    false,
                )
                equal(four.length, 131)
                is(four.slice(0, 6), "308001000161")
            },
        },
        {
            name: "SUBSCRIBE: flags 2, identifier, filter, QoS",
            run: () => {
                is(filterPacket(0x82, 10, "a/#", 1), "8208000a0003612f2301")
                is(filterPacket(0x82, 65535, "a", 0), "8206ffff00016100")
            },
        },
        {
            name: "UNSUBSCRIBE: flags 2, identifier, filter, no QoS",
            run: () =>
                is(filterPacket(0xa2, 0x0102, "b/+", 1), "a20701020003622f2b"),
        },
        {
            name: "PUBACK carries its identifier, high byte first",
            run: () => {
                is(pubackPacket(0x0102), "40020102")
                is(pubackPacket(65535), "4002ffff")
            },
        },
        {
            name: "PINGREQ and DISCONNECT are two bytes",
            run: () => {
                is(begin(0xc0, 0), "c000")
                is(begin(0xe0, 0), "e000")
            },
        },
    ]
}
