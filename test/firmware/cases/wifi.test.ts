// Field cases W1..W5 and Wi-Fi as a whole: the device watches its network, and does not mistake it for
// the broker.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { WifiEvent, type WifiServer } from "jacdac-ts"
import * as faults from "../../../host/lab/faults"
import { heapFloor, onBench, TURN_MS, untilSaid, type Bench } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** From an event of the Wi-Fi service to what the device makes of it: its register's cache. */
const NOTICE_MS = 1000
/** From power-on to the first look at the Wi-Fi service. */
const BIND_MS = 3000

/** The first wait: from 1 s to 2.2 s. */
function isFirstWait(delayMs: number) {
    assert.ok(delayMs >= 1000 && delayMs <= 2200, `${delayMs} ms`)
}

/** The access point turns the device away. */
function refuseWifi({ device }: Bench, ssid = "lab") {
    const { server } = device.wifi as unknown as { server: WifiServer }
    void server.sendEvent(WifiEvent.ConnectionFailed, Buffer.from(ssid))
}

/** Joined and connected. */
async function connected(bench: Bench) {
    bench.device.joinWifi()
    await bench.world.until("connected", MINUTE_MS)
}

/** What links complained of, of one kind. */
const why = ({ device }: Bench, what: string) =>
    device.said("link").flatMap(l => (l.why?.startsWith(what) ? [l.why] : []))

/** In words: "up 10.0.0.2", "down". */
const links = ({ device }: Bench) =>
    device
        .said("link")
        .filter(l => !l.why)
        .map(l => (l.up ? `up ${l.ip}` : "down"))

describe("W1: no network for ten minutes after power-on", () => {
    test("no dial and no restart; a first wait once there is an address", () =>
        onBench({ wifi: true }, async bench => {
            const { world, device } = bench
            await world.run(10 * MINUTE_MS)
            // The first wait of the start is broken off when there turns out to be no network.
            assert.equal(device.said("attempt").length, 0)
            assert.deepEqual(links(bench), ["down"])
            // After 60, 120 and 240 s it has asked the service to start over; that is all.
            assert.equal(device.wifi!.reconnects, 3)
            const joinedMs = world.nowMs
            await connected(bench)
            const retry = device.last("retry")
            assert.equal(retry.n, 0)
            isFirstWait(retry.delayMs)
            assert.equal(retry.reason, "network is up")
            assert.ok(retry.ceilingMs < 2000)
            assert.ok(world.nowMs - joinedMs < NOTICE_MS + 2200 + 100)
            assert.equal(device.said("boot").length, 1)
        }))

    test("three hours, and the access point turns it away each minute: the same, heap flat", t =>
        onBench({ wifi: true }, async bench => {
            const { world, device } = bench
            await world.run(HOUR_MS)
            const early = await heapFloor(bench)
            for (let minute = 0; minute < 120; ++minute) {
                refuseWifi(bench)
                await world.run(MINUTE_MS)
            }
            const late = await heapFloor(bench)
            t.diagnostic(`heap: ${JSON.stringify([early, late])}`)
            assert.ok(Math.abs(late.bytes - early.bytes) < 512)
            assert.equal(late.fibers, early.fibers)
            assert.equal(device.said("attempt").length, 0)
            assert.equal(why(bench, "cannot join").length, 1)
            await connected(bench)
            isFirstWait(device.last("retry").delayMs)
        }))

    test("powered on within reach: connects as soon as there is an address", () =>
        onBench({ wifi: true, powerOn: false }, async ({ world, device }) => {
            device.joinWifi()
            device.powerOn()
            const tookMs = await world.until("connected", MINUTE_MS)
            assert.ok(tookMs < BIND_MS + NOTICE_MS + 2200 + 100, `${tookMs}`)
        }))
})

