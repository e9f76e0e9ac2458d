// The fleet's policy through a broker: one retained message retunes a device, and nothing that is published there
// can take it out of its bounds, wear out its flash, or keep it from the next message.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import * as plays from "../../../host/lab/plays"
import { FLEET_POLICY_KEY } from "../../../src/core/fleet-policy"
import { delays, onBench, untilSaid, type Bench } from "./bench"
import { loseReports } from "./lose-reports"

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const SETTINGS = { TELEMETRY: 86400, KEEP_ALIVE: 0 }
const TOPIC = "herdless/policy"

/** Times a write and its reading back is tried at once. */
const TRIES = 3

/** A policy message; a spread makes first waits that no other policy makes. */
const policy = (issue: number, more: object = {}) =>
    JSON.stringify({
        issue,
        minMs: 500,
        capMs: 1000,
        spreadMs: 0,
        overloadCapMs: HOUR_MS,
        jitter: "proportional",
        ...more,
    })

/** The broker keeps this message for whoever subscribes. */
function retain({ broker }: Bench, payload: string | Uint8Array) {
    broker.always({
        subscribe(c, p) {
            c.suback(p)
            if (p.subscriptions[0].topic === TOPIC)
                c.publish(TOPIC, payload, { retain: true })
        },
    })
}

/** Publishes now, and gives the device a second. */
async function publish({ world, broker }: Bench, payload: string | Uint8Array) {
    broker.latest.publish(TOPIC, payload)
    await world.run(1000)
}

/** What the device said about policies, in short. */
const said = ({ device }: Bench) =>
    device
        .said("config")
        .filter(l => l.key === "policy")
        .map(l => `${l.key}: ${l.value} | ${l.allowed} | ${l.used}`)

/** Times a policy has been written to flash: the store is a log, and the program has the text once. */
function policyWrites({ device }: Bench): number {
    const text = Buffer.from(device.flash.image).toString("latin1")
    return text.split(',{"issue":').length - 1
}

async function connected({ world }: Bench) {
    await world.until("connected", MINUTE_MS)
    await world.run(20_000)
}

/** The wait after a loss, ms. */
async function lossWait(bench: Bench) {
    const { broker, device, world } = bench
    const before = delays(device).length
    broker.latest.fin()
    await world.run(1000)
    const waitMs = delays(device)[before]
    await connected(bench)
    return waitMs
}

const SPREAD = { spreadMs: 50_000, capMs: 60_000 }

