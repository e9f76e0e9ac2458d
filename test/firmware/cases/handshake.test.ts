// Field cases H1..H4: what CONNACK says, what happens before it comes, and keep alive on the wire.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as plays from "../../../host/lab/plays"
import { assertGrows, delays, onBench, TURN_MS, untilSaid } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

describe("H1: a return code ten times, then 0", () => {
    const slow: [number, string][] = [
        [1, "unsupported protocol version"],
        [2, "client identifier rejected"],
        [4, "bad user name or password"],
        [5, "not authorised"],
    ]
    for (const [code, reason] of slow)
        test(`${code}: the slow lane, 5 min growing to 1 h, and back at the 11th`, () =>
            onBench({}, async ({ world, broker, device }) => {
                broker.next(10, plays.refuse(code))
                await world.until("connected", DAY_MS)
                assert.equal(broker.conns.length, 11)
                const retries = device.said("retry").slice(1)
                assert.equal(retries.length, 10)
                for (const r of retries) {
                    assert.equal(r.lane, "slow")
                    assert.equal(r.reason, reason)
                    assert.equal(r.proven, false)
                    assert.ok(r.delayMs >= 300_000 && r.delayMs <= HOUR_MS)
                }
                assert.ok(retries[0].delayMs < 660_000)
                assertGrows(
                    retries.map(r => r.delayMs),
                    HOUR_MS,
                )
                assert.equal(device.last("connected").n, 11)
            }))

    test("3: backs off past the cap, because the broker says that it is busy", () =>
        onBench({}, async ({ world, broker, device }) => {
            broker.next(10, plays.refuse(3))
            await world.until("connected", DAY_MS)
            const retries = device.said("retry").slice(1)
            assert.equal(retries.length, 10)
            for (const r of retries) {
                assert.equal(r.lane, "overload")
                assert.equal(r.evidence, "busy")
                assert.equal(r.reason, "server unavailable")
                assert.ok(r.proven)
            }
            assertGrows(delays(device), HOUR_MS)
            assert.ok(retries[9].delayMs > 10 * MINUTE_MS)
        }))

    // From 128 on they are reason codes of MQTT 5, which a broker that has it may send in any version.
    const odd: [number, string][] = [
        [6, "unknown return code"],
        [128, "unspecified error"],
        [255, "unknown reason code"],
    ]
    for (const [code, reason] of odd)
        test(`${code}, which does not exist: the schedule up to the cap, no overload`, () =>
            onBench({ longestMs: MINUTE_MS }, async bench => {
                const { world, broker, device } = bench
                broker.next(10, plays.refuse(code))
                await world.until("connected", HOUR_MS)
                const retries = device.said("retry").slice(1)
                assert.equal(retries.length, 10)
                for (const r of retries) {
                    assert.equal(r.lane, "retry")
                    assert.equal(r.reason, reason)
                    assert.equal(r.proven, false)
                }
                assertGrows(delays(device), MINUTE_MS)
            }))

    test("a refusing broker that keeps the socket open: the device closes it", () =>
        onBench({}, async ({ world, broker, device }) => {
            broker.next(1, { connect: c => c.connack(5) })
            await world.run(MINUTE_MS)
            assert.equal(broker.open.length, 0)
            assert.equal(broker.conns[0].closedBy, "fin")
            assert.equal(device.said("attempt").length, 1)
        }))

    test("5 and 3 in turn: neither schedule forgets where it was", () =>
        onBench({}, async ({ world, broker, device }) => {
            for (let i = 0; i < 6; ++i)
                broker.next(1, plays.refuse(5)).next(1, plays.refuse(3))
            await world.until("connected", DAY_MS)
            const retries = device.said("retry").slice(1)
            const of = (lane: string) =>
                retries.filter(r => r.lane === lane).map(r => r.delayMs)
            assert.equal(of("slow").length, 6)
            assertGrows(of("slow"), HOUR_MS)
            assert.equal(of("overload").length, 6)
            assertGrows(of("overload"), HOUR_MS)
        }))

    test("the right password after an evening of wrong ones: retry by command is not needed", () =>
        onBench(
            { settings: { MQTT_USER: "u", MQTT_PWD: "old" } },
            async ({ world, broker, device }) => {
                broker.always(plays.refuse(4))
                await world.run(8 * HOUR_MS)
                const tries = device.said("attempt").length
                assert.ok(tries >= 9 && tries <= 20, `${tries} attempts`)
                broker.always({})
                await world.until("connected", HOUR_MS + TURN_MS)
                const [connect] = broker.sent("connect")
                assert.equal(connect.packet.username, "u")
                assert.equal(connect.packet.password?.toString(), "old")
            },
        ))
})

