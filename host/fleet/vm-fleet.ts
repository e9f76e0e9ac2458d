// A fleet of real devices: VMs with the firmware, each with a network of its own. It knows which are
// connected, by their own lines.
import { createHash } from "node:crypto"
import type { Policy } from "../../src/core/policy"
import { parseLine } from "../../src/core/line"
import { LabRandom } from "../lab/random"
import type { Clock } from "../vm/clock"
import { DeviceVm } from "../vm/device"
import { toJson } from "../vm/env"
import { MemoryFlash } from "../vm/flash"
import { makeFlash } from "../vm/flash-image"
import type { Network } from "../vm/network"
import { loadProgram } from "../vm/program"
import { settingsOf } from "./presets"

export interface VmFleetParts {
    devices: number
    clock: Clock
    /** A VM sleeps until it has something to do: for a virtual clock. */
    lazyTurns: boolean
    seed: number
    image: Uint8Array
    network: (device: number) => Network
    /** The device has said `connected`. */
    connected: (device: number) => void
    /** The device has said `lost`. */
    lost: (device: number) => void
}

/** What a device of this fleet draws from, 8 bytes, and its id: 16 hexadecimal digits. */
export function identity(seed: number, device: number) {
    const hash = createHash("sha256").update(`fleet ${seed} ${device}`).digest()
    return {
        id: hash.toString("hex", 0, 8),
        entropy: Uint8Array.from(hash.subarray(8, 16)),
    }
}

/** The flash of every device of a fleet. */
export async function fleetImage(
    policy: Policy,
    host: string,
    port: number,
): Promise<Uint8Array> {
    const settings: Record<string, string> = {}
    const all = { ...settingsOf(policy), MQTT_HOST: host, MQTT_PORT: port }
    for (const [key, value] of Object.entries(all))
        settings[key] = toJson(`${value}`)
    return makeFlash(loadProgram("src/main.ts").bytecode, settings)
}

export class VmFleet {
    private readonly vms: DeviceVm[]
    /** Programs that died. */
    panics = 0
    /** How many are connected. */
    up = 0

    constructor(parts: VmFleetParts) {
        this.vms = Array.from({ length: parts.devices }, (_, device) =>
            this.make(parts, device),
        )
    }

    private make(parts: VmFleetParts, device: number): DeviceVm {
        const { clock, image, lazyTurns, seed } = parts
        const { id, entropy } = identity(seed, device)
        // What the runtime itself asks for must not shift what the program gets.
        const more = new LabRandom(seed, id)
        let isUp = false
        const set = (up: boolean) => {
            if (up === isUp) return
            isUp = up
            this.up += up ? 1 : -1
            if (up) parts.connected(device)
            else parts.lost(device)
        }
        return new DeviceVm({
            deviceId: id,
            clock,
            network: parts.network(device),
            flash: new MemoryFlash(image),
            entropy: bytes =>
                bytes === entropy.length ? entropy : more.bytes(bytes),
            lazyTurns,
            onConsole: text => {
                const ev = parseLine(text)?.line.ev
                if (ev === "connected") set(true)
                else if (ev === "lost" || ev === "halt") set(false)
            },
            onPanic: () => {
                this.panics++
                set(false)
            },
            onAbort: () => {
                this.panics++
                set(false)
            },
        })
    }

    powerOn() {
        for (const vm of this.vms) vm.powerOn()
    }

    powerOff() {
        for (const vm of this.vms) vm.powerOff()
    }
}
