// Field case B3: 200 devices lose one broker at the same instant. When do they come back?
import assert from "node:assert/strict"
import { test } from "node:test"
import { VirtualClock } from "../../host/vm/clock"
import { DeviceVm } from "../../host/vm/device"
import type { Settings } from "../../host/vm/env"
import { MemoryFlash } from "../../host/vm/flash"
import { makeFlash } from "../../host/vm/flash-image"
import { SimNetwork, type Peer } from "../../host/vm/network"
import { loadProgram } from "../../host/vm/program"
import { Sfc32 } from "../../src/core/random"

const DEVICES = 200
const HOST = "10.0.0.1"
const PORT = 1883
const CONNACK = new Uint8Array([0x20, 2, 0, 0])
const CONNECT = 0x10

/** First attempts after the loss, in ms from it, sorted, of a fleet that was connected for 30 s. */
async function firstAttempts(
    program: string,
    settings: Settings,
    limitMs: number,
): Promise<number[]> {
    const clock = new VirtualClock()
    const network = new SimNetwork(clock)
    const image = await makeFlash(loadProgram(program).bytecode, settings)
    const peers = new Set<Peer>()
    network.listen(HOST, PORT, peer => {
        peers.add(peer)
        peer.onData = bytes => bytes[0] === CONNECT && peer.write(CONNACK)
    })
    const devices: DeviceVm[] = []
    for (let i = 0; i < DEVICES; ++i) {
        const random = new Sfc32(1, 2, 3, i)
        const device = new DeviceVm({
            deviceId: (0x1000000000000000n + BigInt(i)).toString(16),
            clock,
            network,
            flash: new MemoryFlash(image),
            entropy: n => Uint8Array.from({ length: n }, () => random.next()),
        })
        devices.push(device)
        device.powerOn()
    }
    await clock.runFor(60_000)
    assert.equal(peers.size, DEVICES, "devices connected before the outage")

    const lostMs = clock.nowMs()
    const attempts: number[] = []
    for (const peer of peers) peer.end()
    network.listen(HOST, PORT, peer => {
        attempts.push(clock.nowMs() - lostMs)
        peer.onData = bytes => bytes[0] === CONNECT && peer.write(CONNACK)
    })
    await clock.runUntil(() => attempts.length >= DEVICES, limitMs)
    for (const device of devices) device.powerOff()
    assert.equal(attempts.length, DEVICES, "devices that came back")
    assert.equal(devices.flatMap(d => d.panics).length, 0, "panics")
    return attempts.sort((a, b) => a - b)
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

/** Dialling takes this long on top of the wait: the VM's turn of 10 ms and two hops. */
const DIAL_MS = 20

test("adaptive: first attempts spread over 1 to 2.2 s, no tenth of it crowded", async () => {
    const attempts = await firstAttempts(
        "src/main.ts",
        { MQTT_HOST: `"${HOST}"`, KEEP_ALIVE: "0" },
        10_000,
    )
    assert.ok(attempts[0] >= 1000, `first after ${attempts[0]} ms`)
    assert.ok(attempts[DEVICES - 1] <= 2200 + DIAL_MS)
    assert.ok(densest(attempts, 120) < 0.2, "a tenth of the window holds 20 %")
})

test("fitted: a fleet told its spread uses all of it", async () => {
    const attempts = await firstAttempts(
        "src/main.ts",
        { MQTT_HOST: `"${HOST}"`, KEEP_ALIVE: "0", SPREAD: "20000" },
        30_000,
    )
    assert.ok(attempts[0] >= 1000)
    assert.ok(attempts[DEVICES - 1] <= 21_000 + DIAL_MS)
    assert.ok(attempts[DEVICES - 1] > 19_000, "the end of the spread is used")
    assert.ok(densest(attempts, 2000) < 0.2, "a tenth of the window holds 20 %")
})

test("the stock client: every device in the same 10 ms", async () => {
    const attempts = await firstAttempts(
        "test/bytecode/stock-reconnect.ts",
        {},
        60_000,
    )
    const widthMs = attempts[DEVICES - 1] - attempts[0]
    assert.ok(widthMs <= 10, `spread over ${widthMs} ms`)
})
