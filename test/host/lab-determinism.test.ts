// Same seed, same run, to the byte; another seed, another run. Devices with Wi-Fi, whose
// access point, broker and power come and go.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as faults from "../../host/lab/faults"
import { World } from "../../host/lab/world"

const DEVICES = 30

async function fleet(seed: number): Promise<World> {
    const world = new World({ seed })
    const broker = world.broker()
    for (let i = 0; i < DEVICES; ++i) {
        const device = await world.device({
            settings: { MQTT_HOST: "broker" },
            wifi: true,
        })
        device.powerOn()
        const joinMs = 2000 + world.random.below(3000)
        world.after(joinMs, () => device.joinWifi())
    }
    world.net.fault("*", faults.latency(0, 20))
    world.net.fault("*", faults.sometimes(30, faults.resetAfter(3000)))
    await world.run(8000)
    const some = world.devices.filter(() => world.random.chance(20))
    const others = world.devices.filter(() => world.random.chance(20))
    broker.crash()
    await world.run(2000)
    for (const device of some) device.leaveWifi()
    for (const device of others) device.powerCycle()
    broker.start()
    await world.run(2000)
    for (const device of some) device.joinWifi([10, 0, 0, 9])
    await world.run(8000)
    await world.close()
    return world
}

test("the same seed gives the same run to the byte, another seed another", async () => {
    const first = await fleet(1)
    const second = await fleet(1)
    const other = await fleet(2)
    assert.ok(first.log.text().includes('"ev":"connected"'))
    assert.equal(first.log.text() === second.log.text(), true)
    assert.equal(first.log.digest(), second.log.digest())
    assert.notEqual(first.log.digest(), other.log.digest())
})
