// The flash-backed outbox on the bytecode: the power cut after each event from a message's write to its mark, crashes,
// a reboot on purpose, slots full of garbage, and what it writes.
import assert from "node:assert/strict"
import { test } from "node:test"
import { keptIn } from "../../../host/lab/stored"
import { onBench, type Bench, type BenchSpec } from "./bench"

const APP: BenchSpec = {
    program: "test/bytecode/flash-app.ts",
    kills: true,
    // A power cut leaves its socket open at the broker.
    maxOpen: 4,
    flashWrites: 99,
    settings: { COUNT: 3, PADDING: 0 },
}

const keyOf = (payload: string) => payload.split(" ")[0]

/** Keys of what has reached the broker, in order, with repetitions. */
function arrived({ broker }: Bench): string[] {
    return broker.sent("publish").map(r => keyOf(`${r.packet.payload}`))
}

/** Keys of what flash holds, in order. */
const kept = ({ device }: Bench) => keptIn(device.flash.image).map(keyOf)

/** The broker is away until 20 s; by 50 s all has arrived and is marked. */
async function story(bench: Bench, stop: () => boolean) {
    const { world, broker } = bench
    broker.down()
    world.after(20_000, () => broker.up())
    await world.until(() => stop() || world.nowMs >= 50_000, 60_000)
}

/** Events of a device after which the power is cut: writes to flash, bytes out and in, and what settles a message. */
const STEP = /^flash$|^#\d+ [<>]|"settled"/

test("the power cut after every write, packet and answer: what flash has taken arrives, in order; what is marked never comes back", async () => {
    const cuts: number[] = []
    await onBench(APP, async bench => {
        await story(bench, () => false)
        assert.equal(arrived(bench).length, 3)
        assert.deepEqual(kept(bench), [])
        // Three messages and one mark.
        assert.equal(bench.device.flashWrites, 4)
        bench.world.log.entries.forEach(({ who, what }, i) => {
            if (who !== "d1" || !STEP.test(what)) return
            // Before the first, too.
            if (!cuts.length) cuts.push(i)
            cuts.push(i + 1)
        })
    })
    const seen = { lost: 0, once: 0, twice: 0 }
    for (const cut of cuts)
        await onBench(APP, async bench => {
            const { world, broker, device } = bench
            await story(bench, () => world.log.count >= cut)
            device.powerOff()
            const owed = kept(bench)
            // What is still on its way arrives.
            await world.run(1000)
            const before = arrived(bench)
            device.powerOn()
            if (world.nowMs < 20_000) broker.up()
            await world.run(60_000)
            const keys = arrived(bench)
            const after = keys.slice(before.length)
            assert.deepEqual(after.slice(0, owed.length), owed, `cut ${cut}`)
            // And three new ones.
            assert.equal(
                new Set(keys).size,
                new Set([...before, ...owed]).size + 3,
            )
            for (const key of owed)
                seen[before.includes(key) ? "twice" : "once"]++
            seen.lost += 3 - new Set([...before, ...owed]).size
            assert.deepEqual(kept(bench), [])
            device.powerCycle()
            await world.run(60_000)
            assert.equal(arrived(bench).length, keys.length + 3)
        })
    assert.ok(seen.lost && seen.once && seen.twice, JSON.stringify(seen))
})

test("a crash in an outage, again and again: the first messages arrive with their keys, before new ones", async () => {
    await onBench(
        { ...APP, settings: { COUNT: 2, PADDING: 0 } },
        async bench => {
            const { world, broker, device } = bench
            broker.down()
            for (let starts = 1; starts <= 5; ++starts) {
                await world.until(
                    () => device.said("boot").length === starts,
                    20_000,
                )
                await world.run(30_000)
                assert.equal(kept(bench).length, Math.min(2 * starts, 8))
                if (starts === 5) break
                device.crash()
                await world.run(2000)
            }
            const owed = kept(bench)
            broker.up()
            await world.run(180_000)
            const keys = arrived(bench)
            assert.deepEqual(keys.slice(0, 8), owed)
            assert.equal(new Set(keys).size, keys.length)
            assert.equal(keys.length, 10)
            assert.deepEqual(kept(bench), [])
        },
    )
})

test("a reboot on purpose: what has waited for a moment only is saved first", async () => {
    const spec = { ...APP, reboots: 1, settings: { ...APP.settings, LEAVE: 1 } }
    await onBench(spec, async bench => {
        const { world, broker, device } = bench
        broker.down()
        await world.until(() => device.reboots.length === 1, 5000)
        assert.equal(kept(bench).length, 3)
        device.powerOff()
    })
})

test("messages of the largest size, all slots full: read back at a start; larger ones stay in RAM, and a line says so", async () => {
    // 181 bytes of PUBLISH
    const spec = { ...APP, settings: { COUNT: 10, PADDING: 135 } }
    await onBench(spec, async bench => {
        const { world, broker, device } = bench
        broker.down()
        await world.run(30_000)
        const owed = kept(bench)
        assert.equal(owed.length, 8)
        device.powerCycle()
        await world.run(10_000)
        broker.up()
        await world.run(60_000)
        assert.deepEqual(arrived(bench).slice(0, 8), owed)
        assert.equal(device.said("config").length, 0)
    })
    const large = { ...APP, settings: { COUNT: 3, PADDING: 170 } }
    await onBench(large, async bench => {
        const { world, broker, device } = bench
        broker.down()
        await world.run(70_000)
        assert.equal(device.flashWrites, 0)
        const { key, allowed, used } = device.last("config")
        assert.deepEqual(
            [key, allowed, used],
            ["OUT", "at most 181 B in flash", "RAM only"],
        )
        assert.equal(device.said("config").length, 1)
    })
})

test("slots full of garbage: empty, one line, and the program goes on", async () => {
    const garbage = Object.fromEntries(
        Array.from({ length: 9 }, (_, i) => [`OUT${i}`, `"rubbish ${i}"`]),
    )
    const spec = { ...APP, settings: { ...APP.settings, ...garbage } }
    await onBench(spec, async bench => {
        const { world, device } = bench
        await world.run(30_000)
        assert.equal(arrived(bench).length, 3)
        assert.equal(device.said("config").length, 1)
        assert.equal(device.last("config").value, "9 unreadable")
    })
})

test("while the broker answers, flash is not written to", async () => {
    const spec = { ...APP, settings: { COUNT: 60, PADDING: 0 } }
    await onBench(spec, async bench => {
        await bench.world.run(60_000)
        assert.ok(arrived(bench).length >= 16)
        assert.equal(bench.device.flashWrites, 0)
    })
})
