// MQTT 5 packets out: golden bytes, worked out by hand from the figures of the standard, what can't be
// said, and what the codec keeps of a CONNACK.
import { nextPacket, pushChunk } from "../../src/mqtt/framing"
import { type Case, equal, throws } from "../cases"
import { wordsOf } from "../../src/core/reason"
import {
    filterPacket,
    publishPacket,
    pubackPacket,
    type ConnectOptions,
} from "../../src/mqtt/encode"
import {
    Codec5,
    connectPacket5,
    disconnectPacket5,
    wire5,
    type Mqtt5Options,
} from "../../src/mqtt/v5-codec"
import {
    encodeProperties,
    Owner,
    type Property,
} from "../../src/mqtt/v5-properties"

function basic(): ConnectOptions {
    return { clientId: "d1", keepAliveSeconds: 60, cleanSession: true }
}

function withWill(): ConnectOptions {
    const options = basic()
    options.will = { topic: "w", payload: "off", qos: 1, retain: true }
    return options
}

function is(packet: Buffer, hex: string) {
    equal(packet.toString("hex"), hex)
}

function one(id: number, value: number | string | Buffer): Property[] {
    return [{ id, value }]
}

/** A property that is refused, by its message. */
function refused(
    list: Case[],
    owner: Owner,
    properties: Property[],
    message: string,
) {
    list.push({
        name: `v5: property ${properties[0].id} refused: ${message}`,
        run: () => throws(() => encodeProperties(owner, properties), message),
    })
}

/** A codec that has heard a CONNACK, or nothing. */
function codec(hex?: string, options?: Mqtt5Options): Codec5 {
    const made = new Codec5(
        1024,
        { host: "h", port: 1883, tls: false },
        options ? options : {},
    )
    if (hex !== undefined) {
        pushChunk(made.parser, Buffer.from(hex, "hex"))
        const packet = nextPacket(made.parser)
        if (packet !== undefined) made.heard(packet, 0)
        equal(nextPacket(made.parser), undefined)
    }
    return made
}

const RETAINED = "t=x, retained"

function packets(): Case[] {
    return [
        {
            name: "v5 CONNECT: level 5 and an empty section",
            run: () =>
                is(
                    connectPacket5(basic(), [], []),
                    "100f00044d5154540502003c0000026431",
                ),
        },
        {
            name: "v5 CONNECT: properties after keep alive, the will's before its topic",
            run: () =>
                is(
                    connectPacket5(withWill(), one(33, 8), one(24, 5)),
                    "102000044d515454052e003c" +
                        "03210008" +
                        "00026431" +
                        "051800000005" +
                        "000177" +
                        "00036f6666",
                ),
        },
        {
            name: "v5 PUBLISH: the section follows the topic with QoS 0, the identifier with QoS 1",
            run: () => {
                const zero = publishPacket("t", "pq", 0, true, 0, false)
                is(wire5(zero), "310600017400" + "7071")
                const again = publishPacket("t", "pq", 1, false, 10, true)
                is(wire5(again), "3a080001" + "74000a00" + "7071")
                const expiry = encodeProperties(Owner.publish, one(2, 60))
                is(wire5(zero, expiry), "310b000174" + "05020000003c" + "7071")
            },
        },
        {
            name: "v5 PUBLISH: remaining length and section length may need more bytes",
            run: () => {
                // 127 bytes of body become 128
                const body = Buffer.alloc(124)
                const packet = publishPacket("t", body, 0, false, 0, false)
                const wired = wire5(packet)
                equal(wired.length, 131)
                is(wired.slice(0, 7), "30800100017400")
                const long = Buffer.alloc(130)
                const section = encodeProperties(Owner.publish, one(9, long))
                is(
                    wire5(packet, section).slice(0, 11),
                    "3086020001748501090082",
                )
            },
        },
        {
            name: "v5 SUBSCRIBE and UNSUBSCRIBE: a section after the identifier",
            run: () => {
                const rows = filterPacket(0x82, 1, "a", 1)
                is(wire5(rows), "8207000100" + "00016101")
                is(
                    wire5(
                        rows,
                        encodeProperties(Owner.subscribe, one(11, 200)),
                    ),
                    "820a0001" + "030bc801" + "00016101",
                )
                is(wire5(filterPacket(0xa2, 2, "a", 0)), "a206000200000161")
            },
        },
        {
            name: "v5 PUBACK stays as it is; DISCONNECT may give a reason",
            run: () => {
                is(wire5(pubackPacket(7)), "40020007")
                is(disconnectPacket5(0x95), "e00195")
            },
        },
        {
            name: "v5: numbers of 32 bits go out whole",
            run: () => {
                const goes = (value: number, hex: string) =>
                    is(encodeProperties(Owner.connect, one(17, value)), hex)
                goes(0, "1100000000")
                goes(65536, "1100010000")
                goes(0x7fffffff, "117fffffff")
                goes(0x7fffffff + 1, "1180000000")
                goes(0x7fffffff + 0x7fffffff + 1, "11ffffffff")
            },
        },
    ]
}

