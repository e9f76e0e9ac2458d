// The one device of `npm start`: VM, bus, Wi-Fi and flash, and what a person can do to it.
import { randomBytes } from "node:crypto"
import { parseLine, type Line } from "../../src/core/line"
import { Bus, WifiAccess } from "../vm/bus"
import type { Clock } from "../vm/clock"
import { DeviceVm } from "../vm/device"
import { MemoryFlash } from "../vm/flash"
import type { Network } from "../vm/network"
import type { HostLine } from "./event"

export interface BoardOptions {
    deviceId: string
    clock: Clock
    /** What the flash holds: program and settings. */
    image: Uint8Array
    network: Network
    /** Sets whether there is a network. */
    setNetwork: (up: boolean) => void
    /** Whether the access point is there at first; default: yes. */
    hasWifi?: boolean
    onLine: (line: Line) => void
    onHost: (line: HostLine) => void
    /** Console output that is not a line of the log. */
    onConsole: (text: string) => void
}

/** How long a power-cycle leaves the device without power. */
export const OFF_MS = 1000

export class Board {
    private readonly device: DeviceVm
    private readonly bus: Bus
    private readonly wifi: WifiAccess
    private hasWifi: boolean
    private closed = false

    constructor(private readonly options: BoardOptions) {
        const { clock, network, image, deviceId } = options
        this.bus = new Bus(clock)
        this.device = new DeviceVm({
            deviceId,
            clock,
            network,
            flash: new MemoryFlash(image),
            entropy: bytes => randomBytes(bytes),
            onFrame: this.bus.toBus,
            onConsole: text => {
                const line = parseLine(text)?.line
                if (line) options.onLine(line)
                else options.onConsole(text)
            },
            onPanic: code => options.onHost({ ev: "panic", code, reason: "" }),
            onReboot: () =>
                options.onHost({ ev: "panic", code: -1, reason: "reboot" }),
            onAbort: reason =>
                options.onHost({ ev: "panic", code: -1, reason }),
        })
        this.bus.connect(this.device)
        this.wifi = new WifiAccess(this.bus)
        this.hasWifi = options.hasWifi !== false
        if (this.hasWifi) this.wifi.gotIp()
    }

    powerOn() {
        if (this.closed || this.device.isOn) return
        this.options.onHost({ ev: "power", on: true })
        this.device.powerOn()
    }

    /** Off at once, on again after OFF_MS. */
    powerCycle() {
        if (!this.device.isOn) return
        this.device.powerOff()
        this.options.onHost({ ev: "power", on: false })
        this.options.clock.setTimeout(() => this.powerOn(), OFF_MS)
    }

    toggleWifi() {
        this.setWifi(!this.hasWifi)
    }

    setWifi(up: boolean) {
        if (up === this.hasWifi) return
        this.hasWifi = up
        this.options.onHost({ ev: "wifi", up: this.hasWifi })
        this.options.setNetwork(this.hasWifi)
        if (this.hasWifi) this.wifi.gotIp()
        else this.wifi.lostIp()
    }

    /** Makes the program die; false when there is none to die. */
    crash(): boolean {
        return this.device.isOn && this.device.crash()
    }

    /** Power off, for good. */
    async close() {
        this.closed = true
        this.device.powerOff()
        await this.bus.close()
    }
}
