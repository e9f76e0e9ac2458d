// MQTT 5 on the firmware: which version is spoken, where a broker may send the device, what it says
// when it refuses, and two devices with one client id.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as plays from "../../../host/lab/plays"
import type { Conn, Play } from "../../../host/lab/scripted-broker"
import { World } from "../../../host/lab/world"
import { withApp, type AppBench } from "./app"
import { onBench, untilSaid, type Bench, type BenchSpec } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** A case with these settings; the version is the firmware's default unless they say. */
function onMqtt5(
    settings: Record<string, string | number>,
    run: (bench: Bench) => Promise<void>,
    spec: BenchSpec = {},
) {
    return onBench(
        { ...spec, settings: { MQTT_VERSION: "auto", ...settings } },
        run,
    )
}

/** The versions of the CONNECTs so far. */
function versions({ broker }: Bench): (number | undefined)[] {
    return broker.sent("connect").map(r => r.packet.protocolVersion)
}

/** A broker of MQTT 3.1.1 that answers as the standard asks. */
const only311: Play = {
    connect(c, p) {
        if (p.protocolVersion !== 5) return c.broker.welcome(c)
        c.send("20020001")
        c.fin()
    },
}

/** One that only closes on MQTT 5. */
const closesOn5: Play = {
    connect: (c, p) =>
        p.protocolVersion === 5 ? c.fin() : c.broker.welcome(c),
}

describe("which version: MQTT 5 first, MQTT 3.1.1 where the broker has no more", () => {
    test("a broker with MQTT 5: CONNECT says what the device can hold", () =>
        onMqtt5({ MAX_PACKET: 512 }, async bench => {
            await bench.world.until("connected", MINUTE_MS)
            assert.equal(bench.device.last("connected").mqtt, 5)
            const [{ packet }] = bench.broker.sent("connect")
            assert.equal(packet.protocolVersion, 5)
            assert.deepEqual(
                { ...packet.properties },
                { receiveMaximum: 8, maximumPacketSize: 512 },
            )
            await bench.world.run(MINUTE_MS)
            const [subscribe] = bench.broker.sent("subscribe")
            assert.ok(subscribe.packet.subscriptions.length)
            assert.ok(bench.broker.sent("publish").length >= 2)
        }))

    for (const version of [5, 3])
        test(`MQTT_VERSION ${version} keeps to it, whatever the broker says`, () =>
            onMqtt5({ MQTT_VERSION: version }, async bench => {
                bench.broker.next(3, plays.refuse(1))
                await bench.world.until("connected", 3 * HOUR_MS)
                const level = version === 5 ? 5 : 4
                assert.deepEqual(versions(bench), [level, level, level, level])
                for (const { lane } of bench.device.said("retry").slice(1))
                    assert.equal(lane, "slow")
            }))

    test("a broker that speaks only 3.1.1: the next attempt does, and later ones too", () =>
        onMqtt5({}, async bench => {
            const { world, broker, device } = bench
            broker.always(only311)
            await world.until("connected", MINUTE_MS)
            assert.deepEqual(versions(bench), [5, 4])
            assert.equal(device.last("retry").reason, "broker has no MQTT 5")
            assert.equal(device.last("retry").lane, "retry")
            assert.equal(device.last("connected").mqtt, undefined)
            await world.run(MINUTE_MS)
            broker.latest.rst()
            await untilSaid(bench, "lost", 1, 1000)
            await world.until("connected", MINUTE_MS)
            assert.deepEqual(versions(bench), [5, 4, 4])
        }))

    test("one that only closes on 5: after the second time", () =>
        onMqtt5({}, async bench => {
            bench.broker.always(closesOn5)
            await bench.world.until("connected", 5 * MINUTE_MS)
            assert.deepEqual(versions(bench), [5, 5, 4])
        }))

    test("it is remembered only after a session that lasted", () =>
        onMqtt5({}, async bench => {
            const { world, broker } = bench
            // Overloaded: it closes on whatever comes, then recovers.
            broker.next(3, { connect: c => c.fin() })
            await world.until("connected", HOUR_MS)
            assert.deepEqual(versions(bench), [5, 5, 4, 5])
        }))

    test("a broker that refuses both versions is asked in the slow lane", () =>
        onMqtt5({}, async bench => {
            bench.broker.next(4, plays.refuse(1))
            await bench.world.until("connected", 3 * HOUR_MS)
            assert.deepEqual(versions(bench), [5, 4, 5, 4, 5])
            const lanes = bench.device.said("retry").slice(1)
            assert.deepEqual(
                lanes.map(r => r.lane),
                ["retry", "slow", "slow", "slow"],
            )
        }))

    test("a broker that answers CONNECT of 5 with garbage is tried with 3.1.1", () =>
        onMqtt5({}, async bench => {
            bench.broker.always({
                connect: (c, p) =>
                    p.protocolVersion === 5
                        ? c.send("485454502f312e3120")
                        : c.broker.welcome(c),
            })
            await bench.world.until("connected", 3 * HOUR_MS)
            assert.deepEqual(versions(bench), [5, 5, 4])
        }))
})

