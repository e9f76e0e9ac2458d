// Commands through a broker: what is done, what is refused and why, and that nothing an odd message
// says can hurt the device.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as faults from "../../../host/lab/faults"
import * as plays from "../../../host/lab/plays"
import { onBench, untilSaid, type Bench } from "./bench"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const SETTINGS = { TELEMETRY: 86400 }

interface Sent {
    payload?: string | Uint8Array
    qos?: 0 | 1
    id?: number
    retain?: boolean
    dup?: boolean
}

/** Sends a command and gives the device a second. */
async function send(bench: Bench, name: string, sent: Sent = {}) {
    const { world, broker, device } = bench
    const { payload = "", ...more } = sent
    broker.latest.publish(
        `herdless/${device.id}/cmd/${name}`,
        payload,
        more as object,
    )
    await world.run(1000)
}

/** All answers so far. */
function answers({ broker, device }: Bench): any[] {
    return broker
        .sent("publish")
        .filter(p => p.packet.topic === `herdless/${device.id}/res`)
        .map(p => JSON.parse(p.packet.payload.toString()))
}

/** Sends a command; its one answer. */
async function ask(bench: Bench, name: string, sent?: Sent): Promise<any> {
    const before = answers(bench).length
    await send(bench, name, sent)
    const after = answers(bench).slice(before)
    assert.equal(after.length, 1, `answers to ${name}`)
    return after[0]
}

/** A device that has run for more than a minute and is connected. */
async function settled(bench: Bench) {
    await bench.world.until("connected", MINUTE_MS)
    await bench.world.run(2 * MINUTE_MS)
}

/** What the device sent since a time, in words, telemetry aside. */
const wireSince = ({ broker, device }: Bench, sinceMs: number) =>
    broker.packets
        .filter(r => r.atMs >= sinceMs)
        .map(({ packet: p }) =>
            p.cmd === "publish"
                ? `${p.topic.replace(`herdless/${device.id}/`, "")} ${p.payload}`
                : p.cmd,
        )
        .filter(what => !what.startsWith("telemetry"))

describe("ping, status, retry and log", () => {
    test("ping is answered, whatever its payload, qos and flags", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            const pings: Sent[] = [
                {},
                { payload: "x".repeat(900) },
                { payload: Buffer.from([0, 255, 254, 0xc3]) },
                { qos: 1, id: 1 },
                { qos: 1, id: 65535, dup: true },
                { retain: true },
            ]
            for (const sent of pings)
                assert.deepEqual(await ask(bench, "ping", sent), {
                    cmd: "ping",
                    ok: true,
                })
            assert.deepEqual(
                bench.broker.sent("puback").map(p => p.packet.messageId),
                [1, 65535],
            )
        }))

    test("status tells state and counters as they are", () =>
        onBench({ settings: SETTINGS }, async bench => {
            const { world, broker } = bench
            await settled(bench)
            broker.latest.rst()
            await untilSaid(bench, "connected", 2, MINUTE_MS)
            await world.run(1000)
            const status = await ask(bench, "status")
            assert.equal(status.ok, true)
            assert.equal(status.state, "connected")
            assert.equal(status.connects, 2)
            assert.equal(status.losses, 1)
            assert.equal(status.dropped, 0)
            assert.equal(status.handlerErrors, 0)
            assert.equal(status.received, 1)
            assert.ok(Math.abs(status.upMs - world.nowMs) < 1100)
        }))

    test("retry in a session changes nothing and is answered", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            assert.deepEqual(await ask(bench, "retry"), {
                cmd: "retry",
                ok: true,
            })
            assert.equal(bench.broker.conns.length, 1)
        }))

    test("log: wire lines for so many seconds, then no more", () =>
        onBench({ settings: SETTINGS }, async bench => {
            const { world, device } = bench
            await settled(bench)
            const debug = () =>
                device.console.filter(c => c.text.startsWith("? mqtt")).length
            await ask(bench, "log", { payload: "30" })
            assert.ok(debug() > 0)
            await world.run(30_000)
            const shown = debug()
            for (let i = 0; i < 5; ++i) await ask(bench, "ping")
            assert.equal(debug(), shown)
            await ask(bench, "log")
            await world.run(9 * MINUTE_MS)
            await ask(bench, "ping")
            assert.ok(debug() > shown + 3, "600 s without a payload")
            await ask(bench, "log", { payload: "0" })
            const off = debug()
            await ask(bench, "ping")
            assert.equal(debug(), off, "0 ends it")
        }))

    test("log refuses what is not 0 to 86400 seconds", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            const wrong = [
                ..."86401,-1,1e3, 5,5 ,0x10,1.5,ten,99999999999,\0".split(","),
                Buffer.from([0x31, 0xff]),
                Buffer.from([0xc3]),
                "1".repeat(800),
            ]
            for (const payload of wrong)
                assert.deepEqual(await ask(bench, "log", { payload }), {
                    cmd: "log",
                    ok: false,
                    why: "payload must be 0..86400 seconds",
                })
            for (const payload of ["0", "86400", "00000007"])
                assert.equal((await ask(bench, "log", { payload })).ok, true)
        }))
})

