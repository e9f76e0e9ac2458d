// Field cases of sessions, on the bytecode: identifiers, refused and missing SUBACKs, messages
// too large to take, will and birth, filters, and an outbox that overflows for half an hour.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { split } from "../../../host/lab/faults"
import { filterMatches, type PacketOf } from "../../../host/lab/mqtt-wire"
import * as plays from "../../../host/lab/plays"
import type { Conn, Play } from "../../../host/lab/scripted-broker"
import { World } from "../../../host/lab/world"
import { LabClient } from "../../host/lab-client"
import { withApp } from "./app"
import { onBench } from "./bench"

const GRANTED = "granted"
const REFUSED = "refused: by the broker"
const UNANSWERED = "unanswered: asked again at the next connection"
const QUEUED = "queued"

type Subscribe = PacketOf<"subscribe">

/** Keeps SUBSCRIBEs until `count` are there, then lets the test answer them. */
function together(
    count: number,
    answer: (c: Conn, asked: Subscribe[]) => void,
): Play {
    const asked: Subscribe[] = []
    return {
        subscribe(c, p) {
            asked.push({ ...p })
            if (asked.length === count) answer(c, asked)
        },
    }
}

const filterOf = (p: Subscribe) => p.subscriptions[0].topic
const idsOf = (asked: { packet: { messageId?: number } }[]) =>
    asked.map(r => r.packet.messageId)

describe("S2: packet identifiers", () => {
    test("three SUBSCRIBE in flight, answered in the order 3, 1, 2: each caller gets its own answer", async () => {
        await withApp(
            { scene: ["listen", ["one", "two", "three"]] },
            async ({ broker, untilPrint, prints }) => {
                broker.always(
                    together(3, (c, [one, two, three]) => {
                        c.suback(three)
                        c.suback(one, [0x80])
                        c.suback(two)
                    }),
                )
                await untilPrint("sub", 3, 10_000)
                assert.deepEqual(
                    prints("sub").map(p => [p.sub, p.is]),
                    [
                        ["one", REFUSED],
                        ["two", GRANTED],
                        ["three", GRANTED],
                    ],
                )
                const ids = idsOf(broker.sent("subscribe"))
                assert.equal(new Set(ids).size, 3)
                assert.ok(!ids.includes(0))
            },
        )
    })

    test("after 65535 comes 1, not 0", async () => {
        await withApp(
            { scene: ["listenFrom", [[65533, ["a", "b", "c", "d"]]]] },
            async ({ broker, untilPrint, prints }) => {
                await untilPrint("sub", 4, 10_000)
                assert.deepEqual(
                    idsOf(broker.sent("subscribe")),
                    [65534, 65535, 1, 2],
                )
                assert.ok(prints("sub").every(p => p.is === GRANTED))
            },
        )
    })

    test("an identifier still waiting for its SUBACK is skipped when the numbers come round", async () => {
        const steps = [
            [0, ["old"]],
            [65534, ["x", "y"]],
        ]
        await withApp(
            { scene: ["listenFrom", steps] },
            async ({ broker, untilPrint }) => {
                broker.always(
                    together(3, (c, asked) => {
                        for (const p of asked.reverse()) c.suback(p)
                    }),
                )
                await untilPrint("sub", 3, 10_000)
                assert.deepEqual(idsOf(broker.sent("subscribe")), [1, 65535, 2])
            },
        )
    })

    test("SUBACKs that nobody asked for, twice the same, and an UNSUBACK for a SUBSCRIBE change nothing", async () => {
        await withApp(
            { scene: ["listen", ["one", "two"]] },
            async ({ world, broker, device, untilPrint, prints }) => {
                broker.always(
                    together(2, (c, [one, two]) => {
                        c.suback({ ...one, messageId: 777 })
                        c.unsuback(two)
                        c.suback(one)
                        c.suback(one, [0x80])
                        c.after(2000, () => c.suback(two))
                    }),
                )
                await untilPrint("sub", 1, 5000)
                await world.run(1000)
                assert.equal(prints("sub").length, 1)
                await untilPrint("sub", 2, 5000)
                assert.ok(prints("sub").every(p => p.is === GRANTED))
                assert.equal(device.said("lost").length, 0)
            },
        )
    })

    test("four answers in one segment, cut anywhere", async () => {
        for (const pieces of [
            undefined,
            "bytes" as const,
            [1, 2, 3, 4],
            [7, 6],
        ])
            await withApp(
                { scene: ["listen", ["a", "b", "c", "d"]] },
                async ({ broker, untilPrint, prints }) => {
                    broker.always(
                        together(4, (c, asked) => {
                            const answer = () =>
                                asked.reverse().forEach((p, i) => {
                                    c.suback(p, [i === 1 ? 0x80 : 0])
                                })
                            c.oneSegment(answer, { pieces })
                        }),
                    )
                    await untilPrint("sub", 4, 5000)
                    const refused = prints("sub").filter(p => p.is === REFUSED)
                    assert.deepEqual(
                        refused.map(p => p.sub),
                        ["c"],
                    )
                },
            )
    })
})

