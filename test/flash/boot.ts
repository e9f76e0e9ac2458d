// Boots a VM from a flash store, as the board it is written to would.
import { Bus } from "../../host/vm/bus"
import { VirtualClock } from "../../host/vm/clock"
import { DeviceVm } from "../../host/vm/device"
import { MemoryFlash } from "../../host/vm/flash"
import { noNetwork } from "../../host/vm/network"

/** What partitions.csv of microsoft/devicescript-esp32 gives every ESP32. */
const BOARD_STORE_BYTES = 256 * 1024

export interface Booted {
    console: string[]
    /** What the store holds under each key, as text; undefined: nothing. */
    values: Record<string, string | undefined>
}

/**
 * Runs the program in a store for three seconds of virtual time.
 * @param keys the settings to read then
 */
export async function bootStore(
    store: Uint8Array,
    keys: string[],
): Promise<Booted> {
    const clock = new VirtualClock()
    clock.drains = true
    const bus = new Bus(clock)
    const console: string[] = []
    const device = new DeviceVm({
        deviceId: "1122334455667788",
        clock,
        network: noNetwork,
        flash: new MemoryFlash(store),
        flashBytes: BOARD_STORE_BYTES,
        entropy: bytes => new Uint8Array(bytes),
        onConsole: line => console.push(line),
        onFrame: bus.toBus,
    })
    bus.connect(device)
    device.powerOn()
    await clock.runUntil(() => false, 3000)
    const values: Booted["values"] = {}
    for (const key of keys) {
        let isDone = false
        const reading = bus
            .settings()!
            .getValue(key)
            .finally(() => (isDone = true))
        await clock.runUntil(() => isDone, 2000)
        const value = await reading
        values[key] = value?.length
            ? Buffer.from(value).toString("utf8")
            : undefined
    }
    device.powerOff()
    await bus.close()
    return { console, values }
}