describe("W2: associated without an address", () => {
    test("no address at all: no dial; asks Wi-Fi to join again after 60 s, then 120, 240 .. 600 s", () =>
        onBench({ wifi: true }, async bench => {
            const { world, device } = bench
            const asked: number[] = []
            device.wifi!.onReconnect = () => asked.push(world.nowMs)
            device.joinWifi([])
            const joinedMs = world.nowMs
            await world.run(HOUR_MS)
            assert.equal(device.said("attempt").length, 0)
            const gaps = asked.map((ms, i) => ms - (asked[i - 1] ?? joinedMs))
            const wanted = [60, 120, 240, 480, 600, 600, 600, 600]
            assert.equal(gaps.length, wanted.length, `${gaps}`)
            gaps.forEach((ms, i) => {
                // The service is looked at every 15 s.
                const lateMs = ms - wanted[i] * 1000
                assert.ok(lateMs >= -15_000 && lateMs <= 20_000, `${gaps}`)
            })
            assert.equal(why(bench, "no address").length, wanted.length)
            await connected(bench)
            isFirstWait(device.last("retry").delayMs)
        }))

    test("0.0.0.0 is as good as none", () =>
        onBench({ wifi: true }, async bench => {
            const { world, device } = bench
            device.joinWifi([0, 0, 0, 0])
            await world.run(10 * MINUTE_MS)
            assert.equal(device.said("attempt").length, 0)
            assert.ok(device.wifi!.reconnects >= 3)
            await connected(bench)
            assert.equal(links(bench).at(-1), "up 10.0.0.2")
        }))

    test("connected, then 0.0.0.0: lost at once, back when there is an address", () =>
        onBench({ wifi: true, maxOpen: 2 }, async bench => {
            const { world, device } = bench
            await connected(bench)
            await world.run(MINUTE_MS)
            device.joinWifi([0, 0, 0, 0])
            await untilSaid(bench, "lost", 1, NOTICE_MS)
            assert.equal(device.last("lost").reason, "network lost")
            await world.run(30_000)
            assert.equal(device.said("attempt").length, 1)
            await connected(bench)
        }))

    test("an address every time it is asked for again: the waits start over", () =>
        onBench({ wifi: true, maxOpen: 4 }, async bench => {
            const { world, device } = bench
            for (let i = 0; i < 3; ++i) {
                const asked = device.wifi!.reconnects
                const fromMs = world.nowMs
                device.joinWifi([])
                await world.until(
                    () => device.wifi!.reconnects > asked,
                    2 * MINUTE_MS,
                )
                const waitedMs = world.nowMs - fromMs
                assert.ok(waitedMs >= 45_000 && waitedMs <= 80_000)
                await connected(bench)
                await world.run(MINUTE_MS)
            }
        }))
})

describe("Wi-Fi comes, goes and moves", () => {
    test("lost for an hour while connected: lost, no dial, then a first wait", () =>
        onBench({ wifi: true, maxOpen: 2 }, async bench => {
            const { world, device } = bench
            await connected(bench)
            await world.run(MINUTE_MS)
            device.leaveWifi()
            await untilSaid(bench, "lost", 1, NOTICE_MS)
            await world.run(HOUR_MS)
            assert.equal(device.said("attempt").length, 1)
            await connected(bench)
            assert.equal(device.said("attempt").length, 2)
            isFirstWait(device.last("retry").delayMs)
            assert.deepEqual(links(bench).slice(-3), [
                "up 10.0.0.2",
                "down",
                "up 10.0.0.2",
            ])
        }))

    test("another address while connected: the socket is made anew", () =>
        onBench({ wifi: true, maxOpen: 2 }, async bench => {
            const { world, broker, device } = bench
            await connected(bench)
            await world.run(MINUTE_MS)
            device.joinWifi([10, 0, 0, 77])
            await untilSaid(bench, "connected", 2, NOTICE_MS + 2300)
            assert.equal(device.last("lost").reason, "network lost")
            assert.equal(links(bench).at(-1), "up 10.0.0.77")
            assert.equal(broker.conns.length, 2)
            await world.run(MINUTE_MS)
            assert.equal(broker.open.length, 1)
        }))

    test("the same address again changes nothing", () =>
        onBench({ wifi: true }, async bench => {
            const { world, broker, device } = bench
            await connected(bench)
            for (let i = 0; i < 5; ++i) {
                device.joinWifi()
                await world.run(20_000)
            }
            assert.equal(broker.conns.length, 1)
            assert.deepEqual(links(bench), ["up 10.0.0.2"])
        }))

    test("lost in every state: no dial until it is back", () =>
        onBench({ wifi: true, maxOpen: 3 }, async bench => {
            const { world, device } = bench
            device.joinWifi()
            const hole = world.net.fault("*", faults.blackHole())
            for (const state of ["retry", "attempt"] as const) {
                const count = device.said(state).length
                await untilSaid(bench, state, count + 1, MINUTE_MS)
                device.leaveWifi()
                await world.run(NOTICE_MS)
                const dials = device.network.dials
                await world.run(5 * MINUTE_MS)
                assert.equal(device.network.dials, dials, state)
                device.joinWifi()
            }
            hole.off()
            await world.until("connected", MINUTE_MS)
        }))

    test("a wrong password is reported once, not at each try, and again after a success", () =>
        onBench({ wifi: true, maxOpen: 2 }, async bench => {
            const { world, device } = bench
            await world.run(5000)
            for (let i = 0; i < 50; ++i) {
                refuseWifi(bench, "attic")
                await world.run(3000)
            }
            assert.deepEqual(why(bench, "cannot join"), ["cannot join attic"])
            await connected(bench)
            device.leaveWifi()
            await world.run(5000)
            for (let i = 0; i < 10; ++i) {
                refuseWifi(bench, "attic")
                await world.run(3000)
            }
            assert.deepEqual(why(bench, "cannot join"), [
                "cannot join attic",
                "cannot join attic",
            ])
        }))

    test("flapping every 3 s for ten minutes: no panic, no growth, and it settles", () =>
        onBench({ wifi: true, maxOpen: 400 }, async bench => {
            const { world, device } = bench
            for (let i = 0; i < 200; ++i) {
                if (i % 2) device.leaveWifi()
                else device.joinWifi()
                await world.run(3000)
            }
            await connected(bench)
            for (const r of device.said("retry"))
                if (r.reason === "network is up") isFirstWait(r.delayMs)
                else assert.ok(r.n <= 1 && !r.proven && r.delayMs <= 4400)
        }))

    test("flapping faster than it is looked at: the last word counts", () =>
        onBench({ wifi: true, maxOpen: 50 }, async bench => {
            const { world, device } = bench
            await connected(bench)
            for (let i = 0; i < 40; ++i) {
                if (i % 2) device.joinWifi([10, 0, 0, 2 + (i % 3)])
                else device.leaveWifi()
                await world.run(20 + 7 * i)
            }
            device.leaveWifi()
            await world.run(5000)
            const dials = device.network.dials
            await world.run(MINUTE_MS)
            assert.equal(device.network.dials, dials)
            assert.equal(links(bench).at(-1), "down")
            await connected(bench)
        }))

    test("down and up between two looks, and the event lost: the dead socket is noticed all the same", () =>
        onBench({ wifi: true, maxOpen: 2 }, async bench => {
            const { world, device } = bench
            await connected(bench)
            await world.run(MINUTE_MS)
            // The socket fails and Wi-Fi is back before anyone looks.
            device.network.lose()
            device.network.up = true
            await untilSaid(bench, "lost", 1, NOTICE_MS)
            await world.until("connected", MINUTE_MS)
        }))
})

