// Field cases B1..B7, R1 and R2: when the device tries again, and when it must not.
import assert from "node:assert/strict"
import { after, before, describe, test } from "node:test"
import * as faults from "../../../host/lab/faults"
import type { Fault } from "../../../host/lab/link"
import * as plays from "../../../host/lab/plays"
import type { Play } from "../../../host/lab/scripted-broker"
import type { LabDevice } from "../../../host/lab/device"
import { World } from "../../../host/lab/world"
import {
    assertGrows,
    assertSilence,
    delays,
    heapFloor,
    onBench,
    TURN_MS,
    untilSaid,
} from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

describe("B1: CONNACK 0 and then out", () => {
    const kicks: [string, Play, number][] = [
        ["FIN at once, 50 times", plays.kick(0), 50],
        ["RST at once", plays.kick(0, "rst"), 20],
        ["FIN after 5 s", plays.kick(5000), 20],
        ["FIN just before the session counts as stable", plays.kick(9900), 20],
        // Once overload is proven even this is too short.
        ["FIN at once, later after a minute", plays.kick(MINUTE_MS), 20],
    ]
    for (const [what, play, times] of kicks)
        test(`${what}: gaps grow all the same, after six as if another device had the same client id`, () =>
            onBench({ settings: { TELEMETRY: 3600 } }, async bench => {
                const { broker, device } = bench
                broker.next(2, plays.kick(0)).always(play)
                await untilSaid(bench, "retry", times + 1, 4 * DAY_MS)
                const retries = device.said("retry").slice(0, times + 1)
                assertGrows(
                    retries.slice(0, 6).map(r => r.delayMs),
                    HOUR_MS,
                )
                const slow = retries.slice(6).map(r => r.delayMs)
                assertGrows(slow, HOUR_MS)
                assert.ok(slow[0] >= 5 * MINUTE_MS, `${slow}`)
                assert.ok(slow[slow.length - 1] > 0.45 * HOUR_MS, `${slow}`)
                for (const r of retries.slice(6)) {
                    assert.equal(r.lane, "slow")
                    assert.match(r.reason, /same client id twice/)
                }
                assert.deepEqual(
                    retries.map(r => r.n),
                    Array.from({ length: times + 1 }, (_, i) => i),
                )
                for (const l of device.said("lost").slice(0, times))
                    assert.ok(l.flap)
            }))

    test("after 20 of them, a session of two hours is a fresh start", () =>
        onBench({}, async bench => {
            const { world, broker, device } = bench
            broker.next(20, plays.kick(0))
            await untilSaid(bench, "connected", 21, 4 * DAY_MS)
            await world.run(2 * HOUR_MS)
            broker.latest.rst()
            await untilSaid(bench, "lost", 21, MINUTE_MS)
            assert.equal(device.last("lost").flap, false)
            assert.equal(device.last("retry").n, 0)
            assert.ok(device.last("retry").delayMs <= 2200)
        }))

    test("a session just older than STABLE is a loss, no flap, every time", () =>
        onBench({ longestMs: 2200 }, async bench => {
            const { broker, device } = bench
            broker.always(plays.kick(10_100))
            await untilSaid(bench, "lost", 50, HOUR_MS)
            for (const l of device.said("lost")) assert.equal(l.flap, false)
        }))
})

