// Field cases T1..T8: TCP and DNS in the ways in which they fail, as timelines on the real bytecode.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as faults from "../../../host/lab/faults"
import * as plays from "../../../host/lab/plays"
import type { Conn, Play, SendOptions } from "../../../host/lab/scripted-broker"
import {
    assertGrows,
    assertSilence,
    delays,
    heapFloor,
    onBench,
    TURN_MS,
    untilSaid,
    type Bench,
} from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** How long an attempt waits for CONNACK: the first, and once the broker has shown overload. */
const CONNACK_MS = 10_000
const CONNACK_LONG_MS = 30_000

/** Short waits, so that many failures fit into little time. */
const QUICK = { RETRY_MIN: 100, RETRY_CAP: 500, OVERLOAD_CAP: 1000 }

/** A connection's life in ms, within the VM's turn of a limit. */
function livedFor(c: Conn, limitMs: number) {
    const ms = c.closedMs - c.openedMs
    assert.ok(
        ms >= limitMs && ms <= limitMs + TURN_MS,
        `connection ${c.index} was open for ${ms} ms`,
    )
    assert.equal(c.closedBy, "fin", "closed by the device")
}

describe("T1: TCP is accepted and CONNECT read, but CONNACK does not come", () => {
    const stalls: [string, Play][] = [
        ["never answered", plays.mute()],
        ["a CONNACK byte every 11 s", plays.tricklingConnack(11_000)],
        [
            "the last byte of CONNACK missing",
            { connect: c => c.send("20 02 00") },
        ],
        ["not even CONNECT read", { packet: () => false }],
    ]
    for (const [what, play] of stalls)
        test(`${what}, five times: closed at the limit each time, waits grow, the 6th connects`, () =>
            onBench({}, async bench => {
                const { world, broker, device } = bench
                broker.next(5, play)
                await world.until("connected", 10 * MINUTE_MS)
                assert.equal(broker.conns.length, 6)
                broker.conns
                    .slice(0, 5)
                    .forEach((c, i) =>
                        livedFor(c, i ? CONNACK_LONG_MS : CONNACK_MS),
                    )
                const retries = device.said("retry")
                assert.equal(retries.length, 6)
                assertGrows(delays(device), HOUR_MS)
                for (const r of retries.slice(1)) {
                    assert.equal(r.reason, "no CONNACK in time")
                    assert.equal(r.evidence, "stalled")
                    assert.ok(r.proven)
                }
                assert.equal(device.last("connected").n, 6)
            }))

    test("a CONNACK that trickles in just before the limit is taken", () =>
        onBench({}, async ({ world, broker, device }) => {
            broker.next(1, plays.tricklingConnack(3300))
            await world.until("connected", MINUTE_MS)
            assert.equal(broker.conns.length, 1)
            assert.ok(device.last("connected").tookMs >= 9900)
        }))

    test("SYNs that vanish: given up after DIAL_WAIT, and no overload", () =>
        onBench({}, async bench => {
            const { world, device } = bench
            const hole = world.net.fault("*", faults.blackHole())
            await untilSaid(bench, "retry", 9, 20 * MINUTE_MS)
            hole.off()
            await world.until("connected", 2 * MINUTE_MS)
            const dials = device.said("attempt").slice(0, 8)
            const retries = device.said("retry").slice(1)
            dials.forEach((dial, i) => {
                const ms = retries[i].atMs - dial.atMs
                assert.ok(ms >= 30_000 && ms <= 30_000 + TURN_MS, `${ms} ms`)
                assert.equal(retries[i].reason, "no TCP connection in time")
                assert.equal(retries[i].proven, false)
            })
            assertSilence(device)
        }))
})