describe("S3: SUBACK refuses, is missing, or comes after the first message", () => {
    test("SUBACK 0x80: the caller is told, the link stays, and it is forgotten", async () => {
        await withApp(
            { scene: ["listen", ["secret", "open"]] },
            async ({ world, broker, device, untilPrint, prints }) => {
                broker.next(1, {
                    subscribe: (c, p) =>
                        c.suback(p, [filterOf(p) === "secret" ? 0x80 : 0]),
                })
                await untilPrint("sub", 2, 5000)
                assert.deepEqual(
                    prints("sub").map(p => [p.sub, p.is]),
                    [
                        ["secret", REFUSED],
                        ["open", GRANTED],
                    ],
                )
                await world.run(60_000)
                assert.equal(device.said("lost").length, 0)
                broker.latest.publish("secret", "not for you")
                broker.latest.publish("open", "for you")
                await world.run(100)
                assert.deepEqual(
                    prints("got").map(p => p.text),
                    ["for you"],
                )
                broker.latest.fin()
                await world.run(1000)
                await world.until("connected", 10_000)
                await world.run(100)
                assert.deepEqual(
                    broker.latest
                        .sent("subscribe")
                        .map(r => filterOf(r.packet)),
                    ["open"],
                )
                broker.latest.publish("secret", "still not for you")
                await world.run(100)
                assert.equal(prints("got").length, 1)
            },
        )
    })

    test("no SUBACK: after 10 s the caller is told, the link stays, messages are delivered", async () => {
        await withApp(
            { scene: ["listen", ["a"]] },
            async ({ world, broker, device, untilPrint, prints }) => {
                broker.always(plays.noSubacks())
                const { is, atMs } = await untilPrint("sub", 1, 20_000)
                assert.equal(is, UNANSWERED)
                const waited = atMs - broker.sent("subscribe")[0].atMs
                assert.ok(waited >= 9990 && waited < 10_100, `${waited} ms`)
                broker.latest.publish("a", "anyway")
                // Too late; nobody waits for it any more.
                broker.latest.suback(broker.sent("subscribe")[0].packet)
                await world.run(120_000)
                assert.equal(prints("got").length, 1)
                assert.equal(prints("sub").length, 1)
                assert.equal(device.said("lost").length, 0)
                assert.equal(broker.sent("subscribe").length, 1)
                broker.always({})
                broker.latest.fin()
                await world.run(1000)
                await world.until("connected", 10_000)
                await world.run(100)
                assert.equal(broker.latest.sent("subscribe").length, 1)
            },
        )
    })

    test("no connection: the caller is told at once that it is queued, and the first connection asks", async () => {
        await withApp(
            { scene: ["listenNow", ["a", "b"]] },
            async ({ world, broker, device, untilPrint, prints }) => {
                await untilPrint("sub", 2, 2000)
                assert.ok(prints("sub").every(p => p.is === QUEUED))
                assert.equal(device.said("attempt").length, 0)
                await world.until("connected", 10_000)
                await world.run(100)
                assert.deepEqual(
                    broker.sent("subscribe").map(r => filterOf(r.packet)),
                    ["a", "b"],
                )
                broker.latest.publish("b", "hello")
                assert.equal((await untilPrint("got", 1, 100)).got, "b")
            },
        )
    })

    for (const { qos, code } of [
        { qos: 0, code: 0 },
        { qos: 1, code: 1 },
        { qos: 1, code: 0x80 },
    ] as const)
        test(`PUBLISH qos ${qos} before SUBACK ${code}: delivered and acknowledged`, async () => {
            await withApp(
                { scene: ["listen", ["a"], 1] },
                async ({ world, broker, device, untilPrint, prints }) => {
                    broker.always({
                        subscribe(c, p) {
                            c.publish("a", "early", { qos, id: 9 })
                            c.suback(p, [code])
                        },
                    })
                    const { is } = await untilPrint("sub", 1, 5000)
                    assert.equal(is, code === 0x80 ? REFUSED : GRANTED)
                    await untilPrint("got", 1, 100)
                    await world.run(100)
                    assert.equal(prints("got")[0].text, "early")
                    assert.deepEqual(
                        idsOf(broker.sent("puback")),
                        qos ? [9] : [],
                    )
                    assert.equal(device.said("lost").length, 0)
                },
            )
        })

    test("the connection ends before SUBACK: queued, and each next connection asks until one answers", async () => {
        await withApp(
            { scene: ["listen", ["a", "b"]] },
            async ({ world, broker, untilPrint, prints }) => {
                broker.next(3, {
                    subscribe: c => void c.after(10, () => c.fin()),
                })
                await untilPrint("sub", 2, 60_000)
                assert.ok(prints("sub").every(p => p.is === QUEUED))
                await world.until(() => broker.conns.length === 4, 60_000)
                await world.until("connected", 10_000)
                await world.run(1000)
                for (const c of broker.conns)
                    assert.deepEqual(
                        c.sent("subscribe").map(r => filterOf(r.packet)),
                        ["a", "b"],
                    )
                broker.latest.publish("b", "at last")
                await untilPrint("got", 1, 100)
            },
        )
    })

    test("SUBACK with two codes for one filter ends the connection for five minutes, the next one serves", async () => {
        await withApp(
            { scene: ["listen", ["a"]] },
            async ({ world, broker, device, untilPrint, prints }) => {
                broker.next(1, { subscribe: (c, p) => c.suback(p, [0, 0]) })
                await untilPrint("sub", 1, 10_000)
                assert.equal(prints("sub")[0].is, QUEUED)
                const lost = device.last("lost")
                assert.match(lost.reason, /MQTT-3\.8\.4-5 SUBACK/)
                assert.equal(lost.lane, "slow")
                assert.ok(device.last("retry").delayMs >= 300_000)
                await world.run(1000)
                await world.until("connected", 400_000)
                await world.run(1000)
                broker.latest.publish("a", "again")
                await untilPrint("got", 1, 100)
                assert.equal(broker.conns.length, 2)
            },
        )
    })
})