describe("a policy of the fleet", () => {
    test("retained: applied at the first connection, in force at the next loss and after a power cut", () =>
        onBench(
            // The broker hears nothing of a power cut: its old connection stays.
            { settings: SETTINGS, flashWrites: 1, maxOpen: 2 },
            async bench => {
                const { world, device } = bench
                retain(bench, policy(7, { ...SPREAD, minMs: 20_000 }))
                await connected(bench)
                assert.deepEqual(said(bench), [
                    "policy: issue 7 | 1..1073741824 | issue 7",
                ])
                assert.ok((await lossWait(bench)) >= 20_000)
                bench.broker.always({})
                await world.run(1000)
                device.powerCycle()
                await untilSaid(bench, "boot", 2, MINUTE_MS)
                await connected(bench)
                assert.ok(delays(device)[2] >= 20_000, `${delays(device)}`)
                assert.equal(said(bench).length, 1, "nothing new was said")
            },
        ))

    test("live: applied while connected, without a reconnect", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 1, maxOpen: 2 },
            async bench => {
                await connected(bench)
                await publish(
                    bench,
                    policy(1, { minMs: 30_000, capMs: 60_000 }),
                )
                assert.equal(bench.broker.conns.length, 1)
                assert.ok((await lossWait(bench)) >= 30_000)
            },
        ))

    test("a bad one is refused with the reason, and changes nothing", () =>
        onBench({ settings: SETTINGS }, async bench => {
            await connected(bench)
            const bad: [string | Uint8Array, string][] = [
                [policy(1, { minMs: 499 }), "minMs 499 | 500..1000"],
                [
                    policy(1, { spreadMs: 2 ** 31 }),
                    "spreadMs 2147483648 | 0..3600000",
                ],
                [
                    policy(1, { overloadCapMs: 21_600_001 }),
                    "overloadCapMs 21600001 | 500..21600000",
                ],
                [policy(2 ** 30 + 1), "issue 1073741825 | 1..1073741824"],
                [policy(1, { capMs: "x" }), "capMs x | 500..3600000"],
                [
                    policy(1, { extra: 1 }),
                    "key extra | issue minMs capMs spreadMs overloadCapMs jitter",
                ],
                [Buffer.from([0x7b, 0xff]), "not text | a policy"],
                ["", "empty | a policy"],
                ["{".repeat(200), `${"{".repeat(40)} | one flat JSON object`],
                ["[".repeat(390), `${"[".repeat(40)} | one flat JSON object`],
                ["x".repeat(900), "900 characters | at most 400"],
            ]
            for (const [payload, why] of bad) {
                await publish(bench, payload)
                assert.equal(said(bench).at(-1), `policy: ${why} | settings`)
            }
            assert.equal(said(bench).length, bad.length)
            const waitMs = await lossWait(bench)
            assert.ok(waitMs >= 1000 && waitMs <= 2200, `${waitMs}`)
        }))

    test("20 kB of retained garbage: dropped at each connection, and it goes on", () =>
        onBench({ settings: SETTINGS }, async bench => {
            retain(bench, "{".repeat(20_000))
            await connected(bench)
            await lossWait(bench)
            assert.deepEqual(said(bench), [])
            const drops = bench.device.said("drop")
            assert.equal(drops.length, 2)
            assert.equal(drops[0].topic, TOPIC)
            assert.equal(bench.broker.conns.length, 2)
        }))

    test("an older one played back, and the same again: refused, and nothing", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 1, maxOpen: 2 },
            async bench => {
                await connected(bench)
                await publish(
                    bench,
                    policy(5, { minMs: 30_000, capMs: 60_000 }),
                )
                await publish(bench, policy(4))
                await publish(bench, policy(5))
                assert.deepEqual(said(bench).slice(1), [
                    "policy: issue 4 | above 5 | issue 5",
                    "policy: issue 5 | above 5 | issue 5",
                ])
                retain(bench, policy(5, { minMs: 30_000, capMs: 60_000 }))
                assert.ok((await lossWait(bench)) >= 30_000)
                assert.ok((await lossWait(bench)) >= 30_000)
                assert.equal(said(bench).length, 3)
            },
        ))

    test("FLEET_POLICY=off: not asked for, and what was stored is forgotten", () =>
        onBench(
            { settings: { ...SETTINGS, FLEET_POLICY: "off" } },
            async bench => {
                await connected(bench)
                const topics = bench.broker
                    .sent("subscribe")
                    .map(s => s.packet.subscriptions[0].topic)
                assert.equal(topics.length, 1, `${topics}`)
                assert.ok(topics[0].endsWith("/cmd/+"))
            },
        ))
})

describe("flash", () => {
    test("a broker that sends 1,000 newer policies: the newest it hears counts, and flash is written once an hour", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 2, maxOpen: 2 },
            async bench => {
                const { world, broker, device } = bench
                await connected(bench)
                for (let i = 1; i <= 1000; ++i) {
                    broker.latest.publish(
                        TOPIC,
                        policy(i, { minMs: 500 + (i % 400) }),
                    )
                    await world.run(20)
                }
                await world.run(1000)
                assert.equal(device.last("config").used, "issue 1000")
                assert.equal(policyWrites(bench), 1)
                await world.run(HOUR_MS - 30_000)
                assert.equal(policyWrites(bench), 1)
                await world.run(2 * MINUTE_MS)
                assert.equal(policyWrites(bench), 2)
                // And it is the newest that was written.
                device.powerCycle()
                await untilSaid(bench, "boot", 2, MINUTE_MS)
                await connected(bench)
                await publish(bench, policy(999))
                assert.equal(device.last("config").used, "issue 1000")
                await world.run(2 * HOUR_MS)
            },
        ))

    test("1,000 in one burst: what does not fit is dropped and said so, and the next connection brings the newest", () =>
        onBench({ settings: SETTINGS, flashWrites: 2 }, async bench => {
            const { world, broker, device } = bench
            await connected(bench)
            retain(bench, policy(1000))
            for (let i = 1; i <= 1000; ++i)
                broker.latest.publish(TOPIC, policy(i))
            await world.run(60_000)
            if (broker.open.length === 0) await connected(bench)
            else await lossWait(bench)
            assert.equal(device.last("config").used, "issue 1000")
            await world.run(HOUR_MS + 2 * MINUTE_MS)
        }))

    test("a power cut between apply and write: the older one, until the next connection brings the newer", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 2, maxOpen: 2 },
            async bench => {
                const { world, broker, device } = bench
                await connected(bench)
                await publish(
                    bench,
                    policy(1, { minMs: 20_000, capMs: 60_000 }),
                )
                await world.run(MINUTE_MS)
                assert.equal(policyWrites(bench), 1)
                await publish(
                    bench,
                    policy(2, { minMs: 40_000, capMs: 60_000 }),
                )
                assert.equal(device.last("config").used, "issue 2")
                retain(bench, policy(2, { minMs: 40_000, capMs: 60_000 }))
                device.powerCycle()
                await untilSaid(bench, "boot", 2, MINUTE_MS)
                await connected(bench)
                const waitMs = delays(device)[1]
                assert.ok(waitMs >= 20_000 && waitMs < 44_000, `${waitMs}`)
                assert.equal(device.last("config").used, "issue 2")
                assert.ok((await lossWait(bench)) >= 40_000)
                assert.equal(broker.conns.length, 3)
            },
        ))

    test("a write that can't be proved is tried again every hour, until it is", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 2 * TRIES + 1 },
            async bench => {
                const { world } = bench
                await connected(bench)
                let lost = true
                const key = (key: string) => lost && key === FLEET_POLICY_KEY
                const reads = loseReports(bench, key)
                await publish(bench, policy(1))
                await world.run(MINUTE_MS)
                assert.equal(reads.get(FLEET_POLICY_KEY), TRIES)
                await world.run(HOUR_MS)
                assert.equal(reads.get(FLEET_POLICY_KEY), 2 * TRIES)
                lost = false
                await world.run(3 * HOUR_MS)
                assert.equal(reads.get(FLEET_POLICY_KEY), 2 * TRIES + 1)
            },
        ))
})