describe("T3: the connection ends right after accept, or right after CONNECT", () => {
    const afterConnect = (ms: number, how: "fin" | "rst"): Play => ({
        connect: c => (ms ? c.after(ms, () => c[how]()) : c[how]()),
    })
    for (const how of ["fin", "rst"] as const) {
        test(`${how} 0 to 20 ms after accept is an ordinary failure that proves overload`, () =>
            onBench({ settings: QUICK, longestMs: 1000 }, async bench => {
                const at = [0, 1, 2, 3, 4, 5, 8, 12, 20]
                for (const ms of at)
                    bench.broker.next(1, {
                        ...plays.mute(),
                        ...plays.endAfterAccept(ms, how),
                    })
                await ordinary(bench, at.length, "closed before CONNACK")
            }))

        test(`${how} 0 to 20 ms after CONNECT is an ordinary failure that proves overload`, () =>
            onBench({ settings: QUICK, longestMs: 1000 }, async bench => {
                for (let ms = 0; ms <= 20; ++ms)
                    bench.broker.next(1, afterConnect(ms, how))
                await ordinary(bench, 21, "closed before CONNACK")
            }))

        // Two in a row: with more of them it may be a rival with the same client id.
        for (let ms = 0; ms <= 20; ms += 2)
            test(`${how} ${ms} and ${ms + 1} ms after CONNACK is a flap`, () =>
                onBench({ settings: QUICK, longestMs: 1000 }, async bench => {
                    bench.broker.next(1, plays.kick(ms, how))
                    bench.broker.next(1, plays.kick(ms + 1, how))
                    await ordinary(bench, 2, "connection closed")
                    const lost = bench.device.said("lost")
                    assert.equal(lost.length, 2)
                    for (const l of lost) assert.ok(l.flap)
                }))
    }

    async function ordinary(bench: Bench, failures: number, reason: string) {
        const { world, broker, device } = bench
        await world.until(
            () => broker.conns.length > failures && device.isConnected,
            10 * MINUTE_MS,
        )
        await world.run(15_000)
        assert.ok(device.isConnected)
        assert.equal(device.said("attempt").length, failures + 1)
        assert.equal(broker.conns.length, failures + 1)
        const retries = device.said("retry")
        assert.equal(retries.length, failures + 1)
        assert.deepEqual(
            retries.map(r => r.n),
            Array.from({ length: failures + 1 }, (_, i) => i),
        )
        for (const r of retries.slice(1)) {
            assert.equal(r.reason, reason)
            assert.equal(r.evidence, "reset")
            assert.ok(r.proven)
        }
    }

    test("a load balancer that accepts and closes at once makes the wait climb to an hour", () =>
        onBench({}, async bench => {
            bench.broker.always(plays.endAfterAccept(0, "rst"))
            await untilSaid(bench, "retry", 20, 24 * HOUR_MS)
            const waits = delays(bench.device)
            assertGrows(waits, HOUR_MS)
            assert.ok(waits.at(-1)! > 0.9 * HOUR_MS, `${waits}`)
        }))
})

