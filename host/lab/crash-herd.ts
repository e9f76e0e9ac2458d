// A fleet that one retained message crashes: it kills whoever connects, the first time all at once. How are their attempts
// spread? For the restart limit's tests and `npm run crashes -- --herd`.
import type { ScriptedBroker } from "./scripted-broker"
import type { LabDevice } from "./device"
import { World, type DeviceSpec } from "./world"

/** A fleet to play. */
export interface CrashHerd {
    devices: number
    /** The program and its settings; default: the firmware. */
    spec?: DeviceSpec
    /** Where its broker is. */
    address?: string
    /** From the message on. */
    seconds: number
    seed?: number
    /** Called after every minute played; the play ends there when it says false. */
    goesOn?: (minutes: number) => Promise<boolean>
}

/** Everyone comes online first, within this. */
const ONLINE_MS = 120_000

/** From CONNACK to the message, and to the end. */
const KILLS_MS = 20

const MINUTE_MS = 60_000

/**
 * Plays it.
 * @returns for each device when it connected, ms from the message on
 */
export async function playCrashHerd(herd: CrashHerd): Promise<number[][]> {
    const { spec, address = "broker:1883", seconds, goesOn } = herd
    const world = new World({ seed: herd.seed ?? 1, keepLog: 1000 })
    try {
        const broker = world.scripted(address)
        const byName = new Map<string, LabDevice>()
        for (let i = 0; i < herd.devices; ++i) {
            const settings = { MQTT_HOST: "broker" }
            const device = await world.device({ settings, ...spec })
            byName.set(device.name, device)
            device.powerOn()
        }
        await world.until(() => broker.open.length >= herd.devices, ONLINE_MS)
        const messageMs = world.nowMs
        const connectMs = new Map<string, number[]>()
        for (const name of byName.keys()) connectMs.set(name, [])
        broker.always({
            connect(c) {
                connectMs.get(c.device)!.push(world.nowMs - messageMs)
                broker.welcome(c)
                world.after(KILLS_MS, () => {
                    byName.get(c.device)!.crash()
                    // A program dies when it wakes: something to wake for.
                    if (c.isOpen) c.pingresp()
                })
            },
        })
        for (const device of byName.values()) device.crash()
        for (const c of broker.open) c.pingresp()
        for (let leftMs = seconds * 1000, n = 1; leftMs > 0; n++) {
            const partMs = Math.min(leftMs, MINUTE_MS)
            await world.run(partMs)
            leftMs -= partMs
            forget(broker)
            for (const d of byName.values()) d.console.length = 0
            if (goesOn && !(await goesOn(n))) break
        }
        return [...connectMs.values()]
    } finally {
        await world.close()
    }
}

/** An hour's records of a fleet would fill the memory. */
function forget(broker: ScriptedBroker) {
    broker.packets.length = 0
    const { open } = broker
    broker.conns.splice(0, broker.conns.length, ...open)
}