describe("back to the device's own policy", () => {
    const ask = async (bench: Bench, name: string, retain = false) => {
        const { world, broker, device } = bench
        const topic = `herdless/${device.id}/cmd/${name}`
        broker.latest.publish(topic, "", { retain })
        await world.run(1000)
        const answer = broker.sent("publish").at(-1)
        return JSON.parse(`${answer?.packet.payload}`)
    }

    test("policy-reset: at once, an hour later in flash too; then any number is new", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 3, maxOpen: 2 },
            async bench => {
                const { world, device } = bench
                await connected(bench)
                await publish(
                    bench,
                    policy(2 ** 30, { minMs: 30_000, capMs: 60_000 }),
                )
                assert.equal((await ask(bench, "status")).issue, 2 ** 30)
                assert.equal((await ask(bench, "policy-reset", true)).ok, false)
                assert.equal((await ask(bench, "policy-reset")).ok, true)
                assert.equal((await ask(bench, "status")).issue, 0)
                assert.equal(
                    said(bench).at(-1),
                    "policy: reset | reset | settings",
                )
                assert.ok((await lossWait(bench)) <= 2200)
                await world.run(HOUR_MS + MINUTE_MS)
                device.powerCycle()
                await untilSaid(bench, "boot", 2, MINUTE_MS)
                await connected(bench)
                assert.equal((await ask(bench, "status")).issue, 0)
                await publish(bench, policy(1))
                assert.equal(device.last("config").used, "issue 1")
            },
        ))
})

describe("a policy that would keep the fleet out", () => {
    const HASTY = { minMs: 5000, capMs: 5000, overloadCapMs: 5000 }

    test("too impatient for an overloaded broker: after an hour the waits climb, and the next message cures it", () =>
        onBench(
            { settings: SETTINGS, flashWrites: 2, longestMs: 6 * HOUR_MS },
            async bench => {
                const { world, broker, device } = bench
                await connected(bench)
                await publish(bench, policy(1, HASTY))
                broker.always(plays.endAfterAccept(0, "rst"))
                broker.latest.fin()
                const sinceMs = world.nowMs
                await world.run(HOUR_MS - MINUTE_MS)
                const hasty = device.said("attempt").length
                assert.ok(hasty > 700, `${hasty} attempts in an hour`)
                await world.run(6 * HOUR_MS)
                const tries = device
                    .said("attempt")
                    .filter(a => a.atMs > sinceMs + HOUR_MS + MINUTE_MS)
                assert.ok(tries.length < 40, `${tries.length} attempts in 6 h`)
                retain(bench, policy(2))
                await world.until("connected", 7 * HOUR_MS)
                await world.run(2 * MINUTE_MS)
                assert.equal(device.last("config").used, "issue 2")
            },
        ))
})
