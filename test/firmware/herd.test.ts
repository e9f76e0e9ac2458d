// Field case B3: 200 devices lose one broker at the same instant. When do they come back?
import assert from "node:assert/strict"
import { test } from "node:test"
import { World, type DeviceSpec } from "../../host/lab/world"

const ADDRESS = "10.0.0.1:1883"

/** First attempts after the loss, in ms from it, sorted, of a fleet whose sessions are stable. */
async function firstAttempts(
    devices: number,
    spec: DeviceSpec,
    limitMs: number,
): Promise<number[]> {
    const world = new World({ seed: 3 })
    const broker = world.scripted(ADDRESS)
    for (let i = 0; i < devices; ++i) (await world.device(spec)).powerOn()
    await world.until(() => broker.open.length === devices, 60_000)
    await world.run(15_000)
    assert.equal(broker.open.length, devices, "devices before the outage")

    const lostMs = world.nowMs
    const before = broker.conns.length
    broker.down("fin")
    broker.up() // at once: the first attempts are what is looked at
    await world.until(() => broker.conns.length - before >= devices, limitMs)
    const attempts = broker.conns.slice(before, before + devices)
    assert.deepEqual(
        world.devices.flatMap(d => d.panics),
        [],
    )
    await world.close()
    return attempts.map(c => c.openedMs - lostMs).sort((a, b) => a - b)
}

/** The largest part of the attempts that falls into any `partMs`. */
function densest(attempts: number[], partMs: number): number {
    let most = 0
    for (let from = 0, to = 0; to < attempts.length; ++to) {
        while (attempts[to] - attempts[from] > partMs) ++from
        most = Math.max(most, to - from + 1)
    }
    return most / attempts.length
}

/** Dialling takes this long on top of the wait: the VM's turn of 10 ms and the network. */
const DIAL_MS = 30

const SETTINGS = { MQTT_HOST: "10.0.0.1", KEEP_ALIVE: 0 }

test("adaptive, 200 devices: first attempts spread over 1 to 2.2 s, no tenth of it crowded", async () => {
    const attempts = await firstAttempts(200, { settings: SETTINGS }, 10_000)
    assert.ok(attempts[0] >= 1000, `first after ${attempts[0]} ms`)
    assert.ok(attempts.at(-1)! <= 2200 + DIAL_MS)
    assert.ok(densest(attempts, 120) < 0.2, "a tenth of the window holds 20 %")
})

test("fitted: a fleet told its spread uses all of it", async () => {
    const settings = { ...SETTINGS, SPREAD: 20_000 }
    const attempts = await firstAttempts(60, { settings }, 30_000)
    assert.ok(attempts[0] >= 1000)
    assert.ok(attempts.at(-1)! <= 21_000 + DIAL_MS)
    assert.ok(attempts.at(-1)! > 19_000, "the end of the spread is used")
    assert.ok(densest(attempts, 2000) < 0.3, "a tenth of the window holds 30 %")
})

test("the stock client: every device in the same 10 ms", async () => {
    const program = "test/bytecode/stock-reconnect.ts"
    const attempts = await firstAttempts(60, { program }, 60_000)
    const widthMs = attempts.at(-1)! - attempts[0]
    assert.ok(widthMs <= 10, `spread over ${widthMs} ms`)
})
