// The library's API on the bytecode, as applications use and misuse it: bursts of publishes,
// handlers that publish, subscribe, throw or never return, stop and start in every state, many
// subscriptions, and arguments and options that must be refused in words.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { latency } from "../../../host/lab/faults"
import * as plays from "../../../host/lab/plays"
import { OPTION_NAMES, optionRows } from "../../bytecode/api-options"
import { withApp, type AppBench } from "./app"

const numbers = (sent: { packet: { payload: string | Buffer } }[]) =>
    sent.map(r => Number(r.packet.payload.toString()))
const upTo = (count: number, from = 0) =>
    Array.from({ length: count - from }, (_, i) => from + i)

describe("500 publishes", () => {
    for (const scene of ["loop", "burst"]) {
        const how = scene === "loop" ? "each awaited in a loop" : "none awaited"
        test(`${how}, connected: all sent, in order, a packet a write`, async () => {
            await withApp(
                { scene: [scene, 500, "connected"] },
                async ({ world, broker, untilPrint }) => {
                    const { tally, counters } = await untilPrint(
                        "tally",
                        1,
                        10_000,
                    )
                    assert.deepEqual(tally, { sent: 500 })
                    assert.equal(counters.published, 500)
                    await world.run(100)
                    const got = numbers(broker.sent("publish"))
                    if (scene === "loop") assert.deepEqual(got, upTo(500))
                    // Of those that wait for the next millisecond, later ones may come first.
                    else
                        assert.deepEqual(
                            got.toSorted((a, b) => a - b),
                            upTo(500),
                        )
                    const writes = world.log.entries.filter(e =>
                        /^#\d+ > \d+ B 3/.test(e.what),
                    )
                    assert.equal(writes.length, 500)
                },
            )
        })

        test(`${how}, before the first connection: the newest 16 are kept and sent, the others counted`, async () => {
            await withApp(
                { scene: [scene, 500] },
                async ({ world, broker, device, untilPrint }) => {
                    const { tally, counters } = await untilPrint(
                        "tally",
                        1,
                        10_000,
                    )
                    assert.deepEqual(tally, { queued: 500 })
                    assert.equal(counters.dropped, 484)
                    assert.equal(device.said("drop").length, 1)
                    await world.until("connected", 10_000)
                    await world.run(2000)
                    const got = numbers(broker.sent("publish"))
                    assert.equal(got.length, 16)
                    if (scene === "loop") assert.deepEqual(got, upTo(500, 484))
                },
            )
        })
    }

    test("while the socket takes nothing: the link is made anew, the newest 16 wait for it and none is told sent that was not", async () => {
        await withApp(
            { scene: ["loop", 500, "connected"] },
            async ({ world, broker, device, untilPrint }) => {
                world.net.fault("*", link => ({
                    write: bytes =>
                        bytes[0] === 0x30 && link.id === 1 ? -1 : undefined,
                }))
                const { tally, counters } = await untilPrint("tally", 1, 20_000)
                assert.deepEqual(tally, { queued: 500 })
                assert.equal(counters.published, 0)
                assert.match(device.last("lost").reason, /write/)
                await world.run(1000)
                await world.until("connected", 10_000)
                await world.run(2000)
                assert.deepEqual(
                    numbers(broker.sent("publish")),
                    upTo(500, 484),
                )
            },
        )
    })
})

