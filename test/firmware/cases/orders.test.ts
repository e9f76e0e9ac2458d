// The orders in which two things can come, within milliseconds of each other: on the wire, at a deadline,
// from Wi-Fi, from the application. Whichever wins, the other must not count as well.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as faults from "../../../host/lab/faults"
import type { Fault } from "../../../host/lab/link"
import * as plays from "../../../host/lab/plays"
import type { Conn, Play } from "../../../host/lab/scripted-broker"
import { withApp } from "./app"
import { onBench, untilSaid, type Bench } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** `first`, and `then` so many milliseconds later; 0: in the same instant. */
const AROUND = [-3, -2, -1, 0, 1, 2, 3]

/** By the lines: an attempt has one outcome, a session one end, and each failure one wait. */
function oneOutcomeEach({ device }: Bench) {
    let dialled = 0
    let inSession = false
    for (const { line } of device.lines)
        switch (line.ev) {
            case "attempt":
                assert.equal(inSession, false, "an attempt in a session")
                dialled++
                break
            case "connected":
                assert.equal(inSession, false, "connected twice")
                assert.equal(dialled, 1, "connected without an attempt")
                inSession = true
                break
            case "lost":
                assert.ok(inSession, "lost without a session")
                inSession = false
                dialled = 0
                break
            case "halt":
                inSession = false
                dialled = 0
                break
            case "retry":
                assert.equal(inSession, false, "a wait in a session")
                assert.ok(dialled <= 1, `${dialled} attempts, one wait`)
                dialled = 0
        }
    // Without a network there is an attempt and no socket.
    const attempts = device.said("attempt").length
    assert.ok(device.network.dials <= attempts, "a socket each attempt")
}

/** Connected in the end, with one socket, and it stays so. */
async function settles(bench: Bench, limitMs = MINUTE_MS) {
    const { world, broker, device } = bench
    await world.until(
        () => device.isConnected && broker.open.length > 0,
        limitMs,
    )
    await world.run(15_000)
    assert.ok(device.isConnected)
    oneOutcomeEach(bench)
}

describe("two things from the broker in one segment or one instant", () => {
    const ends = ["fin", "rst"] as const
    const last: [string, (c: Conn) => void][] = [
        ["CONNACK", c => c.connack()],
        ["CONNACK and a message", c => c.connack().publish("t/1", "x")],
        ["CONNACK 3", c => c.connack(3)],
        ["half a CONNACK", c => c.send("20 02")],
        ["something malformed", c => c.send("20 02 00 00 00 00")],
    ]
    for (const [what, say] of last)
        for (const end of ends)
            test(`${what}, then ${end}: one failure, one wait`, () =>
                onBench({}, async bench => {
                    const { broker, device } = bench
                    broker.next(1, {
                        connect(c) {
                            c.oneSegment(() => say(c))
                            c[end]()
                        },
                    })
                    await settles(bench, HOUR_MS)
                    assert.equal(broker.conns.length, 2)
                    assert.equal(device.said("retry").length, 2)
                    assert.equal(device.last("retry").n, 1)
                }))

    for (const end of ends)
        test(`SUBACK, a message of each QoS, then ${end}: granted, and both delivered once`, () =>
            withApp({ scene: ["listen", ["t"], 1] }, async bench => {
                const { world, broker, untilPrint, prints } = bench
                broker.next(1, {
                    subscribe(c, p) {
                        c.oneSegment(() => {
                            c.suback(p)
                            c.publish("t", "zero")
                            c.publish("t", "one", { qos: 1, id: 7 })
                        })
                        c[end]()
                    },
                })
                await settles(bench)
                await untilPrint("got", 2, 1000)
                await world.run(1000)
                assert.deepEqual(
                    prints("sub").map(p => p.is),
                    ["granted"],
                )
                assert.deepEqual(
                    prints("got").map(p => p.text),
                    ["zero", "one"],
                )
                assert.equal(broker.latest.sent("subscribe").length, 1)
            }))
})

