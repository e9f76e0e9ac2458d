// Ten minutes of everything at random, from a seed: an application that calls whatever the library
// offers, a correct and strict broker with traffic of its own, and every fault of the lab. No panic, no breach of
// the standard, and in the calm after each round the same heap and the same fibers as after the first.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as faults from "../../../host/lab/faults"
import type { Fault } from "../../../host/lab/net"
import { World } from "../../../host/lab/world"
import { printsOf } from "./app"

const ROUNDS = 8
const ROUND_MS = 75_000
const STORM_MS = 45_000

/** Kinds of trouble; each round draws some. */
const TROUBLE: (() => Fault)[] = [
    () => faults.refuse(),
    () => faults.blackHole(),
    () => faults.noSuchHost(),
    () => faults.latency(20, 200),
    () => faults.split(5),
    () => faults.coalesce(30),
    () => faults.swallow(),
    () => faults.swallowToDevice(),
    () => faults.swallowToBroker(),
    () => faults.partition(),
    () => faults.resetAfter(1500),
    () => faults.finAfter(2500),
    () => faults.resetAfterBytes(200),
    () => faults.resetAfterBytesToBroker(300),
    () => faults.writeReturns(-1),
    () => faults.openFails(),
    () => faults.noNetwork(),
    () => faults.lateClose(150),
]

const TOPICS = ["r/a", "r/a/b", "r/c/d/e", "r/big", "x/a/y", "q/x", "$SYS/load"]

/** A storm of faults and messages from the broker, planned ahead for `STORM_MS`. */
function storm(world: World, broker: ReturnType<World["broker"]>) {
    const { random } = world
    for (let i = 0; i < 8; ++i)
        world.after(random.below(STORM_MS - 6000), () => {
            const fault = random.pick(TROUBLE)()
            const on = world.net.fault(
                "*",
                faults.sometimes(50 + random.below(51), fault),
            )
            world.after(500 + random.below(5000), () => on.off())
        })
    for (let i = 0; i < 250; ++i)
        world.after(random.below(STORM_MS), () => {
            const burst = random.chance(10) ? 12 : 1
            for (let k = 0; k < burst; ++k) {
                const bytes = random.chance(5)
                    ? random.below(30_000)
                    : random.below(80)
                broker.publish(random.pick(TOPICS), random.bytes(bytes), {
                    qos: random.chance(50) ? 1 : 0,
                    retain: random.chance(3),
                })
            }
        })
    if (random.chance(50))
        world.after(random.below(STORM_MS - 10_000), () => {
            broker.crash({ keep: random.chance(50) })
            world.after(2000, () => broker.start())
        })
    for (let i = 0; i < 2; ++i)
        world.after(random.below(STORM_MS), () => {
            for (const id of broker.connected) broker.kick(id)
        })
    // Whatever it is, it is over with the storm.
    world.after(STORM_MS, () => world.net.heal())
}

async function tenMinutes(seed: number) {
    const world = new World({ seed })
    const broker = world.broker()
    const device = await world.device({
        program: "test/bytecode/api-app.ts",
        settings: {
            SCENE: JSON.stringify(["random", seed, ROUNDS]),
            OPTIONS: JSON.stringify({
                keepAliveSeconds: 10,
                pingMs: 2000,
                // All faults over, it has to be back before the calm.
                policy: { minMs: 200, capMs: 3000, overloadCapMs: 6000 },
            }),
        },
    })
    device.powerOn()
    await world.run(1500)
    const calm: { bytes: number; fibers: number }[] = []
    for (let round = 0; round < ROUNDS; ++round) {
        storm(world, broker)
        const before = printsOf(device, "calmOver").length
        await world.until(
            () => printsOf(device, "calm").length > round,
            ROUND_MS + 20_000,
        )
        let bytes = Infinity
        let fibers = Infinity
        while (printsOf(device, "calmOver").length === before) {
            await world.run(31)
            // Without garbage: when it is collected is chance.
            bytes = Math.min(bytes, device.liveHeapBytes())
            fibers = Math.min(fibers, device.heap().fibers)
        }
        calm.push({ bytes, fibers })
    }
    await world.close()
    return { world, broker, device, calm }
}

for (const seed of [1, 2, 3])
    test(`ten minutes of random calls, messages and faults, seed ${seed}: no panic, flat heap and fibers`, async t => {
        const { broker, device, calm, world } = await tenMinutes(seed)
        try {
            assert.deepEqual(device.panics, [])
            assert.deepEqual(device.aborts, [])
            assert.equal(device.restarts.length + device.reboots.length, 0)
            assert.equal(device.flashWrites, 0)
            assert.deepEqual(broker.violations, [])
            const { calls, got, changes, counters } = printsOf(
                device,
                "calm",
            ).at(-1)!
            // It was no quiet time.
            assert.ok(calls > 1000 && got > 200, `${calls} calls, ${got} got`)
            assert.ok(counters.losses > 15, `${counters.losses} losses`)
            assert.ok(counters.handlerErrors > 10)
            assert.ok(changes > 50, `${changes} changes of state`)
            const said = calm.map(c => `${c.bytes}/${c.fibers}`).join(" ")
            t.diagnostic(`calm heap B/fibers: ${said}`)
            const [first] = calm
            for (const { bytes, fibers } of calm) {
                assert.equal(fibers, first.fibers, said)
                assert.ok(Math.abs(bytes - first.bytes) <= 600, said)
            }
        } catch (e) {
            ;(e as Error).message += `\n${world.tail(60)}`
            throw e
        }
    })
