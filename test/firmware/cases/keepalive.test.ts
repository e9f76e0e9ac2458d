// Field cases K1 and K2: half-open connections, told by the peer's silence alone.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as faults from "../../../host/lab/faults"
import type { Fault } from "../../../host/lab/link"
import * as plays from "../../../host/lab/plays"
import { onBench, TURN_MS, untilSaid } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const PING_MS = 10_000

/** A PINGREQ leaves an eighth of keep alive early, and may stay unanswered for PING_WAIT. */
const noticeMs = (keepAliveS: number, pingMs = PING_MS) =>
    keepAliveS * 875 + pingMs

describe("K1: the broker falls silent and TCP stays open", () => {
    for (const [keepAlive, ping] of [
        [60, 10_000],
        [10, 10_000],
        [10, 2000],
        [300, 10_000],
        [1, 500],
    ])
        test(`after CONNACK, KEEP_ALIVE ${keepAlive}, PING_WAIT ${ping}: closed within the two`, () =>
            onBench(
                {
                    settings: {
                        KEEP_ALIVE: keepAlive,
                        PING_WAIT: ping,
                        TELEMETRY: 86400,
                    },
                },
                async bench => {
                    const { world, broker, device } = bench
                    broker.next(1, plays.deafAfterConnack())
                    await untilSaid(bench, "lost", 1, HOUR_MS)
                    const lost = device.last("lost")
                    const wantMs = noticeMs(keepAlive, ping)
                    assert.ok(
                        lost.upMs >= wantMs && lost.upMs <= wantMs + 200,
                        `noticed after ${lost.upMs} ms, expected ${wantMs}`,
                    )
                    assert.ok(lost.upMs <= keepAlive * 1000 + ping)
                    assert.equal(lost.reason, "no PINGRESP in time")
                    assert.equal(broker.conns[0].sent("pingreq").length, 1)
                    assert.equal(device.last("retry").atMs, lost.atMs)
                    await world.until("connected", MINUTE_MS)
                    assert.equal(broker.conns.length, 2)
                },
            ))

    // What swallows the device's FIN leaves the broker with a dead socket.
    const cuts: [string, () => Fault, number][] = [
        ["both ways", faults.swallow, 2],
        ["from the broker", faults.swallowToDevice, 1],
        ["to the broker", faults.swallowToBroker, 2],
        ["both ways, and new connections too", faults.partition, 1],
    ]
    for (const [what, cut, maxOpen] of cuts)
        test(`after an hour, ${what}: closed within the two, back once it is healed`, () =>
            onBench({ maxOpen }, async bench => {
                const { world, device } = bench
                await world.until("connected", MINUTE_MS)
                await world.run(HOUR_MS)
                assert.equal(device.said("lost").length, 0)
                const fromMs = world.nowMs
                const fault = world.net.fault("*", cut())
                await untilSaid(bench, "lost", 1, 2 * MINUTE_MS)
                const tookMs = device.last("lost").atMs - fromMs
                assert.ok(tookMs <= 60_000 + PING_MS, `${tookMs} ms`)
                assert.equal(device.last("lost").flap, false)
                const { delayMs, n } = device.last("retry")
                assert.equal(n, 0)
                assert.ok(delayMs >= 1000 && delayMs <= 2200)
                fault.off()
                await world.until("connected", MINUTE_MS)
            }))

    test("PINGREQ is the only one that is not answered: the same", () =>
        onBench({}, async bench => {
            bench.broker.next(1, plays.noPings())
            await untilSaid(bench, "lost", 1, 2 * MINUTE_MS)
            assert.ok(bench.device.last("lost").upMs <= 70_000)
        }))

    test("a message in PINGRESP's place, then silence: PING_WAIT longer than KEEP_ALIVE changes nothing", () =>
        onBench({ settings: { KEEP_ALIVE: 2 } }, async bench => {
            const { world, broker, device } = bench
            let lastMs = 0
            broker.next(1, {
                pingreq(c) {
                    if (lastMs) return
                    lastMs = world.nowMs
                    c.publish(`herdless/${device.id}/cmd/ping`, "x")
                },
            })
            await untilSaid(bench, "lost", 1, MINUTE_MS)
            const tookMs = device.last("lost").atMs - lastMs
            assert.ok(tookMs <= noticeMs(2) + 200, `${tookMs} ms`)
        }))

    test("KEEP_ALIVE 0: never pinged, never given up", () =>
        onBench({ settings: { KEEP_ALIVE: 0 } }, async bench => {
            const { world, broker, device } = bench
            broker.always(plays.deafAfterConnack())
            await world.until("connected", MINUTE_MS)
            await world.run(24 * HOUR_MS)
            assert.ok(device.isConnected)
            assert.equal(broker.sent("pingreq").length, 0)
        }))

    test("a PINGRESP at the last moment counts, one a second later does not", () =>
        onBench({}, async bench => {
            const { world, broker, device } = bench
            broker.next(1, {
                pingreq: c => c.after(PING_MS - 50, () => c.pingresp()),
            })
            await world.until("connected", MINUTE_MS)
            await world.run(10 * MINUTE_MS)
            assert.equal(device.said("lost").length, 0)
            broker.next(1, {
                pingreq: c => c.after(PING_MS + 1000, () => c.pingresp()),
            })
            broker.latest.rst()
            await untilSaid(bench, "lost", 2, 5 * MINUTE_MS)
            assert.equal(device.last("lost").reason, "no PINGRESP in time")
        }))

    test("other packets are signs of life while PINGREQ stays unanswered", () =>
        onBench({}, async bench => {
            const { world, broker, device } = bench
            const topic = `herdless/${device.id}/cmd/ping`
            const chat = (c = broker.latest) => {
                c.publish(topic, "x")
                c.after(9000, () => chat(c))
            }
            broker.always(plays.noPings())
            await world.until("connected", MINUTE_MS)
            await world.run(500)
            chat()
            await world.run(HOUR_MS)
            assert.equal(device.said("lost").length, 0)
        }))

    test("a healthy idle hour: a PINGREQ every 52.5 s and nothing else", () =>
        onBench({ settings: { TELEMETRY: 86400 } }, async bench => {
            const { world, broker } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(1000)
            const before = broker.packets.length
            await world.run(HOUR_MS)
            const after = broker.packets.slice(before)
            assert.ok(after.every(r => r.packet.cmd === "pingreq"))
            for (let i = 1; i < after.length; ++i) {
                const gapMs = after[i].atMs - after[i - 1].atMs
                assert.ok(gapMs >= 52_500 && gapMs <= 52_500 + 2 * TURN_MS)
            }
            assert.ok(after.length >= 67, `${after.length} PINGREQs`)
        }))
})

describe("K2: as K1 while the app publishes QoS 0 all the time", () => {
    for (const telemetry of [20, 1, 50])
        test(`a message every ${telemetry} s: its own traffic hides nothing`, () =>
            onBench({ settings: { TELEMETRY: telemetry } }, async bench => {
                const { world, broker, device } = bench
                broker.next(1, plays.deafAfterConnack())
                await untilSaid(bench, "lost", 1, 2 * MINUTE_MS)
                const lost = device.last("lost")
                assert.ok(lost.upMs <= 70_000, `${lost.upMs} ms`)
                assert.equal(lost.reason, "no PINGRESP in time")
                assert.ok(
                    broker.conns[0].sent("publish").length >= 60 / telemetry,
                )
                await world.until("connected", MINUTE_MS)
            }))

    test("half-open after an hour of traffic: the same bound", () =>
        onBench({ settings: { TELEMETRY: 20 } }, async bench => {
            const { world, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(HOUR_MS)
            const fromMs = world.nowMs
            world.net.fault("*", faults.swallow())
            await untilSaid(bench, "lost", 1, 2 * MINUTE_MS)
            assert.ok(device.last("lost").atMs - fromMs <= 70_000)
        }))
})