describe("W5: the natives refuse", () => {
    test("_socketOpen throws `network not available`: an ordinary failure, capped, no overload", () =>
        onBench({ longestMs: MINUTE_MS }, async bench => {
            const { world, device } = bench
            const fault = world.net.fault("*", faults.noNetwork())
            await untilSaid(bench, "retry", 20, HOUR_MS)
            for (const r of device.said("retry").slice(1)) {
                assert.equal(r.reason, "socket not opened")
                assert.equal(r.lane, "retry")
                assert.equal(r.proven, false)
            }
            fault.off()
            await world.until("connected", MINUTE_MS + TURN_MS)
        }))

    test("the open native fails unseen: given up after DIAL_WAIT", () =>
        onBench({ longestMs: MINUTE_MS }, async bench => {
            const { world, device } = bench
            const fault = world.net.fault("*", faults.openFails())
            await untilSaid(bench, "retry", 5, HOUR_MS)
            assert.equal(
                device.last("retry").reason,
                "no TCP connection in time",
            )
            fault.off()
            await world.until("connected", 2 * MINUTE_MS)
        }))

    for (const code of [-1, -10, -100]) {
        test(`every write returns ${code}: CONNECT fails, an ordinary failure, no overload`, () =>
            onBench({ longestMs: MINUTE_MS }, async bench => {
                const { world, device } = bench
                const fault = world.net.fault("*", faults.writeReturns(code))
                await untilSaid(bench, "retry", 10, HOUR_MS)
                for (const r of device.said("retry").slice(1)) {
                    assert.equal(r.reason, "socket write failed")
                    assert.equal(r.lane, "retry")
                    assert.equal(r.proven, false)
                }
                fault.off()
                await world.until("connected", MINUTE_MS + TURN_MS)
            }))

        test(`writes return ${code} within a young session: a failure of ours, no overload`, () =>
            onBench({ settings: { TELEMETRY: 1 } }, async bench => {
                const { world, device } = bench
                await world.until("connected", MINUTE_MS)
                await world.run(3000)
                const fault = world.net.fault("*", faults.writeReturns(code))
                await untilSaid(bench, "lost", 1, MINUTE_MS)
                assert.ok(device.last("lost").flap)
                const retry = device.last("retry")
                assert.equal(retry.reason, "socket write failed")
                assert.equal(retry.evidence, "refused")
                assert.equal(retry.proven, false)
                fault.off()
                await world.until("connected", MINUTE_MS)
            }))
    }

    test("one write in a hundred returns -1 for an hour: it is back each time", () =>
        onBench({ settings: { TELEMETRY: 1 } }, async ({ world, device }) => {
            world.net.fault("*", link => ({
                write: () => (link.random.chance(1) ? -1 : undefined),
            }))
            await world.run(HOUR_MS)
            world.net.heal()
            await world.until("connected", HOUR_MS)
            assert.ok(device.said("lost").length > 5)
        }))
})