test("the broker refuses the first SUBSCRIBEs, its access rules still loading: asked for again a minute later, and commands work", () =>
    onBench({ settings: SETTINGS }, async bench => {
        const { world, broker, device } = bench
        let refusals = 0
        broker.always({
            subscribe: (c, p) => c.suback(p, [++refusals <= 3 ? 0x80 : 0]),
        })
        await world.until("connected", MINUTE_MS)
        await world.run(MINUTE_MS - 1000)
        // Commands and the fleet's policy.
        assert.equal(broker.sent("subscribe").length, 2)
        await world.run(2 * MINUTE_MS)
        const atMs = broker.sent("subscribe").map(r => r.atMs)
        assert.equal(atMs.length, 5, "two, two, and the one refused again")
        for (const i of [2, 4]) {
            const waitMs = atMs[i] - atMs[i - 2]
            assert.ok(waitMs >= 60_000 && waitMs < 60_100, `${waitMs}`)
        }
        assert.deepEqual(await ask(bench, "ping"), { cmd: "ping", ok: true })
        assert.equal(device.said("lost").length, 0)
    }))

describe("what is not a command", () => {
    test("an unknown name is answered: unknown command", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            const names = [
                "pong",
                "PING",
                "ping ",
                "",
                "reboot2",
                'a"b\\c',
                "$SYS",
                "__proto__",
                "toString",
            ]
            for (const name of names)
                assert.deepEqual(
                    await ask(bench, name),
                    { cmd: name, ok: false, why: "unknown command" },
                    name,
                )
        }))

    test("a name of 800 bytes, one that is not ASCII, one that is not one level: the device goes on", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            const long = "n".repeat(800)
            // An answer names what it can: 40 bytes of ASCII.
            assert.equal((await ask(bench, long)).cmd, "n".repeat(40))
            assert.equal((await ask(bench, "\u00e9\u20ac")).ok, false)
            // A broker must not send what was not subscribed to; it does.
            await send(bench, "ping/x")
            bench.broker.latest.publish("somewhere/else", "x")
            await bench.world.run(1000)
            assert.equal((await ask(bench, "ping")).ok, true)
            assert.equal(bench.broker.conns.length, 1)
        }))

    test("a command larger than MAX_PACKET: a drop line, acknowledged, no answer", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await settled(bench)
            const before = answers(bench).length
            await send(bench, "reboot", {
                payload: "x".repeat(3000),
                qos: 1,
                id: 7,
            })
            assert.equal(answers(bench).length, before)
            assert.equal(bench.device.said("drop").length, 1)
            assert.deepEqual(
                bench.broker.sent("puback").map(p => p.packet.messageId),
                [7],
            )
            assert.equal((await ask(bench, "ping")).ok, true)
        }))

    test("a hundred commands in one segment: some are dropped, said so, and it goes on", () =>
        onBench({ settings: SETTINGS }, async bench => {
            const { world, broker, device } = bench
            await settled(bench)
            broker.latest.oneSegment(() => {
                for (let i = 1; i <= 100; ++i)
                    broker.latest.publish(
                        `herdless/${device.id}/cmd/ping`,
                        "",
                        { qos: 1, id: i },
                    )
            })
            await world.run(20_000)
            const acked = broker.sent("puback").map(p => p.packet.messageId)
            assert.deepEqual(
                acked,
                Array.from({ length: 100 }, (_, i) => i + 1),
            )
            const done = answers(bench).length
            assert.ok(done >= 16 && done <= 100, `${done} answers`)
            const status = await ask(bench, "status")
            assert.equal(status.dropped, 100 - done)
            assert.equal(broker.conns.length, 1)
        }))
})