describe("handlers", () => {
    /** The scene whose handlers do something, subscribed. */
    async function withPuppet(
        run: (
            bench: AppBench & { send: (what: string, text?: string) => void },
        ) => Promise<void>,
    ) {
        await withApp({ scene: ["puppet"] }, async bench => {
            await bench.untilPrint("ready", 1, 20_000)
            const send = (what: string, text = "") =>
                void bench.broker.latest.publish(`do/${what}`, text)
            await run({ ...bench, send })
            assert.equal(bench.device.said("lost").length, 0)
        })
    }

    test("a handler that publishes: every message is echoed, in order", async () => {
        await withPuppet(async ({ world, broker, send }) => {
            for (let i = 0; i < 100; ++i) {
                send("echo", `${i}`)
                await world.run(10)
            }
            assert.deepEqual(numbers(broker.sent("publish")), upTo(100))
        })
    })

    test("a handler that subscribes and unsubscribes waits for the broker's answer and gets it", async () => {
        await withPuppet(async ({ world, broker, send, prints }) => {
            send("sub", "new/+")
            await world.run(100)
            broker.latest.publish("new/x", "one")
            await world.run(100)
            send("unsub", "new/+")
            await world.run(100)
            broker.latest.publish("new/x", "two")
            send("unsub", "new/+")
            await world.run(100)
            assert.deepEqual(
                prints("is").map(p => p.is),
                ["granted", "done", "refused: not subscribed"],
            )
            assert.deepEqual(
                prints("got").map(p => p.text),
                ["one"],
            )
            assert.equal(broker.sent("unsubscribe").length, 1)
        })
    })

    test("a handler that subscribes and gets no answer delays later messages and loses none of a few", async () => {
        await withPuppet(async ({ world, broker, send, prints }) => {
            // The window of this connection: what the hook of a play sees is polite otherwise.
            broker.latest.play.subscribe = () => {}
            send("sub", "silent")
            await world.run(100)
            for (let i = 0; i < 10; ++i) send("echo", `${i}`)
            await world.run(5000)
            assert.equal(prints("echo").length, 0)
            await world.run(6000)
            assert.equal(
                prints("is")[0].is,
                "unanswered: asked again at the next connection",
            )
            assert.deepEqual(numbers(broker.sent("publish")), upTo(10))
            delete broker.latest.play.subscribe
        })
    })

    for (const fault of ["throw", "dereference"])
        test(`a handler that fails (${fault}) costs its message, is counted, and serves the next`, async () => {
            await withPuppet(async ({ world, broker, send, untilPrint }) => {
                for (let i = 0; i < 30; ++i) {
                    send(fault)
                    send("echo", `${i}`)
                    await world.run(100)
                }
                send("count")
                const { counters } = await untilPrint("counters", 1, 1000)
                assert.equal(counters.handlerErrors, 30)
                assert.equal(counters.dropped, 0)
                assert.deepEqual(numbers(broker.sent("publish")), upTo(30))
            })
        })

    test("a handler that never returns: 16 calls wait, later ones are dropped and said so, the link stays for hours", async () => {
        await withPuppet(async ({ world, broker, device, send, prints }) => {
            send("block")
            await world.run(100)
            assert.equal(prints("blocked").length, 1)
            for (let i = 0; i < 100; ++i) {
                send("echo", `${i}`)
                await world.run(1000)
            }
            assert.equal(prints("echo").length, 0)
            const drops = device.said("drop")
            assert.equal(drops[0].what, "in")
            assert.equal(drops[0].reason, "handlers too slow")
            assert.equal(drops[0].topic, "do/echo")
            // 16 of the hundred wait; one line in 10 s at most.
            assert.ok(drops.length >= 8 && drops.length <= 10)
            assert.ok(drops.at(-1)!.dropped > 70 && drops.at(-1)!.dropped <= 84)
            await world.run(3 * 3_600_000)
            assert.equal(broker.conns.length, 1)
            assert.ok(broker.latest.isOpen)
            assert.ok(broker.sent("pingreq").length > 150)
        })
    })

    test("handlers that are slow: bounded in bytes too, and what was accepted is handled in order", async () => {
        await withPuppet(async ({ world, device, send, prints }) => {
            const text = (i: number) => `${i}`.padEnd(900, ".")
            for (let i = 0; i < 12; ++i) {
                send("slow", text(i))
                await world.run(10)
            }
            await world.run(20_000)
            // One is being handled, 4 x 907 B wait.
            assert.deepEqual(
                prints("slow").map(p => parseInt(p.slow, 10)),
                [0, 1, 2, 3, 4],
            )
            assert.equal(device.last("drop").what, "in")
        })
    })

    test("messages one by one, a little faster than their handler: a burst of 60 is waited for, none is lost", async () => {
        await withPuppet(async ({ world, send, untilPrint }) => {
            for (let i = 0; i < 60; ++i) {
                send("nap", "3")
                await world.run(2)
            }
            await world.run(1000)
            send("count")
            const { counters } = await untilPrint("counters", 1, 1000)
            assert.equal(counters.dropped, 0)
            assert.equal(counters.received, 61)
        })
    })

    test("ten messages in one segment, for three handlers each: all thirty calls are made, in order", async () => {
        const filters = ["w/x", "w/+", "#"]
        await withApp({ scene: ["listen", filters] }, async bench => {
            const { world, broker, device, untilPrint, prints } = bench
            await untilPrint("sub", 3, 20_000)
            broker.latest.oneSegment(() => {
                for (let i = 0; i < 10; ++i) broker.latest.publish("w/x", "1")
            })
            await world.run(1000)
            assert.deepEqual(
                prints("got").map(p => p.index),
                Array.from({ length: 30 }, (_, i) => i % 3),
            )
            assert.equal(device.said("drop").length, 0)
        })
    })

    test("a burst of large messages, a little faster than their handler: each is waited for", async () => {
        await withPuppet(async ({ world, device, send, untilPrint }) => {
            for (let i = 0; i < 20; ++i) {
                send("nap", "3".padEnd(900, " "))
                await world.run(2)
            }
            await world.run(1000)
            send("count")
            const { counters } = await untilPrint("counters", 1, 1000)
            assert.equal(counters.dropped, 0)
            assert.equal(device.said("drop").length, 0)
        })
    })

    const floods: [string, string, number][] = [
        ["two messages in each millisecond, for nobody", "nobody", 2],
        ["messages as fast as their handler", "do/nap", 1],
    ]
    for (const [what, topic, count] of floods)
        test(`${what}, for ten seconds: PINGREQs leave on time`, async () => {
            const options = { keepAliveSeconds: 1, pingMs: 1000 }
            await withApp({ scene: ["puppet"], options }, async bench => {
                const { world, broker, untilPrint } = bench
                await untilPrint("ready", 1, 20_000)
                const { latest } = broker
                const before = latest.sent("pingreq").length
                for (let i = 0; i < 10_000; ++i) {
                    latest.oneSegment(() => {
                        for (let k = 0; k < count; ++k)
                            latest.publish(topic, "1")
                    })
                    await world.run(1)
                }
                const pings = latest.sent("pingreq").length - before
                assert.ok(pings >= 10, `${pings} PINGREQs in ten seconds`)
                assert.equal(broker.conns.length, 1)
            })
        })

    test("ten messages in each millisecond: the connection is given up, and its line says why", async () => {
        await withApp({ scene: ["puppet"] }, async bench => {
            const { world, broker, device, untilPrint } = bench
            await untilPrint("ready", 1, 20_000)
            const { latest } = broker
            for (let ms = 0; ms < 500 && latest.isOpen; ++ms) {
                latest.oneSegment(() => {
                    for (let k = 0; k < 10; ++k) latest.publish("nobody", "1")
                })
                await world.run(1)
            }
            await world.run(100)
            assert.equal(device.last("lost").reason, "input too fast")
            assert.equal(device.last("drop").what, "chunk in")
            await world.run(device.last("retry").delayMs + 1000)
            assert.ok(device.isConnected)
        })
    })

    test("a bug of the client met by a message costs the connection, and the next comes when the log says", async () => {
        await withApp({ scene: ["puppet"] }, async bench => {
            const { world, broker, device, untilPrint } = bench
            await untilPrint("ready", 1, 20_000)
            broker.latest.publish("do/bug", "")
            await world.run(100)
            broker.latest.publish("nobody", "")
            await world.run(100)
            assert.equal(device.last("lost").reason, "internal error")
            await world.run(device.last("retry").delayMs)
            assert.ok(device.isConnected)
        })
    })

    test("a handler that stops and starts the client comes back to its own connection", async () => {
        await withApp({ scene: ["puppet"] }, async bench => {
            const { world, broker, untilPrint } = bench
            await untilPrint("ready", 1, 20_000)
            const filters = broker.sent("subscribe").length
            broker.latest.publish("do/stop", "")
            await untilPrint("restarted", 1, 5000)
            await world.until("connected", 10_000)
            await world.run(1000)
            assert.equal(broker.conns.length, 2)
            assert.equal(broker.conns[0].sent("disconnect").length, 1)
            assert.equal(broker.latest.sent("subscribe").length, filters)
        })
    })
})

