// A board on a serial port: the real VM, its console and its Jacdac frames mixed on one line as the
// runtime's USB bridge does it, and the Wi-Fi service that an ESP32 has.
import { FRAME_SEND, UsbBridgeCmd } from "jacdac-ts"
import type { Socket } from "node:net"
import {
    bridgeCommand,
    bridgeCommandOf,
    encodeFrame,
    FrameDecoder,
} from "../../host/flash/jdusb"
import { Bus, WifiAccess } from "../../host/vm/bus"
import { RealClock } from "../../host/vm/clock"
import { DeviceVm } from "../../host/vm/device"
import { MemoryFlash } from "../../host/vm/flash"
import { noNetwork } from "../../host/vm/network"

export class SerialBoard {
    static readonly storeBytes = 256 * 1024
    readonly flash = new MemoryFlash()
    readonly console: string[] = []
    /** Every frame from the port, for a look at what was sent. */
    readonly received: Buffer[] = []
    private forwards = false
    private readonly bus = new Bus(new RealClock())
    private readonly device: DeviceVm

    constructor(private readonly line: Socket) {
        this.device = new DeviceVm({
            deviceId: "1122334455667788",
            clock: new RealClock(),
            network: noNetwork,
            flash: this.flash,
            flashBytes: SerialBoard.storeBytes,
            entropy: bytes => new Uint8Array(bytes),
            onConsole: text => {
                this.console.push(text)
                line.write(text + "\r\n")
            },
            onFrame: frame => {
                this.bus.toBus(frame)
                this.toPort(frame)
            },
        })
        this.bus.connect(this.device)
        this.bus.jacdac.on(FRAME_SEND, frame => this.toPort(frame))
        new WifiAccess(this.bus)
        const decoder = new FrameDecoder(frame => this.take(frame))
        line.on("data", bytes => decoder.push(bytes))
    }

    powerOn() {
        this.device.powerOn()
    }
    async powerOff() {
        this.device.powerOff()
        await this.bus.close()
    }

    said(pattern: RegExp): boolean {
        return this.console.some(line => pattern.test(line))
    }

    async until(what: () => boolean, limitMs = 20_000) {
        const giveUpMs = Date.now() + limitMs
        while (!what()) {
            if (Date.now() > giveUpMs)
                throw new Error(`not in time:\n${this.console.join("\n")}`)
            await new Promise(done => setTimeout(done, 20))
        }
    }

    private take(frame: Uint8Array) {
        const command = bridgeCommandOf(frame)
        if (command !== undefined) {
            this.forwards = command === UsbBridgeCmd.EnablePackets
            this.line.write(encodeFrame(bridgeCommand(command)))
            return
        }
        this.received.push(Buffer.from(frame))
        this.device.receiveFrame(frame)
        this.bus.toBus(frame)
    }

    private toPort(frame: Uint8Array) {
        if (this.forwards) this.line.write(encodeFrame(frame))
    }
}
