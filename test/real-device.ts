// A device on Node's own sockets and the real clock, for tests: the VM, and all it said.
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { RealClock } from "../host/vm/clock"
import { DeviceVm } from "../host/vm/device"
import { MemoryFlash } from "../host/vm/flash"
import { makeFlash } from "../host/vm/flash-image"
import { loadProgram } from "../host/vm/program"
import { RealNetwork, type RealNetworkOptions } from "../host/vm/real-network"
import { parseLine, type Line } from "../src/core/line"

/** What a RealDevice is made of. */
export interface RealDeviceSpec {
    /** 16 hex digits. */
    id: string
    /** From the project's folder; default "src/main.ts". */
    program?: string
    /** Values as JSON, as flash holds them. */
    settings: Record<string, string>
    network?: RealNetworkOptions
}

export class RealDevice {
    /** Every line of the public log. */
    readonly lines: Line[] = []
    /** Everything on the console, lines included. */
    readonly console: string[] = []

    private constructor(
        readonly id: string,
        readonly vm: DeviceVm,
    ) {}

    /** Makes one, switched off. */
    static async make(spec: RealDeviceSpec): Promise<RealDevice> {
        const { bytecode } = loadProgram(spec.program ?? "src/main.ts")
        const image = await makeFlash(bytecode, spec.settings)
        const device: RealDevice = new RealDevice(
            spec.id,
            new DeviceVm({
                deviceId: spec.id,
                clock: new RealClock(),
                network: new RealNetwork(spec.network),
                flash: new MemoryFlash(image),
                entropy: randomBytes,
                onConsole: text => {
                    device.console.push(text)
                    const timed = parseLine(text)
                    if (timed) device.lines.push(timed.line)
                },
            }),
        )
        return device
    }

    get panics() {
        return this.vm.panics
    }

    powerOn() {
        this.vm.powerOn()
    }

    powerOff() {
        this.vm.powerOff()
    }

    /** The lines of one kind, oldest first. */
    said<E extends Line["ev"]>(ev: E): Extract<Line, { ev: E }>[] {
        return this.lines.filter(l => l.ev === ev) as never
    }

    /** The JSON objects with this key on its console, oldest first. */
    prints(key: string): Record<string, any>[] {
        return this.console
            .filter(t => t.startsWith("# ") && t.includes(`"${key}":`))
            .map(t => JSON.parse(t.slice(t.indexOf("{"))))
            .filter(object => key in object)
    }

    /**
     * Waits for something to come true; the limit only bounds a failing test, which shows what the device said
     * last.
     */
    async until(what: string, holds: () => boolean, limitMs = 60_000) {
        const giveUpMs = Date.now() + limitMs
        while (!holds()) {
            if (Date.now() > giveUpMs) {
                const last = this.console.slice(-30).join("\n")
                assert.fail(`waited in vain: ${what}\n${last}`)
            }
            await new Promise(done => setTimeout(done, 10))
        }
    }
}