// 200 devices: herd.test.ts.
describe("B3: a fleet does not come back in step", () => {
    const DEVICES = 60
    /** The first wait: from 1 s to 2.2 s. */
    const WINDOW_MS = 1200

    /** Fewer than three tenths in any tenth of the window; in step it would be all. */
    function assertSpread(timesMs: number[]) {
        const at = timesMs.sort((a, b) => a - b)
        assert.equal(at.length, DEVICES)
        const widthMs = at[DEVICES - 1] - at[0]
        assert.ok(widthMs > WINDOW_MS / 2, `within ${widthMs} ms`)
        for (let from = 0, to = 0; to < DEVICES; ++to) {
            while (at[to] - at[from] > WINDOW_MS / 10) ++from
            const share = (to - from + 1) / DEVICES
            assert.ok(share < 0.3, `${share} around ${at[to]} ms`)
        }
    }

    const world = new World({ seed: 3 })
    const broker = world.scripted()
    const { devices } = world
    before(async () => {
        for (let i = 0; i < DEVICES; ++i)
            await world.device({ settings: { MQTT_HOST: "broker" } })
    })
    after(() => world.close())

    /** Does something to all at once; all are back within 15 s, spread. */
    async function together(run: () => void) {
        const seen = broker.conns.length
        const panics = devices.flatMap(d => d.panics).length
        run()
        await world.run(15_000)
        const back = broker.conns.slice(seen)
        assertSpread(back.map(c => c.openedMs))
        assert.ok(devices.every(d => d.isConnected))
        return devices.flatMap(d => d.panics).length - panics
    }

    test("powered on together", async () => {
        const died = await together(() => devices.forEach(d => d.powerOn()))
        assert.equal(died, 0)
    })

    test("the broker restarts: lost together", async () => {
        const died = await together(() => {
            broker.down()
            broker.up()
        })
        assert.equal(died, 0)
    })

    test("crashed together by one message", async () => {
        const died = await together(() => devices.forEach(d => d.crash()))
        assert.equal(died, DEVICES)
        // What a crash leaves open is closed before the next is opened.
        for (const n of Object.values(broker.maxOpenOf)) assert.equal(n, 1)
    })

    test("power lost and back together, when all were connected", async () => {
        const died = await together(() =>
            devices.forEach(d => d.powerCycle(3000)),
        )
        assert.equal(died, 0)
    })
})

describe("B4: a thousand failures on the device", () => {
    test("the defaults: each wait an integer in 1 ms .. 60 s, from its own half of the cap on", () =>
        onBench({ longestMs: MINUTE_MS }, async bench => {
            const { world, broker, device } = bench
            broker.down()
            await untilSaid(bench, "retry", 1001, 2 * DAY_MS)
            const waits = delays(device)
            assertGrows(waits, MINUTE_MS)
            const late = waits.slice(10)
            assert.ok(Math.min(...late) > MINUTE_MS / 2.2)
            assert.ok(new Set(late).size > 500, "jitter survives the cap")
            broker.up()
            await world.until("connected", MINUTE_MS + TURN_MS)
        }))

    const policies: [Record<string, string | number>, number][] = [
        [{ JITTER: "equal" }, MINUTE_MS],
        [{ JITTER: "full" }, MINUTE_MS],
        [{ JITTER: "decorrelated" }, MINUTE_MS],
        [{ JITTER: "none" }, MINUTE_MS],
        [{ RETRY_MIN: 60_000, RETRY_CAP: 60_000 }, MINUTE_MS],
        [{ RETRY_MIN: 7, RETRY_CAP: 150 }, 150],
        [{ SPREAD: 20_000 }, 22_000],
    ]
    for (const [settings, boundMs] of policies)
        test(`${JSON.stringify(settings)}: each of 200 waits within its bound`, () =>
            onBench({ settings, longestMs: boundMs }, async bench => {
                bench.broker.down()
                await untilSaid(bench, "retry", 200, DAY_MS)
            }))

    test("return code 3, 300 times: each wait within its bound", () =>
        onBench(
            { settings: { OVERLOAD_CAP: 60_000 }, longestMs: 60_000 },
            async bench => {
                bench.broker.always(plays.refuse(3))
                await untilSaid(bench, "retry", 301, DAY_MS)
                assertGrows(delays(bench.device), MINUTE_MS)
            },
        ))

    test("MAX_ATTEMPTS 5: five failures, a halt line, and no SYN afterwards", () =>
        onBench({ settings: { MAX_ATTEMPTS: 5 } }, async bench => {
            const { world, broker, device } = bench
            broker.down()
            await untilSaid(bench, "halt", 1, HOUR_MS)
            broker.up()
            await world.run(DAY_MS)
            assert.equal(device.said("attempt").length, 5)
            assert.match(device.last("halt").reason, /gave up/)
            assert.equal(broker.conns.length, 0)
        }))
})