describe("an answer and its deadline", () => {
    /** Before the deadline it counts; after it, it does not; around it, one of both. */
    const either = (bench: Bench, offsetMs: number, late: number) => {
        const { device } = bench
        const failed = device.said("retry").length - 1
        if (offsetMs < -25) assert.equal(failed, 0)
        else if (offsetMs > 25) assert.equal(failed, late)
        else assert.ok(failed === 0 || failed === late, `${failed} failures`)
    }

    for (const offsetMs of [-40, ...AROUND, 40]) {
        test(`CONNACK ${offsetMs} ms after its deadline`, () =>
            onBench({}, async bench => {
                const { world, broker } = bench
                broker.next(1, {
                    connect: c =>
                        // Sent though the device may have closed: it is on its way.
                        world.after(10_000 - 4 + offsetMs, () => c.connack()),
                })
                await settles(bench)
                either(bench, offsetMs, 1)
            }))

        test(`PINGRESP ${offsetMs} ms after its deadline`, () =>
            onBench({ settings: { TELEMETRY: 86400 } }, async bench => {
                const { world, broker } = bench
                broker.next(1, {
                    pingreq: c =>
                        void c.after(10_000 - 4 + offsetMs, () => c.pingresp()),
                })
                await world.until("connected", MINUTE_MS)
                await world.run(65_000)
                await settles(bench)
                const { device } = bench
                assert.ok(device.said("lost").length <= 1)
                either(bench, offsetMs, 1)
            }))

        test(`TCP opens ${offsetMs} ms after DIAL_WAIT`, () =>
            onBench({}, async bench => {
                const late: Fault = link => ({
                    dial() {
                        link.after(30_000 + offsetMs, () => {
                            if (link.deviceOpen) link.events.open()
                        })
                        return "silence"
                    },
                })
                const on = bench.world.net.fault("*", late)
                await untilSaid(bench, "attempt", 1, MINUTE_MS)
                on.off()
                await settles(bench, 3 * MINUTE_MS)
                // Nobody answers the CONNECT that follows: then it is no dial's failure any more.
                const [, failed] = bench.device.said("retry")
                const isLate = failed.reason === "no TCP connection in time"
                if (Math.abs(offsetMs) > 25)
                    assert.equal(isLate, offsetMs > 0, failed.reason)
                assert.equal(failed.proven, !isLate)
            }))
    }
})

describe("Wi-Fi's word and the socket's", () => {
    const phases: [string, Play, "attempt" | "connected"][] = [
        ["CONNACK is awaited", plays.mute(), "attempt"],
        ["in a session", {}, "connected"],
    ]
    for (const [what, play, ev] of phases)
        for (const laterMs of [0, 1, 40, 900, 5000])
            for (const first of ["Wi-Fi", "the socket"])
                test(`${what}, ${first} first, the other ${laterMs} ms later: one loss, no proof, a first wait`, () =>
                    onBench({ wifi: true, maxOpen: 3 }, async bench => {
                        const { world, broker, device } = bench
                        broker.next(1, play)
                        device.joinWifi()
                        await untilSaid(bench, ev, 1, MINUTE_MS)
                        await world.run(ev === "attempt" ? 100 : 20_000)
                        const wifi = () => device.wifi!.lostIp()
                        const socket = () => device.network.lose()
                        const [one, two] =
                            first === "Wi-Fi" ? [wifi, socket] : [socket, wifi]
                        one()
                        if (laterMs) await world.run(laterMs)
                        two()
                        await world.run(MINUTE_MS)
                        const sessions = ev === "connected" ? 1 : 0
                        assert.equal(device.said("lost").length, sessions)
                        for (const r of device.said("retry"))
                            assert.equal(r.proven, false, r.reason)
                        device.joinWifi()
                        await world.run(1000)
                        const { n, reason } = device.last("retry")
                        assert.deepEqual([n, reason], [0, "network is up"])
                        await settles(bench)
                    }))

    for (const offsetMs of AROUND)
        for (const how of ["fin", "rst"] as const)
            test(`the broker's ${how} ${offsetMs} ms after Wi-Fi is gone: one loss`, () =>
                onBench({ wifi: true, maxOpen: 3 }, async bench => {
                    const { world, broker, device } = bench
                    device.joinWifi()
                    await world.until("connected", MINUTE_MS)
                    await world.run(20_000)
                    const c = broker.latest
                    // It is 2 ms on its way.
                    world.after(10 + offsetMs - 2, () => c[how]())
                    world.after(10, () => device.leaveWifi())
                    await world.run(MINUTE_MS)
                    assert.equal(device.said("lost").length, 1)
                    device.joinWifi()
                    await settles(bench)
                    assert.equal(device.last("retry").n, 0)
                }))
})

