// One device of a world: the real VM with its flash, its Wi-Fi if it has one, and a record of all
// that it said and did, with the world's time.
import { parseLine, type Line } from "../../src/core/line"
import { Bus, ButtonAccess, WifiAccess } from "../vm/bus"
import type { Clock, Timer } from "../vm/clock"
import { DeviceVm } from "../vm/device"
import { MemoryFlash } from "../vm/flash"
import { liveHeapBytes, walkHeap, type HeapReport } from "./heap"
import type { EventLog } from "./log"
import type { LabNetwork, NetworkView } from "./net"
import type { LabRandom } from "./random"

/** What a device is made of; World fills it in. */
export interface LabDeviceParts {
    name: string
    id: string
    image: Uint8Array
    clock: Clock
    net: LabNetwork
    random: LabRandom
    log: EventLog
    wifi: boolean
    button: boolean
    lazyTurns: boolean
}

/** A line of the public log and when it was printed, in the world's time. */
export interface SaidLine {
    atMs: number
    /** The device's own clock. */
    deviceMs: number
    line: Line
}

/** A line of the log of one kind. */
export type LineOf<E extends Line["ev"]> = Extract<Line, { ev: E }>

export class LabDevice {
    readonly name: string
    readonly id: string
    readonly vm: DeviceVm
    readonly flash: MemoryFlash
    readonly network: NetworkView
    /** Only of a device with Wi-Fi. */
    readonly wifi: WifiAccess | undefined
    /** Only of a device with a button. */
    readonly button: ButtonAccess | undefined
    /** Every line of the public log. */
    readonly lines: SaidLine[] = []
    /** Everything on the console, lines included. */
    readonly console: { atMs: number; text: string }[] = []
    /** Colours, 0xrrggbb, that the status light was set to. Only of a device on a bus: with Wi-Fi or a button. */
    readonly lights: { atMs: number; rgb: number }[] = []
    /** Deaths of the program; `ds.restart()` is not one. */
    readonly panics: { atMs: number; code: number }[] = []
    /** Times of `ds.restart()`. */
    readonly restarts: number[] = []
    /** Times of `ds.reboot()`. */
    readonly reboots: number[] = []
    /** Deaths of the VM itself. */
    readonly aborts: { atMs: number; reason: string }[] = []
    /** By its own lines: between `connected` and whatever ended that. */
    isConnected = false
    /** Has power, or will have it again after a power cycle. */
    isPlugged = false
    /** Its Jacdac bus, for sensors and buttons; only of a device with Wi-Fi. */
    readonly bus: Bus | undefined
    /** The address an access point gives out; undefined: there is none in reach. */
    private offered: number[] | undefined
    private associating: Timer | undefined

    constructor(private readonly parts: LabDeviceParts) {
        const { name, id, clock, net, random } = parts
        this.name = name
        this.id = id
        this.network = net.view(name)
        this.flash = new CountingFlash(parts.image, () => this.say("flash"))
        if (parts.wifi || parts.button) this.bus = new Bus(clock, false)
        this.bus?.watchLight(rgb => this.lights.push({ atMs: this.nowMs, rgb }))
        if (parts.button) this.button = new ButtonAccess(this.bus!, clock)
        if (parts.wifi) {
            this.wifi = new WifiAccess(this.bus!)
            this.wifi.onReconnect = () => this.say("wifi reconnect")
            this.network.up = false
        }
        this.vm = new DeviceVm({
            deviceId: id,
            clock,
            network: this.network,
            flash: this.flash,
            entropy: bytes => random.bytes(bytes),
            lazyTurns: parts.lazyTurns,
            onFrame: this.bus?.toBus,
            onConsole: text => this.heard(text),
            onPanic: code => {
                this.isConnected = false
                this.say(`panic ${code}`)
                if (code) this.panics.push({ atMs: this.nowMs, code })
                else this.restarts.push(this.nowMs)
            },
            onReboot: () => {
                this.isConnected = false
                this.say("reboot")
                this.network.blocked = false
                this.reboots.push(this.nowMs)
                this.associate()
            },
            onAbort: reason => {
                this.isConnected = false
                this.say(`abort ${reason}`)
                this.network.blocked = false
                this.aborts.push({ atMs: this.nowMs, reason })
                this.associate()
            },
        })
        this.bus?.connect(this.vm)
    }

