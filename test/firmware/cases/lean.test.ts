// The client without any part: it says nothing, keeps nothing, and comes back like the full one.
import assert from "node:assert/strict"
import { test } from "node:test"
import type { LabDevice } from "../../../host/lab/device"
import { World } from "../../../host/lab/world"

const MINUTE_MS = 60_000

/** What the application printed since the last look, without repetitions. */
function printer(device: LabDevice) {
    let from = 0
    return () => {
        const texts = device.console.slice(from).map(c => c.text)
        from = device.console.length
        return texts.filter(t => t.startsWith("> ")).map(t => t.slice(2))
    }
}

test("startClient: offline is refused, an outage is waited through, an oversize message is skipped, a broken peer goes the slow way", async () => {
    const world = new World()
    const broker = world.broker("broker:1883")
    const device = await world.device({ program: "test/bytecode/lean-app.ts" })
    const printed = printer(device)
    const isUp = () => broker.connected.length > 0
    try {
        device.powerOn()
        await world.until(isUp, MINUTE_MS)
        await world.run(3000)
        const texts = printed()
        assert.equal(texts[0], "policy needs strategies")
        assert.equal(texts.at(-1), "sent")

        broker.publish("lean/in", Buffer.alloc(20_000))
        broker.publish("lean/in", "hello")
        await world.run(1000)
        assert.deepEqual(printed(), ["got 5"])

        const dialsBefore = device.network.dials
        broker.crash()
        await world.run(20_000)
        assert.ok(printed().includes("refused: offline"))
        // Waits of 1 to 2 s, then doubled: four at most, and two at least.
        const dials = device.network.dials - dialsBefore
        assert.ok(dials >= 2 && dials <= 4, `${dials} dials in 20 s`)
        broker.start()
        await world.until(isUp, MINUTE_MS + 5000)
        await world.run(3000)
        assert.equal(printed().at(-1), "sent")
        broker.publish("lean/in", "back")
        await world.run(1000)
        assert.deepEqual(printed(), ["got 4"], "subscribed again")

        // Nothing that MQTT knows: minutes, not seconds, and no end of the program.
        broker.crash()
        const hostile = world.scripted("broker:1883")
        hostile.always({ connect: c => c.send("f000") })
        await world.run(4 * MINUTE_MS)
        const tries = hostile.sent("connect").length
        assert.ok(tries >= 1 && tries <= 2, `${tries} tries in four minutes`)
        assert.deepEqual(device.panics, [])
        assert.deepEqual(device.lines, [], "no lines without a log")
    } catch (e) {
        ;(e as Error).message += `\n--- the log's end:\n${world.tail(40)}`
        throw e
    } finally {
        await world.close()
    }
})
