// QoS 1 out, on the bytecode: lost acknowledgements, sessions that are kept and that are not, acknowledgements
// withheld and out of order, outbox rules, and a message that the broker closes on.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import type { Conn, Play } from "../../../host/lab/scripted-broker"
import type { PacketOf } from "../../../host/lab/mqtt-wire"
import { heapFloor } from "./bench"
import { withApp, type AppBench, type AppSpec } from "./app"

type Publish = PacketOf<"publish">

/** A client with QoS 1 that publishes `count` messages once it is connected. */
function publishing(
    count: number,
    qos1: Record<string, unknown> = {},
    topics = ["t"],
    more: Record<string, unknown> = {},
): AppSpec {
    return {
        scene: ["publishAll", topics, count, "connected"],
        options: { qos1: { inFlight: 4, ...qos1 }, ...more },
    }
}

/** The QoS 1 messages that reached a connection: `id:payload`, with `!` for DUP. */
function messages(c: Conn): string[] {
    return c.sent("publish").map(({ packet: p }) => {
        assert.equal(p.qos, 1)
        return `${p.messageId}:${p.payload}${p.dup ? "!" : ""}`
    })
}

/** What became of each message, by its number. */
function settled({ prints }: AppBench): string[] {
    return prints("settled").map(p => `${p.settled} ${p.outcome}`)
}

const accepted = (count: number) => new Array<string>(count).fill("accepted")

test("40 acknowledgements in one segment: all are told by one fiber, in order", async () => {
    const held: Publish[] = []
    const options = { entries: 40, inFlight: 40 }
    await withApp(publishing(40, options), async bench => {
        const { world, broker, device, untilPrint } = bench
        broker.always({ publish: (_, p) => void held.push({ ...p }) })
        await world.until(() => held.length === 40, 30_000)
        await world.run(1000)
        let fibers = 0
        const { console } = device
        const push = console.push.bind(console)
        console.push = (...lines) => {
            fibers = Math.max(fibers, device.heap().fibers)
            return push(...lines)
        }
        broker.latest.oneSegment(() => {
            for (const p of held) broker.latest.puback(p)
        })
        await untilPrint("settled", 40, 1000)
        assert.deepEqual(
            settled(bench),
            held.map(p => `${p.payload} acknowledged`),
        )
        // The supervisor, the socket's and the one for the calls.
        assert.ok(fibers <= 3, `${fibers} fibers`)
    })
})

describe("S1: PUBACK swallowed, then RST", () => {
    const swallow: Play = { publish: c => c.after(20, () => c.rst()) }

    test("session present 1: same identifier, same payload, DUP, once", async () => {
        await withApp(publishing(1), async bench => {
            const { world, broker, prints, untilPrint } = bench
            broker.next(1, swallow).always({ connect: c => c.connack(0, true) })
            await untilPrint("settled", 1, 30_000)
            await world.run(60_000)
            assert.equal(broker.sent("connect")[0].packet.clean, false)
            assert.equal(broker.conns.length, 2)
            assert.deepEqual(messages(broker.conns[0]), ["1:0"])
            assert.deepEqual(messages(broker.conns[1]), ["1:0!"])
            assert.deepEqual(
                prints("pub").map(p => p.is),
                accepted(1),
            )
            assert.deepEqual(settled(bench), ["0 acknowledged"])
        })
    })

    test("session present 0: sent again as new", async () => {
        await withApp(publishing(3), async bench => {
            const { world, broker, untilPrint } = bench
            broker.next(1, swallow)
            await untilPrint("settled", 3, 30_000)
            await world.run(60_000)
            const [first, second] = broker.conns.map(messages)
            assert.deepEqual(
                first,
                ["1:0", "2:1", "3:2"].slice(0, first.length),
            )
            assert.deepEqual(
                second.map(m => m.split(":")[1]),
                ["0", "1", "2"],
            )
        })
    })

    test("a take-over by another client with the same identifier in between: session present 0, nothing lost", async () => {
        const spec = publishing(6)
        await withApp(spec, async bench => {
            const { broker, untilPrint } = bench
            broker.next(1, {
                publish(c, p) {
                    if (p.payload.toString() !== "5") return
                    // Thrown out by the other, whose clean session ends ours.
                    c.fin()
                },
            })
            await untilPrint("settled", 6, 60_000)
            const all = broker.conns.flatMap(messages)
            for (let i = 0; i < 6; ++i)
                assert.ok(all.some(m => m.endsWith(`:${i}`)))
        })
    })
})