describe("B6: error, close, deadline and start() in the same instant", () => {
    const program = "test/bytecode/stopper.ts"
    const settings = { STOP_AT: "none", POKE_MS: 40 }

    /** Every attempt failed once and led to one wait; no attempt overlapped another. */
    async function once(
        play: Play,
        fault: Fault | undefined,
        attempts: number,
        assertWaits = (device: LabDevice) =>
            assertGrows(delays(device), HOUR_MS),
    ) {
        await onBench({ program, settings }, async bench => {
            const { world, broker, device } = bench
            broker.next(attempts, play)
            const active = fault && world.net.fault("*", fault)
            await untilSaid(bench, "attempt", attempts, HOUR_MS)
            await untilSaid(bench, "retry", attempts + 1, HOUR_MS)
            active?.off()
            broker.always({})
            await world.until("connected", HOUR_MS)
            await world.run(15_000)
            assert.ok(device.isConnected)
            assert.equal(device.said("attempt").length, attempts + 1)
            assert.equal(device.said("retry").length, attempts + 1)
            assert.equal(device.network.dials, attempts + 1)
            assertWaits(device)
        })
    }

    test("CONNACK's deadline, RST and CLOSE at once", () =>
        once(
            {
                connect: c => {
                    const { world } = c.broker
                    const limitMs = c.index === 1 ? 10_000 : 30_000
                    // Sent 2 ms before the deadline, there at the deadline; and after it.
                    world.after(limitMs - 4, () => c.isOpen && c.rst())
                },
            },
            link => ({
                opened: () => {
                    for (const ms of [9998, 9999, 10_000, 29_998, 30_000])
                        link.after(ms, () => {
                            link.events.error("read ECONNRESET")
                            link.events.close()
                        })
                },
            }),
            4,
        ))

    test("the dial's deadline, error and close at once", () =>
        once(
            {},
            link => ({
                dial: () => {
                    for (const ms of [29_998, 30_000, 30_001])
                        link.after(ms, () => {
                            link.events.error("connect ETIMEDOUT")
                            link.events.close()
                        })
                    return "silence"
                },
            }),
            4,
            assertSilence,
        ))

    test("a kicked session whose CLOSE comes twice", () =>
        once(
            plays.kick(0, "rst"),
            link => ({
                opened: () => {
                    for (const ms of [4, 5, 6, 7])
                        link.after(ms, () => link.events.close())
                },
            }),
            4,
        ))

    test("a CLOSE that is 50 ms late does not reach the next socket, however short the waits", () =>
        onBench(
            {
                settings: { RETRY_MIN: 1, RETRY_CAP: 5, OVERLOAD_CAP: 5 },
                longestMs: 100,
            },
            async bench => {
                const { world, broker, device } = bench
                world.net.fault("*", faults.lateClose(50))
                broker.next(5, plays.refuse(3))
                await world.until("connected", MINUTE_MS)
                await world.run(MINUTE_MS)
                assert.equal(device.said("attempt").length, 6)
                assert.equal(device.said("lost").length, 0)
                for (const ms of delays(device).slice(1))
                    assert.equal(ms, 100, "100 ms between close and open")
            },
        ))
})