describe("H2: what a broker must not say", () => {
    const wrongs: [string, string][] = [
        ["SUBACK before CONNACK", "90 03 00 01 00"],
        ["PINGRESP before CONNACK", "d0 00"],
        ["session present with a refusal", "20 02 01 05"],
        ["a CONNACK of three bytes", "20 03 00 00 00"],
        ["an HTTP answer", "485454502f312e312034303020426164205265717565"],
        ["zeros", "00 00 00 00"],
    ]
    for (const [what, bytes] of wrongs)
        test(`${what}: closed, and in the slow lane, because waiting does not cure it`, () =>
            onBench({}, async bench => {
                const { world, broker, device } = bench
                broker.next(1, { connect: c => c.send(bytes) })
                await world.until("connected", HOUR_MS)
                assert.equal(broker.conns.length, 2)
                assert.equal(broker.conns[0].closedBy, "fin")
                const { lane, reason } = device.said("retry")[1]
                assert.equal(lane, "slow", reason)
                assert.match(reason, /MQTT-/)
            }))

    test("a second CONNACK in a session ends it", () =>
        onBench({}, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(MINUTE_MS)
            broker.latest.connack()
            await untilSaid(bench, "lost", 1, 1000)
            assert.match(device.last("lost").reason, /MQTT-3.2.0-2/)
            await world.until("connected", HOUR_MS)
        }))
})

describe("H3: the app publishes and subscribes before CONNACK, which is late", () => {
    for (const lateMs of [50, 3000, 9000])
        test(`CONNACK ${lateMs} ms late: CONNECT alone, then SUBSCRIBE, then PUBLISH in order`, () =>
            onBench(
                { program: "test/bytecode/early-talker.ts" },
                async ({ world, broker, device }) => {
                    broker.always(plays.lateConnack(lateMs))
                    await world.until("connected", MINUTE_MS)
                    await world.run(5000)
                    const connectMs = broker.packets[0].atMs
                    const wire = broker.packets.map(({ packet: p }) =>
                        p.cmd === "publish"
                            ? `publish ${p.topic} ${p.payload}`
                            : p.cmd === "subscribe"
                              ? `subscribe ${p.subscriptions[0].topic}`
                              : p.cmd,
                    )
                    assert.deepEqual(wire, [
                        "connect",
                        "subscribe early/a",
                        "subscribe early/b",
                        "subscribe early/c",
                        "publish early/1 one",
                        "publish early/2 two",
                        "publish early/3 three",
                        "publish early/4 four",
                    ])
                    for (const { atMs } of broker.packets.slice(1))
                        assert.ok(atMs >= connectMs + lateMs)
                    const outcomes = device.console
                        .map(c => c.text)
                        .filter(t => t.startsWith("> "))
                    assert.equal(outcomes.length, 7)
                    for (const outcome of outcomes)
                        assert.match(outcome, / (queued|granted)$/)
                },
            ))

    test("CONNACK never comes on the first two: all of it goes out on the third, once", () =>
        onBench(
            { program: "test/bytecode/early-talker.ts" },
            async ({ world, broker }) => {
                broker.next(2, plays.mute())
                await world.until("connected", 3 * MINUTE_MS)
                await world.run(5000)
                assert.deepEqual(
                    broker.conns.map(c => c.packets.length),
                    [1, 1, 8],
                )
            },
        ))
})

describe("H4: keep alive as it stands in CONNECT", () => {
    for (const seconds of [0, 1, 255, 256, 300, 65535])
        test(`KEEP_ALIVE ${seconds}`, () =>
            onBench({ settings: { KEEP_ALIVE: seconds } }, async bench => {
                await bench.world.until("connected", MINUTE_MS)
                const [connect] = bench.broker.sent("connect")
                assert.equal(connect.packet.keepalive, seconds)
            }))

    test("KEEP_ALIVE 65536 is refused: a line, and 60", () =>
        onBench({ settings: { KEEP_ALIVE: 65536 } }, async bench => {
            await bench.world.until("connected", MINUTE_MS)
            const line = bench.device.last("config")
            assert.equal(line.key, "KEEP_ALIVE")
            assert.equal(line.value, "65536")
            const [connect] = bench.broker.sent("connect")
            assert.equal(connect.packet.keepalive, 60)
        }))
})