describe("stop() and start()", () => {
    const PAUSE_MS = 600_000

    for (const state of [
        "halted",
        "noLink",
        "holdOff",
        "connecting",
        "awaitingConnack",
        "connected",
        "disconnecting",
    ])
        test(`stop() in ${state}: no attempt for ten minutes, then start() connects`, async () => {
            await withApp(
                { scene: ["stopIn", state, PAUSE_MS] },
                async ({ world, broker, device, untilPrint, prints }) => {
                    // Long enough that each state is seen.
                    world.net.fault("*", latency(50))
                    await untilPrint("stopIn", 1, 20_000)
                    assert.equal(prints("stopIn")[0].stopIn, state)
                    await world.run(1000)
                    const attempts = device.said("attempt").length
                    const dials = device.network.dials
                    assert.equal(broker.open.length, 0)
                    const then = await untilPrint("then", 1, PAUSE_MS + 10_000)
                    assert.equal(then.then, "halted")
                    assert.equal(device.said("attempt").length, attempts)
                    assert.equal(device.network.dials, dials)
                    assert.equal(device.last("halt").reason, "stopped")
                    await untilPrint("back", 1, 10_000)
                    await world.run(60_000)
                    assert.equal(broker.open.length, 1)
                    assert.equal(device.said("attempt").length, attempts + 1)
                },
            )
        })
})