describe("S2: acknowledgements", () => {
    test("in any order, and one nobody waits for: the window refills, none is sent twice", async () => {
        const held: Publish[] = []
        await withApp(publishing(12), async bench => {
            const { world, broker, untilPrint } = bench
            broker.always({
                publish(c, p) {
                    held.push({ ...p })
                    if (held.length % 4) return
                    assert.ok(held.length <= 12)
                    c.puback({ messageId: 999 })
                    const [one, two, three, four] = held.slice(-4)
                    for (const q of [three, one, four, two]) c.puback(q)
                },
            })
            await untilPrint("settled", 12, 30_000)
            await world.run(1000)
            const all = messages(broker.latest)
            assert.deepEqual(
                all.map(m => m.split(":")[1]),
                all.map((_, i) => `${i}`),
            )
            assert.equal(all.length, 12)
            assert.equal(new Set(held.map(p => p.messageId)).size, 12)
        })
    })

    test("withheld: four in flight and no more; after 30 s the connection counts as stalled, and they go again", async () => {
        await withApp(publishing(6), async bench => {
            const { world, broker, device, untilPrint } = bench
            broker
                .next(1, { publish() {} })
                .always({ connect: c => c.connack(0, true) })
            await world.until(() => broker.sent("publish").length === 4, 10_000)
            await world.run(29_000)
            assert.equal(messages(broker.conns[0]).length, 4)
            await untilPrint("settled", 6, 60_000)
            const lost = device.last("lost")
            assert.equal(lost.reason, "no PUBACK in time")
            assert.equal(lost.evidence, "stalled")
            assert.deepEqual(messages(broker.latest), [
                "1:0!",
                "2:1!",
                "3:2!",
                "4:3!",
                "5:4",
                "6:5",
            ])
        })
    })
})

test("a broker that answers pings but never a PUBLISH is asked less and less often", async () => {
    await withApp(publishing(1), async ({ world, broker, device }) => {
        broker.always({ publish() {} })
        await world.run(4 * 3_600_000)
        // 31 s and 2, 4 ... 3,273 s; without backing off 400.
        const { length } = broker.conns
        assert.ok(length >= 10 && length <= 16, `${length} connections`)
        assert.ok(device.last("retry").proven)
    })
})

test("S9: ten messages a second for five minutes, broker down: bounded, drops counted, drained in order and paced", async () => {
    const spec: AppSpec = {
        scene: ["publishAll", ["t"], 3000, undefined, 100],
        options: { qos1: {} },
    }
    await withApp(spec, async bench => {
        const { world, broker, device, prints, untilPrint } = bench
        broker.down()
        await world.run(300_000)
        const { bytes } = await heapFloor(bench)
        assert.ok(bytes < 20_000, `${bytes} B of heap`)
        const dropped = prints("settled").length
        assert.ok(dropped > 2800, `${dropped} dropped`)
        for (const p of prints("settled"))
            assert.equal(p.outcome, "dropped: outbox full")
        assert.equal(device.last("drop").reason, "outbox full")
        assert.equal(device.last("drop").topic, "t")
        broker.up()
        await untilPrint("settled", 3000, 120_000)
        const sent = broker.sent("publish")
        const numbers = sent.map(r => Number(r.packet.payload))
        assert.deepEqual(
            numbers.slice(0, 16),
            numbers.slice(0, 16).map((_, i) => numbers[0] + i),
        )
        for (let i = 1; i < 16; ++i)
            assert.ok(sent[i].atMs - sent[i - 1].atMs >= 19, "paced")
        const acknowledged = prints("settled").filter(
            p => p.outcome === "acknowledged",
        )
        assert.equal(acknowledged.length, numbers.length)
    })
})