describe("S5: messages larger than the packet limit", () => {
    /** Sends big ones and then a small one; checks all that has to hold. */
    async function skipsAndGoesOn(
        big: number[],
        qos: 0 | 1,
        more: { maxPacketBytes?: number; pieces?: boolean } = {},
    ) {
        const { maxPacketBytes = 1024, pieces = false } = more
        const tooMuch = (bytes: number) => bytes + 9 > maxPacketBytes
        await withApp(
            {
                scene: ["listen", ["big/#", "small"], 1],
                options: { maxPacketBytes },
            },
            async ({ world, broker, device, untilPrint, prints }) => {
                if (pieces) world.net.fault("*", split(700))
                await untilPrint("sub", 2, 10_000)
                const c = broker.latest
                let id = 100
                for (const bytes of big)
                    c.publish("big/x", Buffer.alloc(bytes, 7), {
                        qos,
                        id: id++,
                        retain: true,
                    })
                c.publish("small", "still here", { qos, id })
                await untilPrint("got", 1, 60_000)
                assert.deepEqual(
                    prints("got").map(p => p.text),
                    ["still here"],
                )
                // One line in ten seconds at most.
                const [drop, ...others] = device.said("drop")
                assert.equal(others.length, 0)
                assert.deepEqual([drop.what, drop.topic], ["in", "big/x"])
                assert.equal(drop.reason, "larger than packet limit")
                // The size said is the packet's: the payload and its head.
                const head = drop.bytes! - big.filter(tooMuch)[0]
                assert.ok(head >= 9 && head <= 13, `${drop.bytes} B`)
                await world.run(60_000)
                assert.deepEqual(
                    idsOf(broker.sent("puback")),
                    qos ? [...big, 0].map((_, i) => 100 + i) : [],
                )
                // None was left out of the count.
                c.publish("big/x", Buffer.alloc(5000, 7))
                await world.run(1000)
                assert.equal(
                    device.last("drop").dropped,
                    big.filter(tooMuch).length + 1,
                )
                assert.equal(device.said("lost").length, 0)
                assert.equal(broker.conns.length, 1)
            },
        )
    }

    for (const qos of [0, 1] as const) {
        test(`20 kB, then a small one, QoS ${qos}`, () =>
            skipsAndGoesOn([20_000], qos))
        test(`200 kB, then a small one, QoS ${qos}`, () =>
            skipsAndGoesOn([200_000], qos))
        test(`just too many bytes, three times, QoS ${qos}`, () =>
            skipsAndGoesOn([1024, 1025, 1026], qos))
    }
    test("200 kB in odd pieces, with a limit of 128 B, QoS 1", () =>
        skipsAndGoesOn([200_000, 200], 1, {
            maxPacketBytes: 128,
            pieces: true,
        }))

    test("a packet of exactly the limit is delivered whole", async () => {
        await withApp(
            { scene: ["listen", ["big/#"]] },
            async ({ broker, device, untilPrint }) => {
                await untilPrint("sub", 1, 10_000)
                // 3 bytes of fixed header, 2 + 5 of topic.
                const payload = Buffer.alloc(1024 - 10, 7)
                broker.latest.publish("big/x", payload)
                assert.equal((await untilPrint("got", 1, 1000)).bytes, 1014)
                assert.equal(device.said("drop").length, 0)
            },
        )
    })

    test("a retained 200 kB message meets the device at every SUBSCRIBE", async () => {
        await withApp(
            { scene: ["listen", ["big/#", "small"]] },
            async ({ world, broker, device, untilPrint }) => {
                broker.always({
                    subscribe(c, p) {
                        c.suback(p)
                        const bytes = filterOf(p) === "small" ? 10 : 200_000
                        const topic = filterOf(p).replace("#", "x")
                        const payload = Buffer.alloc(bytes, 7)
                        c.publish(topic, payload, { retain: true })
                    },
                })
                for (let i = 1; i <= 3; ++i) {
                    await untilPrint("got", i, 60_000)
                    assert.equal(device.said("drop").length, i)
                    await world.run(15_000)
                    broker.latest.fin()
                }
                await world.run(100)
                assert.equal(device.said("lost").length, 3)
            },
        )
    })
})