describe("many subscriptions", () => {
    for (const count of [1, 4, 5, 50])
        test(`${count} subscriptions: at most 4 asked at a time, made again once at each connection, none that was dropped`, async () => {
            await withApp(
                { scene: ["many", count] },
                async ({ world, broker, device, untilPrint }) => {
                    const late: typeof plays.noSubacks = () => ({
                        subscribe(c, p) {
                            const packet = { ...p }
                            waiting++
                            mostWaiting = Math.max(mostWaiting, waiting)
                            c.after(20, () => {
                                waiting--
                                c.suback(packet)
                            })
                        },
                    })
                    let waiting = 0
                    let mostWaiting = 0
                    broker.always(late())
                    const { tally } = await untilPrint("tally", 1, 60_000)
                    const dropped = Math.ceil(count / 3)
                    assert.deepEqual(tally, { granted: count, done: dropped })
                    assert.equal(mostWaiting, Math.min(count, 4))
                    const first = broker.conns[0]
                    assert.deepEqual(
                        first
                            .sent("subscribe")
                            .map(r => r.packet.subscriptions[0].topic)
                            .sort(),
                        upTo(count)
                            .map(i => `many/${i}`)
                            .sort(),
                    )
                    for (let round = 0; round < 3; ++round) {
                        await world.run(12_000)
                        waiting = 0
                        broker.latest.rst()
                        await world.run(1000)
                        await world.until("connected", 60_000)
                        await world.run(5000)
                        assert.deepEqual(
                            broker.latest
                                .sent("subscribe")
                                .map(r => r.packet.subscriptions[0].topic)
                                .sort(),
                            upTo(count)
                                .filter(i => i % 3)
                                .map(i => `many/${i}`)
                                .sort(),
                        )
                    }
                    assert.equal(mostWaiting, Math.min(count, 4))
                    assert.equal(device.said("lost").length, 3)
                },
            )
        })
})