describe("what the broker says in MQTT 5", () => {
    test("busy, and why: the overload lane, the reason in the line, cut and cleaned", () =>
        onMqtt5({}, async ({ world, broker, device }) => {
            const reasonString = 'back at "noon"\n' + "x".repeat(200)
            broker.next(2, {
                connect(c) {
                    c.connack5({ reasonString }, 0x89)
                    c.fin()
                },
            })
            await world.until("connected", HOUR_MS)
            const { lane, evidence, reason, proven } = device.last("retry")
            assert.equal(lane, "overload")
            assert.equal(evidence, "busy")
            assert.ok(proven)
            assert.match(reason, /^server busy: back/)
            assert.match(reason, /^[ -~]{1,40}$/)
        }))

    for (const [code, lane, reason] of [
        [0x8b, "retry", "server shutting down: bye"],
        [0x89, "overload", "server busy: bye"],
        [0x98, "slow", "administrative action: bye"],
    ] as const)
        test(`DISCONNECT 0x${code.toString(16)} in a session: ${lane}`, () =>
            onMqtt5({}, async bench => {
                const { world, broker, device } = bench
                await world.until("connected", MINUTE_MS)
                await world.run(MINUTE_MS)
                broker.latest.dismiss(code, { reasonString: "bye" })
                await untilSaid(bench, "lost", 1, 1000)
                assert.equal(device.last("lost").lane, lane)
                assert.equal(device.last("lost").reason, reason)
                await world.until("connected", HOUR_MS)
            }))

    test("Server Keep Alive: the broker's counts", () =>
        onMqtt5({ KEEP_ALIVE: 600, TELEMETRY: 3600 }, async bench => {
            const { world, broker } = bench
            broker.always({ connect: c => c.connack5({ serverKeepAlive: 20 }) })
            await world.until("connected", MINUTE_MS)
            await world.run(2 * MINUTE_MS)
            const pings = broker.sent("pingreq")
            assert.ok(pings.length >= 5, `${pings.length} pings`)
            for (let i = 1; i < pings.length; ++i)
                assert.ok(pings[i].atMs - pings[i - 1].atMs <= 20_000)
        }))

    test("Retain Available 0: nothing is sent retained, nor the will after it was refused once", () =>
        onMqtt5({}, async ({ world, broker }) => {
            broker.always(plays.withoutRetained())
            await world.until("connected", MINUTE_MS)
            const wills = broker.sent("connect").map(r => r.packet.will?.retain)
            assert.deepEqual(wills, [true, false])
            await world.run(MINUTE_MS)
            const publishes = broker.sent("publish")
            assert.ok(publishes.length >= 2)
            for (const { packet } of publishes) assert.ok(!packet.retain)
        }))

    test("a packet above what CONNECT allowed: closed, with the reason told", () =>
        onMqtt5({ MAX_PACKET: 128 }, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(MINUTE_MS)
            const conn = broker.latest
            conn.publish("t", "x".repeat(200))
            await untilSaid(bench, "lost", 1, 1000)
            await world.run(100)
            assert.match(device.last("lost").reason, /^MQTT-3.1.2-27/)
            const [bye] = conn.sent("disconnect")
            assert.equal(bye.packet.reasonCode, 0x95)
        }))

    test("AUTH is refused, and the broker told so", () =>
        onMqtt5({}, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            broker.latest.send("f0021800")
            await untilSaid(bench, "lost", 1, 1000)
            await world.run(100)
            assert.match(device.last("lost").reason, /^MQTT-4.12.0-6 AUTH/)
            const [bye] = broker.conns[0].sent("disconnect")
            assert.equal(bye.packet.reasonCode, 0x82)
        }))
})