describe("T5: the same bytes cut in other places are the same messages in the same order", () => {
    /** Everything the broker says in one connection, cut as told, and what the handlers got. */
    async function heard(
        options: SendOptions | undefined,
        more: { messages?: number; payload?: string; bytes?: number } = {},
    ): Promise<string[]> {
        const { messages = 3, payload = "hello", bytes = 0 } = more
        let got: string[] = []
        await onBench(
            { program: "test/bytecode/listener.ts" },
            async ({ world, broker, device }) => {
                broker.always({
                    connect: c => c.connack(0, false, options),
                    subscribe: (c, p) =>
                        c.oneSegment(() => {
                            c.suback(p)
                            for (let i = 1; i <= messages; ++i)
                                c.publish(
                                    `t/${i}`,
                                    bytes ? "x".repeat(bytes) : payload + i,
                                    { qos: i % 2 ? 1 : 0, id: i },
                                )
                        }, options),
                })
                await world.until("connected", MINUTE_MS)
                await world.run(5000)
                assert.ok(device.isConnected)
                got = device.console
                    .map(c => c.text)
                    .filter(t => t.includes("got"))
                    .map(t => t.slice(t.indexOf("got")))
                assert.equal(broker.conns.length, 1)
                assert.deepEqual(
                    broker.sent("puback").map(p => p.packet.messageId),
                    Array.from({ length: messages }, (_, i) => i + 1).filter(
                        i => i % 2,
                    ),
                )
            },
        )
        assert.equal(got.length, messages)
        return got
    }

    test("200 messages in one segment: handlers that are merely behind get them all", async () => {
        const got = await heard(undefined, { messages: 200 })
        assert.match(got[199], /^got 200 t\/200 /)
    })

    const cuts: [string, SendOptions][] = [
        ["byte by byte", { pieces: "bytes" }],
        ["1 + 1 + 2 bytes and the rest", { pieces: [1, 1, 2] }],
        ["3 + 1 bytes", { pieces: [3, 1] }],
        [
            "byte by byte, a turn of the VM apart",
            { pieces: "bytes", everyMs: 20 },
        ],
    ]

    test("CONNACK, then SUBACK and three messages in one segment, whole and cut four ways", async () => {
        const whole = await heard(undefined)
        for (const [what, options] of cuts)
            assert.deepEqual(await heard(options), whole, what)
    })

    test("a two-byte remaining length cut in between", async () => {
        const more = { messages: 4, bytes: 300 }
        const whole = await heard(undefined, more)
        for (const pieces of [[6], [5, 1, 1], [5, 2], [7], [5, 1, 1, 1]])
            assert.deepEqual(await heard({ pieces }, more), whole, `${pieces}`)
    })

    test("CONNACK, SUBACK and three messages in the very segment of CONNACK", async () => {
        const whole = await heard(undefined)
        for (const pieces of [undefined, "bytes" as const, [3, 2, 1, 9, 4]])
            await onBench(
                { program: "test/bytecode/listener.ts" },
                async ({ world, broker, device }) => {
                    // The identifier the device will use is known: its first.
                    broker.always({
                        connect: c =>
                            c.oneSegment(
                                () => {
                                    c.connack()
                                    c.suback({
                                        cmd: "subscribe",
                                        messageId: 1,
                                        subscriptions: [
                                            { topic: "t/#", qos: 1 },
                                        ],
                                    })
                                    for (let i = 1; i <= 3; ++i)
                                        c.publish(`t/${i}`, `hello${i}`, {
                                            qos: i % 2 ? 1 : 0,
                                            id: i,
                                        })
                                },
                                { pieces },
                            ),
                        subscribe() {},
                    })
                    await world.until("connected", MINUTE_MS)
                    await world.run(5000)
                    const got = device.console
                        .map(c => c.text)
                        .filter(t => t.includes("got"))
                        .map(t => t.slice(t.indexOf("got")))
                    assert.deepEqual(got, whole)
                    assert.ok(device.isConnected)
                },
            )
    })

    test("200 PINGRESP in one segment, and 2,000, change nothing", () =>
        onBench({}, async ({ world, broker, device }) => {
            await world.until("connected", MINUTE_MS)
            for (const count of [200, 2000]) {
                broker.latest.oneSegment(() => {
                    for (let i = 0; i < count; ++i) broker.latest.pingresp()
                })
                await world.run(5000)
            }
            await world.run(3 * MINUTE_MS)
            assert.ok(device.isConnected)
            assert.equal(broker.conns.length, 1)
        }))

    test("both ways cut at random places, for ten minutes: the session stays whole", () =>
        onBench({ settings: { TELEMETRY: 1 } }, async b => {
            b.world.net.fault("*", faults.split(3))
            await b.world.until("connected", MINUTE_MS)
            await b.world.run(10 * MINUTE_MS)
            assert.equal(b.broker.conns.length, 1)
            assert.ok(b.broker.sent("publish").length > 590)
        }))
})