describe("reboot", () => {
    test("QoS 1: acknowledged first, then the answer, the farewell, DISCONNECT; and it comes back", () =>
        onBench({ settings: SETTINGS, reboots: 1 }, async bench => {
            const { world, broker, device } = bench
            await settled(bench)
            const atMs = world.nowMs
            await send(bench, "reboot", { qos: 1, id: 5 })
            await untilSaid(bench, "connected", 2, MINUTE_MS)
            await world.run(1000)
            assert.deepEqual(wireSince(bench, atMs), [
                "puback",
                'res {"cmd":"reboot","ok":true}',
                "status offline",
                "disconnect",
                "connect",
                "status online",
                "subscribe",
                "subscribe",
            ])
            assert.equal(broker.conns.length, 2)
            assert.ok(device.reboots[0] - atMs < 1000)
            assert.equal(device.said("halt").length, 1)
            assert.equal(device.said("boot").length, 2)
            assert.equal(device.last("boot").cause, "command")
            assert.equal(device.last("boot").starts, 1)
            assert.equal(device.last("reboot").cause, "command")
        }))

    test("QoS 0 works too, and a minute later once more", () =>
        onBench({ settings: SETTINGS, reboots: 2 }, async bench => {
            for (let i = 0; i < 2; ++i) {
                await settled(bench)
                await send(bench, "reboot")
            }
            await settled(bench)
            assert.equal(bench.device.reboots.length, 2)
            assert.equal(bench.broker.sent("disconnect").length, 2)
        }))

    test("refused: retained, DUP, or in the first minute; the reason says which", () =>
        onBench({ settings: SETTINGS }, async bench => {
            const { world, device } = bench
            await world.until("connected", MINUTE_MS)
            await world.run(1000)
            const refusal = async (sent?: Sent) => {
                const { cmd, ok, why } = await ask(bench, "reboot", sent)
                assert.deepEqual([cmd, ok], ["reboot", false])
                return why
            }
            assert.equal(await refusal(), "started less than 60 s ago")
            await world.run(50_000)
            assert.equal(await refusal(), "started less than 60 s ago")
            await world.run(MINUTE_MS)
            assert.equal(await refusal({ retain: true }), "retained")
            const dup = await refusal({ qos: 1, id: 3, dup: true })
            assert.match(dup, /DUP/)
            assert.equal(device.reboots.length, 0)
        }))

    test("retained on a correct broker: refused at every connection, no reboot loop", async () => {
        await onBench(
            { settings: { ...SETTINGS, MQTT_HOST: "strict" } },
            async ({ world, device }) => {
                const strict = world.broker("strict:1883")
                strict.publish(`herdless/${device.id}/cmd/reboot`, "now", {
                    qos: 1,
                    retain: true,
                })
                await world.until("connected", MINUTE_MS)
                for (let i = 0; i < 3; ++i) {
                    await world.run(2 * MINUTE_MS)
                    strict.kick(`herdless-${device.id}`)
                }
                await world.run(2 * MINUTE_MS)
                const why = strict.messages
                    .filter(m => m.topic.endsWith("/res"))
                    .map(m => JSON.parse(m.payload.toString()).why)
                assert.deepEqual(why, Array(4).fill("retained"))
                assert.deepEqual(strict.violations, [])
            },
        )
    })

    test("on a correct broker: no will is sent, and the retained status goes offline, then online", () =>
        onBench(
            { settings: { ...SETTINGS, MQTT_HOST: "strict" }, reboots: 1 },
            async ({ world, device }) => {
                const strict = world.broker("strict:1883")
                const status = `herdless/${device.id}/status`
                await world.until("connected", MINUTE_MS)
                await world.run(2 * MINUTE_MS)
                strict.publish(`herdless/${device.id}/cmd/reboot`, "")
                await world.until(() => device.reboots.length > 0, 2000)
                await world.run(10)
                assert.equal(
                    strict.retained.get(status)?.payload.toString(),
                    "offline",
                )
                await world.until("connected", MINUTE_MS)
                await world.run(1000)
                assert.equal(
                    strict.retained.get(status)?.payload.toString(),
                    "online",
                )
                assert.equal(strict.wills.length, 0)
                assert.deepEqual(strict.violations, [])
            },
        ))

    test("the broker vanishes in the middle of the goodbye: it reboots all the same", () =>
        onBench({ settings: SETTINGS, reboots: 1, maxOpen: 2 }, async bench => {
            const { world, device } = bench
            await settled(bench)
            const fault = world.net.fault("*", faults.swallowToBroker())
            await send(bench, "reboot")
            await world.run(2000)
            assert.equal(device.reboots.length, 1)
            fault.off()
            await world.until("connected", MINUTE_MS)
        }))

    test("QoS 1 and the connection lost before PUBACK arrives: the repetition is refused", () =>
        onBench({ settings: SETTINGS, reboots: 1 }, async bench => {
            await settled(bench)
            await send(bench, "reboot", { qos: 1, id: 9 })
            await settled(bench)
            const again = await ask(bench, "reboot", {
                qos: 1,
                id: 9,
                dup: true,
            })
            assert.equal(again.ok, false)
        }))
})

describe("retry and an overload", () => {
    test("retained, so that each short session begins with it: refused, and the waits grow all the same", () =>
        onBench({ settings: SETTINGS }, async bench => {
            const { world, broker, device } = bench
            broker.always({
                ...plays.kick(1500),
                subscribe(c, p) {
                    c.suback(p)
                    c.publish(`herdless/${device.id}/cmd/retry`, "", {
                        retain: true,
                    })
                },
            })
            await world.run(HOUR_MS)
            const tries = device.said("attempt").length
            assert.ok(tries < 20, `${tries} attempts in an hour`)
            for (const { ok, why } of answers(bench))
                assert.deepEqual([ok, why], [false, "retained"])
        }))
})