describe("S7: will, birth and goodbye of the firmware", () => {
    // In MQTT 5 a broker says who took over; mqtt5.test.ts has that.
    const settings = { MQTT_HOST: "broker", MQTT_VERSION: 3, TELEMETRY: 3600 }
    const watch = (world: World, topic: string) => {
        const seen: string[] = []
        const broker = world.broker()
        const spread = broker.spread.bind(broker)
        broker.spread = message => {
            if (message.topic === topic)
                seen.push(`${message.payload} ${message.retain}`)
            spread(message)
        }
        return { broker, seen }
    }

    async function onStrictBroker(
        run: (
            world: World,
            t: ReturnType<typeof watch> & {
                device: Awaited<ReturnType<World["device"]>>
                retained(): string | undefined
                connected(): Promise<number>
            },
        ) => Promise<void>,
    ) {
        const world = new World()
        const device = await world.device({ settings })
        const topic = `herdless/${device.id}/status`
        const watched = watch(world, topic)
        device.powerOn()
        try {
            await world.until("connected", 10_000)
            await world.run(1000)
            await run(world, {
                ...watched,
                device,
                retained: () =>
                    watched.broker.retained.get(topic)?.payload.toString(),
                connected: () => world.until("connected", 60_000),
            })
            assert.deepEqual(watched.broker.violations, [])
        } catch (e) {
            ;(e as Error).message += `\n${world.tail(60)}`
            throw e
        } finally {
            await world.close()
        }
    }

    test("birth is the first packet after every CONNACK and is retained as the will is", async () => {
        await onBench({ settings }, async ({ world, broker }) => {
            for (let i = 1; i <= 4; ++i) {
                await world.until("connected", 60_000)
                await world.run(12_000)
                if (i % 2) broker.latest.fin()
                else broker.latest.rst()
                await world.run(100)
            }
            assert.equal(broker.conns.length, 4)
            for (const c of broker.conns) {
                const [connect, birth] = c.packets.map(r => r.packet)
                assert.ok(connect.cmd === "connect" && birth.cmd === "publish")
                const will = connect.will!
                assert.equal(birth.topic, will.topic)
                assert.equal(birth.retain, true)
                assert.equal(will.retain, true)
                assert.equal(birth.payload.toString(), "online")
                assert.equal(will.payload.toString(), "offline")
            }
        })
    })

    test("power cut and back at once: the old connection's will comes before the new birth", async () => {
        await onStrictBroker(async (world, t) => {
            t.device.powerCycle()
            await t.connected()
            await world.run(1000)
            assert.deepEqual(t.seen, [
                "online true",
                "offline true",
                "online true",
            ])
            await world.run(300_000)
            assert.equal(t.retained(), "online")
        })
    })

    test("taken over by another client with the same id: online again as soon as it is back", async () => {
        await onStrictBroker(async (world, t) => {
            const thief = new LabClient(world, "thief")
            await world.run(10)
            thief.connect({ clientId: `herdless-${t.device.id}` })
            await world.run(100)
            assert.equal(t.retained(), "offline")
            assert.equal(t.device.isConnected, false)
            await t.connected()
            await world.run(1000)
            assert.equal(t.retained(), "online")
            assert.deepEqual(t.seen, [
                "online true",
                "offline true",
                "online true",
            ])
        })
    })

    test("two devices with one id in turns: after every CONNACK the topic says online", async () => {
        await onStrictBroker(async (world, t) => {
            const twin = await world.device({ settings, id: t.device.id })
            twin.powerOn()
            await world.run(120_000)
            assert.ok(t.broker.connects >= 6)
            // Never two offline in a row: each will is followed by the other's birth.
            for (let i = 0; i < t.seen.length; ++i)
                assert.equal(
                    t.seen[i],
                    i % 2 ? "offline true" : "online true",
                    `${t.seen}`,
                )
            twin.powerOff()
        })
    })

    test("a crash of the program: offline while it is away, online when it is back", async () => {
        await onStrictBroker(async (world, t) => {
            t.device.crash()
            await world.run(2000)
            assert.equal(t.device.panics.length, 1)
            await t.connected()
            await world.run(1000)
            assert.deepEqual(t.seen, [
                "online true",
                "offline true",
                "online true",
            ])
            assert.equal(t.retained(), "online")
        })
    })

    test("a power cut for good: offline once the keep alive is over", async () => {
        await onStrictBroker(async (world, t) => {
            t.device.powerOff()
            await world.run(100_000)
            assert.equal(t.retained(), "offline")
            assert.equal(t.broker.wills.length, 1)
        })
    })

    test("a clean stop publishes offline, then DISCONNECT, and no will is sent", async () => {
        await onStrictBroker(async (world, t) => {
            await world.run(61_000)
            t.broker.publish(`herdless/${t.device.id}/cmd/reboot`, "")
            await world.run(500)
            assert.equal(t.retained(), "offline")
            await t.connected()
            await world.run(1000)
            assert.equal(t.device.reboots.length, 1)
            assert.equal(t.broker.wills.length, 0)
            assert.deepEqual(t.seen, [
                "online true",
                "offline true",
                "online true",
            ])
        })
    })

    test("stop() of a program: farewell and DISCONNECT are the last packets", async () => {
        const said = (payload: string) => ({
            topic: "s",
            payload,
            retain: true,
        })
        await withApp(
            {
                scene: ["stopIn", "connected", 5000],
                options: {
                    will: { ...said("offline"), qos: 0 },
                    birth: said("online"),
                    farewell: said("offline"),
                },
            },
            async ({ broker, untilPrint }) => {
                await untilPrint("back", 1, 30_000)
                const [first] = broker.conns
                assert.deepEqual(
                    first.packets.map(r => r.packet.cmd),
                    ["connect", "publish", "publish", "disconnect"],
                )
                const [birth, farewell] = first.sent("publish")
                assert.equal(birth.packet.payload.toString(), "online")
                assert.equal(farewell.packet.payload.toString(), "offline")
                assert.equal(farewell.packet.retain, true)
            },
        )
    })

    test("a broker that lost its retained messages gets online anew", async () => {
        await onStrictBroker(async (world, t) => {
            t.broker.crash({ keep: false })
            await world.run(20_000)
            t.broker.start()
            await t.connected()
            await world.run(100)
            assert.equal(t.retained(), "online")
        })
    })
})