describe("T6: the broker's name does not resolve for minutes", () => {
    test("ten minutes without an answer: capped retries for ever, each asks anew", () =>
        onBench({}, async bench => {
            const { world, device } = bench
            const fault = world.net.fault("*", faults.noSuchHost())
            await world.run(10 * MINUTE_MS)
            const tries = device.said("attempt").length
            assert.ok(tries > 10, `${tries} attempts`)
            assert.equal(device.network.dials, tries)
            const retries = device.said("retry").slice(1)
            for (const r of retries) {
                assert.equal(r.reason, "host name not found")
                assert.equal(r.lane, "retry")
                assert.equal(r.proven, false)
            }
            assertGrows(delays(device), MINUTE_MS)
            fault.off()
            await world.until("connected", MINUTE_MS + TURN_MS)
        }))

    test("a resolver that takes 5 s to say no, then 20 s: the attempt waits for it", () =>
        onBench({}, async bench => {
            const { world, device } = bench
            for (const ms of [5000, 20_000]) {
                const fault = world.net.fault("*", faults.noSuchHost(ms))
                await untilSaid(
                    bench,
                    "retry",
                    device.said("retry").length + 3,
                    10 * MINUTE_MS,
                )
                fault.off()
            }
            assert.equal(device.last("retry").reason, "host name not found")
            await world.until("connected", MINUTE_MS + TURN_MS)
        }))

    test("every second query fails: it connects all the same", () =>
        onBench({}, async ({ world }) => {
            world.net.fault("*", faults.sometimes(50, faults.noSuchHost()))
            await world.until("connected", 10 * MINUTE_MS)
        }))
})

describe("T8: 500 failures of all kinds", () => {
    test("flat heap, flat fibers, one socket at most, and it connects again", t =>
        onBench({ settings: QUICK }, async bench => {
            const { world, broker, device } = bench
            await world.until("connected", MINUTE_MS)
            const floors = [await heapFloor(bench)]
            let expected = device.said("retry").length
            for (let round = 0; round < 5; ++round) {
                const kinds: [Play, () => { off(): void } | undefined][] = [
                    [plays.mute(), () => undefined],
                    [plays.endAfterAccept(round, "rst"), () => undefined],
                    [plays.refuse(5), () => undefined],
                    [plays.refuse(3), () => undefined],
                    [plays.kick(round, "rst"), () => undefined],
                    [plays.greetWith("ffffffffff"), () => undefined],
                    [{}, () => world.net.fault("*", faults.refuse())],
                    [{}, () => world.net.fault("*", faults.noSuchHost())],
                    [{}, () => world.net.fault("*", faults.writeReturns(-1))],
                    [{}, () => world.net.fault("*", faults.noNetwork())],
                ]
                broker.latest.rst()
                await untilSaid(bench, "retry", ++expected, MINUTE_MS)
                for (let i = 0; i < 100; ++i) {
                    const [play, begin] = kinds[i % kinds.length]
                    broker.always(play)
                    const fault = begin()
                    await untilSaid(bench, "retry", ++expected, 2 * HOUR_MS)
                    fault?.off()
                }
                broker.always({})
                await world.until("connected", 2 * HOUR_MS)
                await world.run(MINUTE_MS)
                floors.push(await heapFloor(bench))
            }
            assert.ok(device.said("retry").length >= 500)
            t.diagnostic(
                `heap after each 100 failures: ${JSON.stringify(floors)}`,
            )
            // The first failures fill what is made once; after that it is flat.
            const bytes = floors.map(f => f.bytes).slice(1)
            assert.ok(Math.max(...bytes) - Math.min(...bytes) < 256, `${bytes}`)
            assert.ok(bytes[0] - floors[0].bytes < 1024, `${floors[0].bytes}`)
            assert.equal(new Set(floors.map(f => f.fibers)).size, 1)
        }))
})