describe("what the broker takes of QoS 1", () => {
    /** Five messages to a broker that says this in CONNACK, and what became of them. */
    function publishing(
        connack: Parameters<Conn["connack5"]>[0],
        play: Play,
        run: (bench: AppBench) => Promise<void>,
    ) {
        return withApp(
            {
                scene: ["publishAll", ["t"], 5, 0],
                options: { codec: "mqtt5", qos1: { inFlight: 4 } },
            },
            async bench => {
                bench.broker.always({
                    connect: c => c.connack5(connack),
                    ...play,
                })
                await run(bench)
            },
        )
    }

    test("Receive Maximum 1: the next leaves after the PUBACK, and SUBSCRIBE doesn't wait", async () => {
        let out = 0
        let most = 0
        const slow: Play = {
            publish(c, p) {
                most = Math.max(most, ++out)
                c.after(700, () => {
                    --out
                    c.puback(p)
                })
            },
        }
        await publishing({ receiveMaximum: 1 }, slow, async bench => {
            await bench.untilPrint("settled", 5, MINUTE_MS)
            assert.equal(most, 1)
            const sent = bench.broker.sent("publish").map(r => r.atMs)
            assert.equal(sent.length, 5)
            for (let i = 1; i < 5; ++i) assert.ok(sent[i] - sent[i - 1] >= 700)
            for (const p of bench.prints("settled"))
                assert.equal(p.outcome, "acknowledged")
        })
    })

    test("without it four are on their way at once", async () => {
        const slow: Play = {
            publish: (c, p) => c.after(700, () => c.puback(p)),
        }
        await publishing({}, slow, async bench => {
            await bench.untilPrint("settled", 5, MINUTE_MS)
            const sent = bench.broker.sent("publish").map(r => r.atMs)
            assert.ok(sent[3] - sent[0] < 700, `${sent}`)
        })
    })

    test("Maximum QoS 0 and a Maximum Packet Size: set aside, with the reason", async () => {
        for (const [connack, outcome] of [
            [{ maximumQoS: 0 }, "dropped: the broker takes no QoS 1"],
            [{ maximumPacketSize: 5 }, "dropped: larger than the broker takes"],
        ] as const)
            await publishing(connack, {}, async bench => {
                await bench.untilPrint("settled", 5, MINUTE_MS)
                await bench.world.run(MINUTE_MS)
                assert.equal(bench.broker.sent("publish").length, 0)
                for (const p of bench.prints("settled"))
                    assert.equal(p.outcome, outcome)
                assert.equal(bench.broker.conns.length, 1)
            })
    })

    test("PUBACK with a refusal is the end of a message, not of the connection", async () => {
        const full: Play = {
            publish: (c, p) =>
                c.send({
                    cmd: "puback",
                    messageId: p.messageId,
                    reasonCode: 0x97,
                }),
        }
        await publishing({}, full, async bench => {
            await bench.untilPrint("settled", 5, MINUTE_MS)
            await bench.world.run(MINUTE_MS)
            for (const p of bench.prints("settled"))
                assert.equal(p.outcome, "dropped: broker: quota exceeded")
            assert.equal(bench.broker.conns.length, 1)
            assert.equal(bench.broker.sent("publish").length, 5)
        })
    })
})

