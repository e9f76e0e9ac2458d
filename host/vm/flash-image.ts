// Makes the flash of a device as a deploy over the bus would: program and settings, written
// by the VM itself, so that the image is what a board would hold.
import { Bus } from "./bus"
import { VirtualClock } from "./clock"
import { DeviceVm } from "./device"
import { MemoryFlash } from "./flash"
import { noNetwork } from "./network"
import type { Settings } from "./env"

const SETTLE_MS = 2000

/** Values longer than this make the runtime abort; the writer refuses them. */
export const MAX_VALUE_BYTES = 200

/** The store of a particular kind of board. */
export interface StoreOptions {
    /** Size of the store, two banks together; the VM's own 8 kB when left out. */
    storeBytes?: number
    /** What the runtime itself reads, as bare text and not as JSON: Wi-Fi's keys. */
    texts?: Settings
}

/**
 * The flash image of a device that has this program and these settings and has never run.
 * @throws RangeError for a value of more than MAX_VALUE_BYTES
 */
export async function makeFlash(
    bytecode: Uint8Array,
    settings: Settings = {},
    { storeBytes, texts = {} }: StoreOptions = {},
): Promise<Uint8Array> {
    const clock = new VirtualClock()
    clock.drains = true
    const bus = new Bus(clock)
    const flash = new MemoryFlash()
    const device = new DeviceVm({
        deviceId: "0000000000000001",
        clock,
        network: noNetwork,
        flash,
        entropy: bytes => new Uint8Array(bytes),
        flashBytes: storeBytes,
        onFrame: bus.toBus,
    })
    bus.connect(device)
    device.powerOn()
    await clock.runUntil(() => !!bus.settings(), SETTLE_MS)
    const client = bus.settings()
    if (!client) throw new Error("the VM did not offer its settings service")
    const all = { ...settings, ...texts }
    for (const key of Object.keys(all)) {
        const value = Buffer.from(all[key], "utf8")
        if (value.length > MAX_VALUE_BYTES)
            throw new RangeError(
                `setting ${key} has ${value.length} bytes; allowed: at most ${MAX_VALUE_BYTES}`,
            )
        let done = false
        const writing = client.setValue(key, value).then(() => (done = true))
        await clock.runUntil(() => done, SETTLE_MS)
        if (!done) throw new Error(`the VM did not store setting ${key}`)
        await writing
    }
    device.deploy(bytecode)
    device.powerOff()
    await bus.close()
    return padded(flash.image, storeBytes)
}

/** The VM leaves out what is erased at the end; on a board an earlier program may lie there. */
function padded(image: Uint8Array, bytes = image.length): Uint8Array {
    const whole = new Uint8Array(bytes).fill(0xff)
    whole.set(image)
    return whole
}
