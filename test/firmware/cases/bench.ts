// The bench of the field cases: one device that runs the real bytecode, one scripted broker, and
// what has to hold in every case, whatever else it is about.
import assert from "node:assert/strict"
import type { LabDevice } from "../../../host/lab/device"
import type { ScriptedBroker } from "../../../host/lab/scripted-broker"
import { World, type DeviceSpec } from "../../../host/lab/world"
import type { Line } from "../../../src/core/line"

/** What a case works with. */
export interface Bench {
    world: World
    broker: ScriptedBroker
    device: LabDevice
}

/** A case's device, and what may happen in it. */
export interface BenchSpec extends DeviceSpec {
    seed?: number
    /** False: the case switches the device on by itself. */
    powerOn?: boolean
    /** `ds.reboot()`s and `ds.restart()`s that the case asks for; default 0. */
    reboots?: number
    /** The case kills the program. */
    kills?: boolean
    /** Times the case has the device store something; default 0. */
    flashWrites?: number
    /** Sockets the broker may see open at once; default 1. A FIN that is lost leaves one more. */
    maxOpen?: number
    /** Waits are at most this long, ms; default an hour, the longest of all bounds. */
    longestMs?: number
}

/** Waiting takes this much longer than a line says: the VM's turn, and the supervisor's. */
export const TURN_MS = 25

/** Runs a case on a new bench, then checks what always holds. A failure shows the end of the log. */
export async function onBench(
    spec: BenchSpec,
    run: (bench: Bench) => Promise<void>,
) {
    const world = new World({ seed: spec.seed ?? 1 })
    const broker = world.scripted()
    const device = await world.device({
        ...spec,
        // Most cases are about MQTT 3.1.1; mqtt5.test.ts is about the choice.
        settings: { MQTT_HOST: "broker", MQTT_VERSION: 3, ...spec.settings },
    })
    if (spec.powerOn !== false) device.powerOn()
    try {
        await run({ world, broker, device })
        alwaysHolds({ world, broker, device }, spec)
    } catch (e) {
        ;(e as Error).message += `\n--- the log's end:\n${world.tail(60)}`
        throw e
    } finally {
        await world.close()
    }
}

/** The panic by which the lab kills a program. */
const KILLED = 60102

/** No panic, no reset, flash within its budget, one socket at most, and every wait as its line said. */
function alwaysHolds({ broker, device }: Bench, spec: BenchSpec) {
    const panics = device.panics.filter(p => !spec.kills || p.code !== KILLED)
    assert.deepEqual(panics, [], "panics")
    assert.deepEqual(device.aborts, [], "aborts")
    assert.equal(
        device.reboots.length + device.restarts.length,
        spec.reboots ?? 0,
        "reboots",
    )
    // The restart limit's: one for a start, one to clear, one before a reboot and one after a hold. A program without it
    // writes nothing.
    const starts = device.said("boot").length
    const holds = device.said("held").filter(l => l.leftMs === 0).length
    const budget =
        2 * starts + device.reboots.length + holds + (spec.flashWrites ?? 0)
    assert.ok(device.flashWrites <= budget, `${device.flashWrites} writes`)
    assert.ok(
        broker.maxOpen <= (spec.maxOpen ?? 1),
        `${broker.maxOpen} sockets open at once`,
    )
    for (const c of broker.conns) assert.equal(c.malformed, undefined)
    for (const { delayMs } of device.said("retry"))
        assert.ok(
            Number.isInteger(delayMs) &&
                delayMs >= 1 &&
                delayMs <= (spec.longestMs ?? 3_600_000),
            `a wait of ${delayMs} ms`,
        )
    waitsAsSaid(device)
}

/** Every `retry` line that is followed by an attempt was kept to. */
function waitsAsSaid(device: LabDevice) {
    device.lines.forEach(({ line, atMs }, i) => {
        const next = device.lines[i + 1]
        if (line.ev !== "retry" || next?.line.ev !== "attempt") return
        const lateMs = next.atMs - atMs - line.delayMs
        assert.ok(
            lateMs >= -1 && lateMs <= TURN_MS,
            `waited ${next.atMs - atMs} ms, said ${line.delayMs}`,
        )
    })
}

/** The waits that `retry` lines announced, ms. */
export function delays(device: LabDevice): number[] {
    return device.said("retry").map(l => l.delayMs)
}

/** Runs until the device has said so many lines of a kind. */
export async function untilSaid(
    { world, device }: Bench,
    ev: Line["ev"],
    count: number,
    limitMs: number,
) {
    let seen = 0
    let left = count
    await world.until(() => {
        while (seen < device.lines.length)
            if (device.lines[seen++].line.ev === ev) --left
        return left <= 0
    }, limitMs)
}

/** What is in use on the heap besides garbage, bytes, and the fibers: the least within 10 s. */
export async function heapFloor({ world, device }: Bench) {
    // Collected at every allocation, there is next to no garbage to be seen.
    const { vm } = device.vm as unknown as {
        vm: { devsGcStress(on: boolean): void }
    }
    vm.devsGcStress(true)
    let bytes = Infinity
    let fibers = Infinity
    for (let i = 0; i < 100; ++i) {
        await world.run(100)
        const heap = device.heap()
        bytes = Math.min(bytes, heap.usedBytes)
        fibers = Math.min(fibers, heap.fibers)
    }
    vm.devsGcStress(false)
    return { bytes, fibers }
}

/** Delays double from one to the next, but for jitter (10 %), until they reach `capMs`. */
export function assertGrows(waits: number[], capMs: number) {
    for (let i = 1; i < waits.length; ++i) {
        const ratio = waits[i] / waits[i - 1]
        if (waits[i] > capMs * 0.45) assert.ok(ratio > 0.9, `${waits}`)
        else assert.ok(ratio > 1.8 && ratio < 2.25, `${waits}`)
        assert.ok(waits[i] <= capMs, `${waits}`)
    }
}

/** After silence of 30 s the waits count from the attempt's start, under the device's own ceiling at the cap of 60 s. */
export function assertSilence(device: LabDevice) {
    const lines = device.said("retry").filter(l => l.evidence === "silent")
    for (const { ceilingMs, delayMs } of lines) {
        assert.equal(ceilingMs, lines[0].ceilingMs)
        const lowMs = Math.max(1000, ceilingMs - 30_000 - TURN_MS)
        const highMs = Math.max(1000, ceilingMs - 30_000) + ceilingMs / 10
        assert.ok(delayMs >= lowMs && delayMs <= highMs, `${delayMs}`)
    }
    const { ceilingMs } = lines[0]
    assert.ok(ceilingMs > 27_272 && ceilingMs <= 54_546, `${ceilingMs}`)
}