describe("B7: stop() in each state: no SYN afterwards, and start() works again", () => {
    const program = "test/bytecode/stopper.ts"
    interface Stop {
        at: string
        play?: Play
        fault?: Fault
        wifi?: boolean
    }
    const stops: Stop[] = [
        { at: "holdOff" },
        { at: "connecting", fault: faults.blackHole() },
        { at: "awaitingConnack", play: plays.mute() },
        { at: "connected" },
        { at: "disconnecting" },
        { at: "noLink", wifi: true },
    ]
    for (const { at, play, fault, wifi } of stops)
        for (const restMs of [10 * MINUTE_MS, -1, 50]) {
            const rest = restMs < 0 ? "at once" : `after ${restMs} ms`
            test(`${at}, start() ${rest}`, () =>
                onBench(
                    {
                        program,
                        wifi,
                        settings: { STOP_AT: at, REST_MS: restMs },
                    },
                    async bench => {
                        const { world, broker, device } = bench
                        if (play) broker.next(1, play)
                        const active = fault && world.net.fault("*", fault)
                        const heard = (text: string) =>
                            device.console.find(c => c.text === "> " + text)
                        await world.until(() => !!heard("stop"), MINUTE_MS)
                        const stopMs = world.nowMs
                        await world.run(30)
                        active?.off()
                        const dials = device.network.dials
                        if (restMs > MINUTE_MS) {
                            await world.run(9 * MINUTE_MS)
                            assert.equal(device.network.dials, dials, "SYNs")
                            assert.equal(broker.open.length, 0)
                            assert.equal(device.said("halt").length, 1)
                            assert.equal(device.last("halt").reason, "stopped")
                            assert.ok(device.last("halt").atMs - stopMs < 200)
                        }
                        if (wifi) device.joinWifi()
                        await world.until(() => !!heard("start"), HOUR_MS)
                        await world.until(
                            () =>
                                device.isConnected &&
                                device.last("connected").atMs >=
                                    heard("start")!.atMs,
                            2 * MINUTE_MS,
                        )
                        await world.run(MINUTE_MS)
                        assert.ok(device.isConnected)
                        assert.equal(broker.open.length, 1)
                        if (at === "connected" || at === "disconnecting")
                            assert.equal(broker.sent("disconnect").length, 1)
                    },
                ))
        }
})

describe("R1, R5: the broker is down for a day", () => {
    test("no reboot, one flash write, flat heap, and back within the cap", t =>
        onBench({ longestMs: MINUTE_MS }, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(HOUR_MS)
            broker.down()
            await world.run(HOUR_MS)
            const early = await heapFloor(bench)
            await world.run(DAY_MS)
            const late = await heapFloor(bench)
            t.diagnostic(`heap: ${JSON.stringify([early, late])}`)
            assert.ok(Math.abs(late.bytes - early.bytes) < 512)
            assert.equal(late.fibers, early.fibers)
            assert.ok(device.said("retry").length > 1500)
            broker.up()
            await world.until("connected", MINUTE_MS + TURN_MS)
            assert.equal(device.said("boot").length, 1)
            assert.equal(device.flashWrites, 1, "of the first start")
        }))

    test("a day of SYNs that vanish: the same", () =>
        onBench({ longestMs: MINUTE_MS }, async bench => {
            const { world, device } = bench
            const hole = world.net.fault("*", faults.blackHole())
            await world.run(DAY_MS)
            hole.off()
            await world.until("connected", 2 * MINUTE_MS)
            assert.equal(device.said("boot").length, 1)
        }))
})

describe("R2: ten power cuts, 2 s after each start", () => {
    test("then power stays: full service, settings kept, not held", () =>
        onBench(
            { settings: { MQTT_PREFIX: "house", KEEP_ALIVE: 33 } },
            async bench => {
                const { world, broker, device } = bench
                for (let i = 0; i < 10; ++i) {
                    await world.run(2000)
                    device.powerOff()
                    await world.run(500)
                    device.powerOn()
                }
                await world.until("connected", 10_000)
                await world.run(2 * MINUTE_MS)
                assert.ok(device.isConnected)
                assert.equal(device.said("boot").length, 11)
                assert.deepEqual(
                    device.said("boot").map(b => b.cause),
                    ["new build", ...Array<string>(10).fill("power-on")],
                )
                assert.equal(device.said("held").length, 0)
                assert.equal(device.said("config").length, 0)
                const [connect] = broker.latest.sent("connect")
                assert.equal(connect.packet.keepalive, 33)
                assert.ok(
                    broker
                        .sent("publish")
                        .every(p => p.packet.topic.startsWith("house/")),
                )
            },
        ))

    test("at every point of the first 4 s of a run", () =>
        onBench({ maxOpen: 30 }, async ({ world, device }) => {
            for (let ms = 100; ms <= 4000; ms += 130) {
                await world.run(ms)
                device.powerOff()
                await world.run(100)
                device.powerOn()
            }
            // After 20 such runs in a row the restart limit holds the device for a minute.
            await world.until("connected", 75_000)
            assert.ok(device.said("held").length > 0)
        }))
})