describe("S8: filters on the wire", () => {
    const TABLE: [filter: string, topic: string, matches: boolean][] = [
        ["s/#", "s", true],
        ["s/#", "s/t/u", true],
        ["s/#", "st", false],
        ["foo/#", "foobar", false],
        ["foo/#", "foo/", true],
        ["a/+/c", "a/x/c", true],
        ["a/+/c", "a//c", true],
        ["a/+/c", "a/x/y/c", false],
        ["a/b", "a/bc", false],
        ["a/b", "a/b", true],
        ["a/b", "A/b", false],
        ["+", "/x", false],
        ["+", "x", true],
        ["/+", "/x", true],
        ["#", "$SYS/x", false],
        ["+/x", "$SYS/x", false],
        ["$SYS/#", "$SYS/x", true],
        ["#", "/x", true],
        ["a/+", "a/", true],
        ["a/+", "a", false],
        ["+/+", "/x", true],
        ["stra\u00dfe/+", "stra\u00dfe/\u{1f3e0}", true],
    ]
    const filters = [...new Set(TABLE.map(row => row[0]))]
    const topics = [...new Set(TABLE.map(row => row[1]))]

    test(`${filters.length} filters, ${topics.length} topics: delivered where they match and nowhere else`, async () => {
        for (const [filter, topic, matches] of TABLE)
            assert.equal(filterMatches(filter, topic), matches, filter)
        // A few at a time: a setting holds 200 bytes. The broker sends everything to all.
        for (let at = 0; at < filters.length; at += 5) {
            const some = filters.slice(at, at + 5)
            await withApp(
                { scene: ["listen", some] },
                async ({ world, broker, untilPrint, prints }) => {
                    await untilPrint("sub", some.length, 10_000)
                    assert.deepEqual(
                        broker.sent("subscribe").map(r => filterOf(r.packet)),
                        some,
                    )
                    for (const topic of topics) {
                        const before = prints("got").length
                        broker.latest.publish(topic, "x")
                        await world.run(50)
                        const got = prints("got").slice(before)
                        assert.deepEqual(
                            got.map(p => some[p.index]).sort(),
                            some.filter(f => filterMatches(f, topic)).sort(),
                            topic,
                        )
                    }
                },
            )
        }
    })
})