function refusals(list: Case[]) {
    refused(
        list,
        Owner.publish,
        one(17, 1),
        "property 17 is not for packet type 3",
    )
    refused(
        list,
        Owner.connect,
        one(2, 1),
        "property 2 is not for packet type 1",
    )
    refused(
        list,
        Owner.will,
        one(11, 1),
        "property 11 is not for packet type 0",
    )
    refused(
        list,
        Owner.publish,
        one(4, 1),
        "property 4 is not for packet type 3",
    )
    refused(list, Owner.publish, one(1, 2), "property 1 is 2: must be 0..1")
    refused(
        list,
        Owner.connect,
        one(33, 0),
        "property 33 is 0: must be 1..65535",
    )
    refused(
        list,
        Owner.connect,
        one(33, 65536),
        "property 33 is 65536: must be 1..65535",
    )
    refused(
        list,
        Owner.connect,
        one(39, 0),
        "property 39 is 0: must be 1..2^32-1",
    )
    refused(
        list,
        Owner.publish,
        one(2, -1),
        "property 2 is -1: must be 0..2^32-1",
    )
    refused(
        list,
        Owner.subscribe,
        one(11, 268435456),
        "property 11 is 268435456: must be 1..268435455",
    )
    refused(list, Owner.publish, one(8, 5), "property 8 is 5: must be text")
    refused(
        list,
        Owner.publish,
        one(3, "a\u0000"),
        "property 3 holds the character U+0000",
    )
    refused(
        list,
        Owner.publish,
        [{ id: 38, value: "v" }],
        "property 38 has the name undefined",
    )
    refused(
        list,
        Owner.publish,
        [{ id: 38, value: "v", name: "\u0000" }],
        "name of property 38 holds",
    )
    refused(
        list,
        Owner.publish,
        [
            { id: 2, value: 1 },
            { id: 2, value: 1 },
        ],
        "property 2 is there twice",
    )
}