describe("stop() and what is on its way", () => {
    // SYN-ACK is there 4 ms after the dial, CONNACK 8 ms, SUBACK and the like a little later.
    for (const afterMs of [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12])
        test(`stop() ${afterMs} ms into a dial: nothing open, no SYN, then start() connects`, () =>
            withApp(
                { scene: ["stopIn", "connecting", 60_000, afterMs] },
                async bench => {
                    const { world, broker, device, untilPrint } = bench
                    await untilPrint("stopIn", 1, MINUTE_MS)
                    await world.run(500)
                    assert.equal(broker.open.length, 0)
                    assert.equal(device.said("halt").length, 1)
                    const { dials } = device.network
                    const then = await untilPrint("then", 1, 2 * MINUTE_MS)
                    assert.equal(then.then, "halted")
                    assert.equal(device.network.dials, dials)
                    // Goodbye was said where there had been a CONNACK.
                    assert.equal(
                        broker.sent("disconnect").length,
                        device.said("connected").length,
                    )
                    await untilPrint("back", 1, MINUTE_MS)
                    await world.run(15_000)
                    assert.ok(device.isConnected)
                    assert.equal(broker.open.length, 1)
                    assert.equal(device.network.dials, dials + 1)
                },
            ))

    for (const how of ["fin", "rst"] as const)
        for (const offsetMs of [...AROUND, 50, 98, 100, 102, 150])
            test(`the broker's ${how} ${offsetMs} ms after a stop() that a message asked for`, () =>
                withApp({ scene: ["puppet"] }, async bench => {
                    const { world, broker, device, untilPrint } = bench
                    await untilPrint("ready", 1, MINUTE_MS)
                    await world.run(20_000)
                    const c = broker.latest
                    // Heard and obeyed within 2 ms; the end is as long on its way.
                    c.after(10, () => c.publish("do/stop", ""))
                    c.after(10 + offsetMs, () => c[how]())
                    await world.run(1000)
                    const [stopped] = bench.prints("restarted")
                    await settles(bench)
                    assert.ok(device.said("lost").length <= 1)
                    assert.ok(c.sent("disconnect").length <= 1)
                    // An end that came first took the message with it, or not: never both a stop and none.
                    assert.equal(
                        device.said("halt").length,
                        stopped ? 1 : 0,
                        "halts",
                    )
                    assert.equal(broker.conns.length, 2)
                }))
})

describe("two ends at once", () => {
    test("both ends close in the same instant: one loss", () =>
        onBench({}, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(20_000)
            // A second CONNACK makes the device close; the broker's FIN meets the device's.
            broker.latest.connack()
            broker.latest.after(2, () => broker.latest.fin())
            await untilSaid(bench, "lost", 1, 1000)
            await settles(bench, HOUR_MS)
            assert.equal(device.said("lost").length, 1)
        }))

    test("the answer to a PINGREQ and the next silence: a swallowed way is noticed by the next ping", () =>
        onBench({ maxOpen: 2 }, async bench => {
            const { world, broker } = bench
            let on: { off(): void } | undefined
            broker.next(1, {
                pingreq(c) {
                    c.pingresp()
                    // Right behind it.
                    on ??= world.net.fault("*", faults.swallow())
                },
            })
            await world.until("connected", MINUTE_MS)
            await untilSaid(bench, "lost", 1, 3 * MINUTE_MS)
            on?.off()
            await settles(bench)
        }))
})