describe("where a broker may send the device", () => {
    const moved =
        (serverReference: string, code = 0x9d): Play["connect"] =>
        c => {
            c.connack5({ serverReference }, code)
            c.fin()
        }

    test("an allowed server is followed, and kept while it works", () =>
        onMqtt5({ MQTT_SERVERS: "other:1884" }, async bench => {
            const { world, broker, device } = bench
            const other = world.scripted("other:1884")
            broker.always({ connect: moved("other:1884") })
            await world.until("connected", MINUTE_MS)
            assert.equal(device.last("attempt").host, "other")
            assert.equal(device.last("attempt").port, 1884)
            assert.equal(device.last("retry").reason, "sent to other")
            await world.run(MINUTE_MS)
            other.latest.rst()
            await untilSaid(bench, "lost", 1, 1000)
            await world.until("connected", MINUTE_MS)
            assert.equal(device.last("attempt").host, "other")
            other.down()
            await world.until(
                () => device.last("attempt").host === "broker",
                5 * MINUTE_MS,
            )
        }))

    test("'use another server' holds for one session", () =>
        onMqtt5({ MQTT_SERVERS: "other:1884" }, async bench => {
            const { world, broker, device } = bench
            const other = world.scripted("other:1884")
            broker.next(1, { connect: moved("nowhere other", 0x9c) })
            await world.until("connected", MINUTE_MS)
            assert.equal(device.last("attempt").host, "other")
            await world.run(MINUTE_MS)
            other.latest.rst()
            await untilSaid(bench, "lost", 1, 1000)
            await world.until("connected", MINUTE_MS)
            assert.equal(device.last("attempt").host, "broker")
        }))

    for (const reference of [
        "evil:1883",
        "other:1885",
        "mqtt://other:1884",
        "other:1884/x",
        "",
        "x".repeat(900),
    ])
        test(`not to ${reference.slice(0, 20) || "nowhere"}: the slow lane, at home`, () =>
            onMqtt5({ MQTT_SERVERS: "other:1884" }, async bench => {
                const { world, broker, device } = bench
                broker.next(1, { connect: moved(reference) })
                await world.until("connected", HOUR_MS)
                assert.equal(device.said("retry")[1].lane, "slow")
                for (const { host } of device.said("attempt"))
                    assert.equal(host, "broker")
            }))

    test("servers that send it in a circle: three moves, then the slow lane, and never faster", () =>
        onMqtt5({ MQTT_SERVERS: "b:1883, c:1883" }, async bench => {
            const { world, broker, device } = bench
            world.scripted("b:1883").always({ connect: moved("c:1883") })
            world.scripted("c:1883").always({ connect: moved("broker b") })
            broker.always({ connect: moved("b:1883") })
            await world.run(12 * HOUR_MS)
            const lanes = device
                .said("retry")
                .slice(1)
                .map(r => r.lane)
            assert.deepEqual(lanes.slice(0, 8), [
                "retry",
                "retry",
                "retry",
                "slow",
                "retry",
                "retry",
                "retry",
                "slow",
            ])
            // 12 hours of at most an hour each, four attempts around each.
            const count = device.said("attempt").length
            assert.ok(count >= 40 && count <= 100, `${count} attempts`)
            broker.always({})
            await world.until("connected", 2 * HOUR_MS)
        }))

    test("a reference in a CONNACK that accepts, or beside another code, sends it nowhere", () =>
        onMqtt5({ MQTT_SERVERS: "other:1884" }, async bench => {
            const { world, broker, device } = bench
            const serverReference = "other:1884"
            broker
                .next(1, { connect: moved(serverReference, 0x89) })
                .always({ connect: c => c.connack5({ serverReference }) })
            await world.until("connected", HOUR_MS)
            await world.run(HOUR_MS)
            broker.latest.rst()
            await untilSaid(bench, "lost", 1, 1000)
            await world.until("connected", HOUR_MS)
            for (const { host } of device.said("attempt"))
                assert.equal(host, "broker")
        }))

    test("a session that ends with 'server moved' moves too", () =>
        onMqtt5({ MQTT_SERVERS: "other:1884" }, async bench => {
            const { world, broker, device } = bench
            world.scripted("other:1884")
            await world.until("connected", MINUTE_MS)
            await world.run(MINUTE_MS)
            broker.latest.dismiss(0x9d, { serverReference: "other:1884" })
            await untilSaid(bench, "lost", 1, 1000)
            assert.equal(device.last("lost").reason, "sent to other")
            await world.until("connected", MINUTE_MS)
            assert.equal(device.last("attempt").host, "other")
        }))

    test("a list with a mistake in it is refused, by name", () =>
        onMqtt5({ MQTT_SERVERS: "other:99999" }, async ({ world, device }) => {
            await world.until("connected", MINUTE_MS)
            const { key, used } = device.last("config")
            assert.equal(key, "MQTT_SERVERS")
            assert.equal(used, "none")
        }))
})

describe("two devices with one client id", () => {
    test("a load balancer with a limit of an hour isn't one for long: suspected after a bad day, back at once after three sessions", () =>
        onMqtt5({ MQTT_VERSION: 3 }, async ({ world, broker, device }) => {
            broker.next(8, plays.kick()).always(plays.kick(HOUR_MS))
            await world.run(12 * HOUR_MS)
            const lost = device.said("lost")
            assert.equal(lost[7].reason, "same client id twice?")
            for (const { reason } of lost.slice(10))
                assert.equal(reason, "connection closed")
            const retry = device.last("retry")
            assert.equal(retry.lane, "overload")
            assert.ok(retry.delayMs <= 2200, `${retry.delayMs} ms`)
            assert.ok(lost.length >= 16, `${lost.length} sessions in 12 h`)
        }))

    for (const [version, reason] of [
        [5, "session taken over"],
        [3, "same client id twice?"],
    ] as const)
        test(`MQTT ${version}: both slow down, and say so`, async () => {
            const world = new World({ seed: 3 })
            const broker = world.scripted()
            const settings = { MQTT_HOST: "broker", MQTT_VERSION: version }
            const id = "b827eb0123456789"
            const devices = [
                await world.device({ name: "a", id, settings }),
                await world.device({ name: "b", id, settings }),
            ]
            try {
                for (const device of devices) device.powerOn()
                await world.run(12 * HOUR_MS)
                const perHour: number[] = []
                for (let hour = 0; hour < 12; ++hour)
                    perHour.push(
                        broker
                            .sent("connect")
                            .filter(r => Math.floor(r.atMs / HOUR_MS) === hour)
                            .length,
                    )
                assert.ok(perHour[0] <= 40, `${perHour} CONNECTs an hour`)
                for (const count of perHour.slice(3))
                    assert.ok(count <= 6, `${perHour} CONNECTs an hour`)
                for (const device of devices) {
                    const retry = device.last("retry")
                    assert.equal(retry.reason, reason)
                    assert.equal(retry.lane, "slow")
                    assert.ok(retry.delayMs > 20 * MINUTE_MS)
                    assert.deepEqual(device.panics, [])
                }
            } finally {
                await world.close()
            }
        })
})