describe("outbox rules", () => {
    const down = (qos1: object, topics?: string[]): AppSpec => ({
        scene: ["publishAll", topics ?? ["t"], 6],
        options: { qos1: { entries: 3, ...qos1 } },
    })

    test("newest: what was accepted stays, the rest is refused", async () => {
        await withApp(down({ overflow: "newest" }), async bench => {
            const { broker, prints, untilPrint } = bench
            broker.down()
            await untilPrint("pub", 6, 5000)
            broker.up()
            await untilPrint("settled", 3, 60_000)
            assert.deepEqual(
                prints("pub").map(p => p.is),
                [...accepted(3), ...Array(3).fill("refused: outbox full")],
            )
            assert.deepEqual(settled(bench), [
                "0 acknowledged",
                "1 acknowledged",
                "2 acknowledged",
            ])
        })
    })

    test("latest per topic: one of each topic is left, the newest", async () => {
        const spec = down({ overflow: "latest" }, ["a", "b"])
        await withApp(spec, async bench => {
            const { broker, device, untilPrint } = bench
            broker.down()
            await untilPrint("pub", 6, 5000)
            broker.up()
            await untilPrint("settled", 6, 60_000)
            assert.deepEqual(settled(bench), [
                "0 dropped: replaced by a newer one",
                "1 dropped: replaced by a newer one",
                "2 dropped: replaced by a newer one",
                "3 dropped: replaced by a newer one",
                "4 acknowledged",
                "5 acknowledged",
            ])
            assert.equal(device.last("drop").reason, "replaced by a newer one")
        })
    })
})

test("poison: the broker closes on one message each time: set aside after 3 tries and reported, the others arrive", async () => {
    const closesOn2: Play = {
        connect: c => c.connack(0, true),
        publish(c, p) {
            if (p.payload.toString() === "2") c.fin()
            else c.after(5, () => c.puback(p))
        },
    }
    await withApp(publishing(6), async bench => {
        const { world, broker, device, untilPrint } = bench
        broker.always(closesOn2)
        await untilPrint("settled", 6, 300_000)
        await world.run(60_000)
        const tries = broker.conns
            .flatMap(messages)
            .filter(m => /:2!?$/.test(m))
        assert.deepEqual(tries, ["3:2", "3:2!", "3:2!"])
        const outcomes = settled(bench).sort()
        assert.deepEqual(
            outcomes,
            [0, 1, 2, 3, 4, 5].map(i =>
                i === 2
                    ? "2 dropped: broker closed on it 3 times"
                    : `${i} acknowledged`,
            ),
        )
        const drop = device.last("drop")
        assert.equal(drop.what, "out")
        assert.equal(drop.topic, "t")
        assert.equal(drop.reason, "broker closed on it 3 times")
        assert.equal(device.last("lost").upMs > 10_000, true)
        assert.ok(broker.latest.isOpen)
    })
})

test("a broker that ends every session young, on each message or without one, for half an hour: nothing is set aside", async () => {
    await withApp(publishing(4), async bench => {
        const { broker, untilPrint, world } = bench
        broker.always({
            connect: c => c.connack().after(9000, () => c.fin()),
            publish: c => c.after(10, () => c.fin()),
        })
        await world.run(1_800_000)
        assert.equal(settled(bench).length, 0)
        broker.always({})
        await untilPrint("settled", 4, 3_600_000)
        assert.deepEqual(
            settled(bench),
            [0, 1, 2, 3].map(i => `${i} acknowledged`),
        )
    })
})

test("what can't be sent is refused in words; a program without qos1 says what it lacks", async () => {
    const bad = ["badQos"] as [string]
    const withQos1 = { scene: bad, options: { qos1: {} } }
    const object = "refused: options is no object"
    await withApp(withQos1, async ({ prints, untilPrint }) => {
        await untilPrint("bad", 8, 5000)
        const qos =
            "refused: qos must be 0 or 1; for once and only once use 1 and a key"
        assert.deepEqual(
            prints("bad").map(p => p.bad),
            [
                qos,
                qos,
                qos,
                "refused: settled is no function",
                object,
                object,
                object,
                "refused: 5009 bytes, at most 4096",
            ],
        )
    })
    await withApp({ scene: bad }, async ({ prints, untilPrint }) => {
        await untilPrint("bad", 8, 5000)
        const lacks = "refused: qos 1 needs the option qos1, and 2 is not there"
        assert.deepEqual(
            prints("bad").map(p => p.bad),
            [...Array(4).fill(lacks), object, object, object, lacks],
        )
    })
})