function limits(): Case[] {
    return [
        {
            name: "v5 codec: CONNECT says how much it can hold",
            run: () =>
                // Receive Maximum 8, Maximum Packet Size 1,024
                is(
                    codec().connect(basic()),
                    "101700044d5154540502003c" +
                        "08210008" +
                        "2700000400" +
                        "00026431",
                ),
        },
        {
            name: "v5 codec: a kept session asks for an hour, or what it is told",
            run: () => {
                const options = basic()
                options.cleanSession = false
                const hex = codec().connect(options).toString("hex")
                equal(hex.indexOf("110000" + "0e10") > 0, true)
                const day = codec(undefined, { sessionExpirySeconds: 86400 })
                const told = day.connect(options).toString("hex")
                equal(told.indexOf("1100015180") > 0, true)
            },
        },
        {
            name: "v5 codec: what a CONNACK leaves out is unlimited, what it says counts",
            run: () => {
                const none = codec("2003000000")
                equal(none.receiveMaximum, 65535)
                equal(none.maximumQos, 2)
                equal(none.maximumPacketBytes, undefined)
                const some = codec(
                    "200d00000a" + "210001" + "2400" + "2700000080",
                )
                equal(some.receiveMaximum, 1)
                equal(some.maximumQos, 0)
                equal(some.maximumPacketBytes, 128)
                some.connect(basic())
                equal(some.receiveMaximum, 65535, "at the next CONNECT")
                equal(some.maximumPacketBytes, undefined, "at the next CONNECT")
            },
        },
        {
            name: "v5 codec: a broker without retained messages gets none",
            run: () => {
                const packet = publishPacket("t", "x", 0, true, 0, false)
                const keeps = codec("2003000000")
                const not = codec("2005000002" + "2500")
                equal(keeps.wire(packet)[0], 0x31, RETAINED)
                equal(not.wire(packet)[0], 0x30, RETAINED)
                equal(packet[0], 0x31, "as it waits")
            },
        },
        {
            name: "v5 codec: a broker that refuses the retained will gets a plain one, at once and from then on; a second refusal is slow",
            run: () => {
                const flags = (made: Codec5) => made.connect(withWill())[9]
                const made = codec()
                equal(flags(made), 0x2e, "retained")
                pushChunk(made.parser, Buffer.from("2003009a00", "hex"))
                const packet = nextPacket(made.parser)
                if (packet !== undefined) made.heard(packet, 0)
                equal(made.verdict(0x9a, false).lane, "retry")
                equal(flags(made), 0x0e, "plain")
                equal(flags(made), 0x0e, "for the rest of the run")
                if (packet !== undefined) made.heard(packet, 0)
                equal(made.verdict(0x9a, false).lane, "slow")
            },
        },
        {
            name: "v5 codec: the client id that the broker gave is used from then on",
            run: () => {
                const options = basic()
                options.clientId = ""
                const made = codec("2008000005" + "12000261" + "62")
                const hex = made.connect(options).toString("hex")
                equal(hex.slice(hex.length - 8), "00026162")
                const own = made.connect(basic()).toString("hex")
                equal(own.slice(own.length - 8), "00026431", "with one of ours")
            },
        },
        {
            name: "v5 codec: the broker's keep alive comes out with CONNACK",
            run: () => {
                const made = codec()
                pushChunk(made.parser, Buffer.from("2006000003130005", "hex"))
                const packet = nextPacket(made.parser)
                if (packet === undefined || packet.type !== "connack")
                    throw new Error("no CONNACK")
                made.heard(packet, 0)
                equal(packet.keepAliveSeconds, 5)
            },
        },
        {
            name: "v5 codec: a refusal has the broker's words in its reason, cut and cleaned",
            run: () => {
                const made = codec("2009008906" + "1f0003" + "617079")
                const busy = made.verdict(0x89, false)
                equal(busy.lane, "overload")
                equal(busy.reason, "server busy: apy")
                made.connect(basic())
                equal(made.verdict(0x89, false).reason, "server busy")
                let long = ""
                for (let i = 0; i < 60; ++i) long += "0a"
                pushChunk(
                    made.parser,
                    Buffer.from("e041" + "8b3f" + "1f003c" + long, "hex"),
                )
                const packet = nextPacket(made.parser)
                if (packet !== undefined) made.heard(packet, 0)
                const { reason } = made.verdict(0x8b, true)
                equal(reason, "server shutting down: ??????????????????")
                equal(wordsOf(reason).length, 40)
            },
        },
        {
            name: "v5 codec: a broker of 3.1.1 refuses in its own codes",
            run: () => {
                const made = codec("20020005")
                equal(wordsOf(made.verdict(5, false).reason), "not authorised")
                equal(made.verdict(0x87, false).reason, "not authorised")
            },
        },
    ]
}

export function cases(): Case[] {
    const list = packets()
    refusals(list)
    for (const row of limits()) list.push(row)
    return list
}
