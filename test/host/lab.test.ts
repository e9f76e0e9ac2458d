// A world as a whole: the firmware in it, its heap from outside, and that time saved is not
// behaviour changed.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as faults from "../../host/lab/faults"
import { walkHeap } from "../../host/lab/heap"
import { mute } from "../../host/lab/plays"
import { World } from "../../host/lab/world"

const settings = { MQTT_HOST: "broker", TELEMETRY: 5 }

test("the firmware connects, is muted, and comes back; all of it is on record", async () => {
    const world = new World({ seed: 7 })
    const broker = world.scripted()
    broker.next(2, mute())
    const device = await world.device({ settings })
    device.powerOn()
    await world.until("connected", 120_000)
    assert.equal(device.said("attempt").length, 3)
    assert.equal(device.last("connected").n, 3)
    assert.equal(broker.conns.length, 3)
    assert.equal(broker.maxOpen, 1)
    assert.equal(broker.sent("connect")[0].packet.keepalive, 60)
    assert.deepEqual(device.panics, [])
    await world.close()
})

test("what does not happen in time fails with the last lines of the log", async () => {
    const world = new World()
    const device = await world.device({ settings })
    device.powerOn()
    await assert.rejects(world.until("connected", 5000), /ECONNREFUSED/)
    await world.close()
})

test("a crash is a panic, and the runtime starts the program again", async () => {
    const world = new World()
    world.scripted()
    const device = await world.device({ settings })
    device.powerOn()
    await world.until("connected", 10_000)
    device.crash()
    await world.run(1000)
    assert.equal(device.panics.length, 1)
    assert.equal(device.isConnected, false)
    await world.until("connected", 10_000)
    await world.close()
})

test("the heap seen from outside is the heap the VM reports", async () => {
    const world = new World()
    const device = await world.device({ program: "test/bytecode/fill-heap.ts" })
    device.powerOn()
    await world.run(2100)
    assert.equal(device.heap().fibers, 3)
    const seen: string[] = []
    const options = device.vm.options
    const { onConsole } = options
    options.onConsole = text => {
        onConsole?.(text)
        if (!text.includes("stats:")) return
        const h = walkHeap(device.vm.memory)
        seen.push(
            `stats: ${h.objects + h.freeBlocks} objects, ${h.usedBytes} B used, ` +
                `${h.freeBytes} B free (${h.largestFreeBytes} B max block)`,
        )
    }
    await world.run(2000)
    const said = device.console.filter(c => c.text.includes("stats:"))
    assert.ok(said.length > 0)
    assert.deepEqual(
        seen,
        said.map(c => c.text),
    )
    await world.close()
})

/** Fifteen minutes of a small fleet under everything at once. */
async function hardTimes(seed: number, lazyTurns: boolean): Promise<string[]> {
    const world = new World({ seed, lazyTurns })
    const broker = world.broker()
    for (let i = 0; i < 5; ++i) {
        const device = await world.device({ settings })
        world.after(world.random.below(1000), () => device.powerOn())
    }
    for (const fault of [
        faults.latency(1, 30),
        faults.split(5),
        faults.sometimes(30, faults.resetAfter(5000)),
        faults.sometimes(20, faults.finAfterBytes(6)),
        faults.sometimes(20, faults.blackHole()),
        faults.sometimes(20, faults.lateClose(150)),
        faults.sometimes(5, faults.writeReturns(-1)),
    ])
        world.net.fault("*", fault)
    await world.run(500_000)
    broker.crash()
    await world.run(100_000)
    broker.start()
    for (const device of world.devices) {
        device.powerCycle()
        await world.run(10_000)
        broker.publish(`herdless/${device.id}/cmd/x`, "hello", { qos: 1 })
    }
    world.net.heal()
    await world.until("connected", 600_000)
    await world.run(60_000)
    await world.close()
    assert.deepEqual(broker.violations, [])
    assert.equal(world.devices.flatMap(d => d.panics).length, 0)
    return world.log.text().split("\n")
}

test("VMs that sleep until something is due do the same at the same time", async () => {
    const eager = await hardTimes(3, false)
    const lazy = await hardTimes(3, true)
    // What happens to two devices in the same millisecond has no order, and the runtime's
    // services (flash is one) get their turn every 10 ms, counted from the one before.
    const comparable = (log: string[]) =>
        log.map(line => line.replace(/^ *\d+ (d\d flash)/, "$1")).sort()
    assert.deepEqual(comparable(lazy), comparable(eager))
    assert.ok(lazy.length > 1000)
})