    private get nowMs() {
        return this.parts.clock.nowMs()
    }

    private say(what: string) {
        this.parts.log.add(this.nowMs, this.name, what)
    }

    private heard(text: string) {
        const atMs = this.nowMs
        this.console.push({ atMs, text })
        this.say(text)
        const timed = parseLine(text)
        if (!timed) return
        const { tMs: deviceMs, line } = timed
        this.lines.push({ atMs, deviceMs, line })
        if (line.ev === "connected") this.isConnected = true
        if (line.ev === "lost" || line.ev === "boot" || line.ev === "halt")
            this.isConnected = false
    }

    /** Times the flash was written to. */
    get flashWrites() {
        return this.flash.writes
    }

    powerOn() {
        this.isPlugged = true
        if (this.vm.isOn) return
        this.say("power on")
        this.vm.powerOn()
        this.associate()
    }

    /** At this instant; the broker hears nothing of it. */
    powerOff() {
        this.isPlugged = false
        if (!this.vm.isOn) return
        this.isConnected = false
        this.say("power off")
        this.network.blocked = false
        this.vm.powerOff()
    }

    /** Off, and on again after `offMs`. */
    powerCycle(offMs = 100) {
        this.powerOff()
        this.isPlugged = true
        this.parts.clock.setTimeout(() => {
            if (this.isPlugged) this.powerOn()
        }, offMs)
    }

    /** The program dies within a second (panic 60102); the runtime starts it again 5 s later. */
    crash() {
        this.isConnected = false
        this.say("crash")
        if (!this.vm.crash()) throw new Error(`${this.name} runs no program`)
    }

    /**
     * An access point is in reach: the device has its address at once, and 1.5 s after each later start.
     * Four bytes; 0.0.0.0 is an address that leads nowhere, [] is an association without one.
     */
    joinWifi(ip: number[] = [10, 0, 0, 2]) {
        this.offered = ip
        if (!this.vm.isOn) return
        this.say(`wifi ${ip.join(".")}`)
        this.network.up = ip.some(byte => byte !== 0)
        this.wifi?.gotIp(ip)
    }

    /** The access point is gone, and with it every connection. */
    leaveWifi() {
        this.offered = undefined
        this.say("wifi gone")
        this.network.lose()
        this.wifi?.lostIp()
    }

    /** The chip has started: it knows no network until it has associated again. */
    private associate() {
        if (!this.wifi) return
        this.network.up = false
        this.wifi.lostIp()
        this.parts.clock.clearTimeout(this.associating)
        this.associating = this.parts.clock.setTimeout(() => {
            if (this.offered && this.vm.isOn) this.joinWifi(this.offered)
        }, ASSOCIATE_MS)
    }

    /** Stores a setting as a person on a USB cable does. Only of a device on a bus: with Wi-Fi or a button. */
    setSetting(key: string, json: string) {
        this.say(`setting ${key} ${json}`)
        const client = this.bus?.settings()
        if (!client) throw new Error(`${this.name} shows no settings service`)
        void client.setValue(key, Buffer.from(json))
    }

    /** The lines of one kind, oldest first, each with the world's time as `atMs`. */
    said<E extends Line["ev"]>(ev: E): (LineOf<E> & { atMs: number })[] {
        return this.lines
            .filter(l => l.line.ev === ev)
            .map(l => ({ ...(l.line as LineOf<E>), atMs: l.atMs }))
    }

    /** The latest line of one kind. */
    last<E extends Line["ev"]>(ev: E): LineOf<E> & { atMs: number } {
        const line = this.said(ev).at(-1)
        if (!line) throw new Error(`${this.name} has printed no ${ev} line`)
        return line
    }

    /** The program's heap and fibers now. */
    heap(): HeapReport {
        return walkHeap(this.vm.memory)
    }

    /** Bytes of the heap that a garbage collection would leave now. */
    liveHeapBytes(): number {
        return liveHeapBytes(this.vm.memory)
    }

    async close() {
        this.vm.powerOff()
        await this.bus?.close()
    }
}

/** From the chip's start to an address, at a good moment. */
const ASSOCIATE_MS = 1500

class CountingFlash extends MemoryFlash {
    constructor(
        image: Uint8Array,
        private readonly onSave: () => void,
    ) {
        super(image)
    }
    override save(image: Uint8Array) {
        super.save(image)
        this.onSave()
    }
}