describe("what is refused", () => {
    test("the 65th subscription, with the reason; the 64 are served", async () => {
        await withApp(
            { scene: ["many", 70] },
            async ({ broker, untilPrint }) => {
                const { tally } = await untilPrint("tally", 1, 20_000)
                // Every third of all is dropped again; two of the six were never there.
                assert.deepEqual(tally, {
                    granted: 64,
                    refused: 6 + 2,
                    done: 22,
                })
                assert.equal(broker.sent("subscribe").length, 64)
            },
        )
    })

    test("bad arguments: a reason in words each, nothing on the wire, never a panic", async () => {
        await withApp(
            { scene: ["bad"] },
            async ({ world, broker, prints, untilPrint }) => {
                await untilPrint("played", 1, 20_000)
                const calls = prints("call")
                assert.ok(calls.length >= 40)
                const reasons: [call: RegExp, reason: RegExp][] = [
                    [/^publish topic $/, /topic is empty \[MQTT-4\.7\.3-1\]/],
                    [/^publish topic (a\/\+|#)/, /wildcard/],
                    [/^publish topic a\0b/, /U\+0000/],
                    [/^publish topic /, /topic is not text/],
                    [/^publish payload of 5000 B/, /5007 bytes, at most 4096/],
                    [/^publish payload of/, /25007 bytes, at most 4096/],
                    [/^publish payload/, /neither text nor a Buffer/],
                    [/^subscribe filter $/, /filter is empty/],
                    [/^subscribe filter \S*#/, /filter has #/],
                    [/^subscribe filter \S*\+/, /filter has \+ inside/],
                    [/^subscribe filter a\0b/, /U\+0000/],
                    [/^subscribe filter/, /filter is not text/],
                    [/^subscribe qos/, /qos must be 0 or 1/],
                    [/^subscribe handler/, /handler is no function/],
                    [/^unsubscribe/, /not subscribed/],
                ]
                const used = new Set<RegExp>()
                for (const { call, outcome } of calls) {
                    const [known, reason] = reasons.find(r => r[0].test(call))!
                    used.add(known)
                    assert.match(outcome, reason, call)
                    assert.match(outcome, /^refused: /)
                }
                assert.equal(used.size, reasons.length)
                await world.until("connected", 10_000)
                await world.run(1000)
                assert.deepEqual(
                    broker.packets.map(r => r.packet.cmd),
                    ["connect"],
                )
            },
        )
    })

    test("options: every one of startMqtt out of its range is a RangeError that names it, and the ends of the range are taken", async () => {
        const told = new Set<string>()
        for (let at = 0; at < OPTION_NAMES.length; at += 7) {
            const names = OPTION_NAMES.slice(at, at + 7)
            await withApp(
                { scene: ["options", names] },
                async ({ prints, untilPrint }) => {
                    await untilPrint("played", 1, 60_000)
                    const rows = names.flatMap(name => optionRows(name))
                    const tried = prints("option")
                    assert.equal(tried.length, rows.length)
                    rows.forEach((row, i) => {
                        told.add(row.name)
                        const { option, threw } = tried[i]
                        assert.equal(option, row.name)
                        const what = `${option}, row ${tried[i].row}: ${threw}`
                        if (row.error)
                            assert.ok(
                                threw.startsWith(`RangeError: ${row.error}`),
                                what,
                            )
                        else assert.equal(threw, "", what)
                    })
                },
            )
        }
        assert.equal(told.size, OPTION_NAMES.length)
    })

    test("publish while stopped is refused, and works again after start()", async () => {
        await withApp(
            { scene: ["stopped"] },
            async ({ broker, untilPrint, world }) => {
                const { outcomes } = await untilPrint("outcomes", 1, 30_000)
                assert.deepEqual(outcomes, [
                    "sent",
                    "refused: stopped",
                    "queued",
                    "sent",
                ])
                await world.run(1000)
                assert.deepEqual(numbers(broker.sent("publish")), [1, 3, 4])
            },
        )
    })
})