describe("S9: ten messages a second while the broker is down", () => {
    const MINUTE = 60_000
    const EVERY_MS = 100

    /** The numbers of the flood's messages as the broker got them. */
    const numbers = (sent: { packet: { payload: string | Buffer } }[]) =>
        sent.map(r => parseInt(r.packet.payload.toString(), 10))

    async function halfAnHour(bytes: number, entries: number) {
        await withApp(
            { scene: ["flood", EVERY_MS, 30 * MINUTE, bytes] },
            async ({ world, broker, device, untilPrint }) => {
                broker.down()
                await world.run(5 * MINUTE)
                const early = await floor(world, device)
                await world.run(20 * MINUTE)
                const late = await floor(world, device)
                assert.ok(
                    late.bytes <= early.bytes + 256,
                    `heap ${early.bytes} B, later ${late.bytes} B`,
                )
                assert.equal(late.fibers, early.fibers)
                const { tally, counters } = await untilPrint(
                    "tally",
                    1,
                    5 * MINUTE,
                )
                const total = tally.queued as number
                assert.ok(total > 17_500 && total <= 18_000, `${total}`)
                assert.equal(counters.dropped, total - entries)

                const drops = device.said("drop")
                assert.ok(drops.length > 150, `${drops.length} drop lines`)
                for (let i = 1; i < drops.length; ++i) {
                    assert.ok(drops[i].atMs - drops[i - 1].atMs >= 10_000)
                    assert.ok(drops[i].dropped > drops[i - 1].dropped)
                }
                assert.ok(drops.at(-1)!.dropped > total - entries - 120)
                assert.equal(drops[0].what, "outbox")
                assert.equal(drops[0].reason, "outbox full")

                broker.up()
                await world.until("connected", 3 * MINUTE)
                await world.run(10_000)
                const sent = broker.sent("publish")
                const newest = Array.from(
                    { length: entries },
                    (_, i) => total - entries + i,
                )
                assert.deepEqual(numbers(sent), newest)
                for (let i = 1; i < sent.length; ++i)
                    assert.ok(sent[i].atMs - sent[i - 1].atMs >= 20)
            },
        )
    }

    /** The least of the heap that a collection would leave within two minutes, seen out of step with the messages. */
    async function floor(
        world: World,
        device: { heap(): { fibers: number }; liveHeapBytes(): number },
    ) {
        let bytes = Infinity
        let fibers = Infinity
        for (let i = 0; i < 120; ++i) {
            await world.run(993 + (i % 14))
            bytes = Math.min(bytes, device.liveHeapBytes())
            fibers = Math.min(fibers, device.heap().fibers)
        }
        return { bytes, fibers }
    }

    test("30 minutes: 16 newest kept, the rest counted, drop lines 10 s apart, drained in order 20 ms apart", () =>
        halfAnHour(0, 16))

    test("30 minutes of 500 B: bounded in bytes, 7 newest kept", () =>
        halfAnHour(500, 7))

    test("the broker comes back in the middle: order is kept, the backlog drains, and nothing more is dropped", async () => {
        await withApp(
            { scene: ["flood", EVERY_MS, 4 * MINUTE] },
            async ({ world, broker, device, untilPrint }) => {
                broker.down()
                await world.run(MINUTE)
                broker.up()
                await world.until("connected", 2 * MINUTE)
                const dropped = device.last("drop").dropped
                const { tally, counters } = await untilPrint(
                    "tally",
                    1,
                    5 * MINUTE,
                )
                assert.ok(counters.dropped <= dropped + 100)
                const got = numbers(broker.sent("publish"))
                for (let i = 1; i < got.length; ++i)
                    assert.equal(got[i], got[i - 1] + 1)
                const total = tally.queued + tally.sent
                assert.equal(got.at(-1), total - 1)
                assert.equal(counters.dropped, total - got.length)
                // Up to date again: later ones are sent at once.
                assert.ok(tally.sent > 500, `${tally.sent} sent`)
                const gaps = broker
                    .sent("publish")
                    .map((r, i, all) => (i ? r.atMs - all[i - 1].atMs : 20))
                assert.ok(Math.min(...gaps.slice(0, 15)) >= 20, `${gaps}`)
            },
        )
    })

    test("a hundred messages a second: after an outage they are sent at once again, and no more are dropped", async () => {
        await withApp(
            { scene: ["flood", 10, MINUTE] },
            async ({ world, broker, device, untilPrint }) => {
                await world.until("connected", 10_000)
                await world.run(15_000)
                broker.down()
                await world.run(3000)
                broker.up()
                await world.until("connected", MINUTE)
                const downMs = device.last("connected").atMs
                const lost = device.last("lost").atMs
                const { tally, counters } = await untilPrint(
                    "tally",
                    1,
                    2 * MINUTE,
                )
                // What came while it was down, at the start too, and while the backlog left.
                const away = downMs - lost + device.said("connected")[0].atMs
                assert.ok(counters.dropped <= away / 10 + 50)
                assert.ok(tally.queued <= away / 10 + 100)
                const got = numbers(broker.sent("publish"))
                for (let i = 1; i < got.length; ++i)
                    assert.ok(got[i] > got[i - 1], `${got[i]} late`)
            },
        )
    })

    test("link gone instead of the broker: the same bounds", async () => {
        await withApp(
            { scene: ["flood", EVERY_MS, 2 * MINUTE] },
            async ({ world, broker, device, untilPrint }) => {
                const cut = world.net.fault("*", () => ({
                    isUp: () => false,
                }))
                const { tally, counters } = await untilPrint(
                    "tally",
                    1,
                    3 * MINUTE,
                )
                assert.equal(counters.dropped, tally.queued - 16)
                cut.off()
                await world.until("connected", 3 * MINUTE)
                await world.run(2000)
                assert.equal(broker.sent("publish").length, 16)
                assert.ok(device.said("drop").length <= 13)
            },
        )
    })
})
