// A world: devices that run the real bytecode, on a clock and a network that the test owns, every
// fault at hand, and all of it from one seed: same seed, same run, to the byte.
//
//     const world = new World({ seed: 7 })
//     const broker = world.scripted("broker:1883")       // scripted-broker.ts, plays.ts
//     broker.next(5, mute()).next(1, refuse(5))           // then polite again
//     const device = await world.device({ settings: { MQTT_HOST: "broker" } })
//     device.powerOn()
//     await world.until("connected", 60_000)              // throws when it takes longer
//     const cut = world.net.fault("broker:1883", swallow())   // faults.ts
//     await world.run(90_000)
//     cut.off()
//     device.said("retry"), device.last("lost").reason, device.panics, device.heap()
//     broker.sent("publish"), broker.conns[0].packets, broker.maxOpen
//     await world.close()
//
// One world may run at a time in a process: jacdac-ts draws from Math.random, which is the
// world's own while it runs.
import { createHash } from "node:crypto"
import { toJson } from "../vm/env"
import { VirtualClock } from "../vm/clock"
import { makeFlash } from "../vm/flash-image"
import { loadProgram } from "../vm/program"
import { Broker, type BrokerOptions } from "./broker"
import { LabDevice } from "./device"
import { EventLog } from "./log"
import { LabNetwork } from "./net"
import { LabRandom } from "./random"
import { ScriptedBroker } from "./scripted-broker"

/** Options of a World. */
export interface WorldOptions {
    /** Any whole number; default 1. */
    seed?: number
    /** VMs sleep until they have something to do (much faster, same results); default true. */
    lazyTurns?: boolean
    /** Log entries to remember; default 1,000,000. */
    keepLog?: number
}

/** Options of a device. */
export interface DeviceSpec {
    /** From the project's folder; default "src/main.ts". */
    program?: string
    /** A program compiled elsewhere, instead. */
    bytecode?: Uint8Array
    /** As in a `.env` file: JSON where it parses as JSON, text otherwise. */
    settings?: Record<string, string | number>
    /** 16 hex digits; default: from the name. */
    id?: string
    /** Default d1, d2, ... */
    name?: string
    /** With a Wi-Fi service, not yet associated: see `joinWifi`. Default: no such service, always a network. */
    wifi?: boolean
    /** With a button on the bus: `device.button.press(ms)`. */
    button?: boolean
}

/** Flash images that have been made in this process. */
const images = new Map<string, Promise<Uint8Array>>()

export class World {
    readonly clock = new VirtualClock()
    readonly random: LabRandom
    readonly log: EventLog
    readonly net: LabNetwork
    readonly devices: LabDevice[] = []
    private readonly jacdacRandom: LabRandom

    constructor(private readonly options: WorldOptions = {}) {
        this.random = new LabRandom(options.seed ?? 1)
        this.jacdacRandom = this.random.stream("jacdac")
        this.log = new EventLog(options.keepLog)
        this.net = new LabNetwork(this.clock, this.random.stream("net"))
        this.net.tap = (device, what, bytes) =>
            this.say(device, bytes ? `${what} ${describe(bytes)}` : what)
    }

    get nowMs() {
        return this.clock.nowMs()
    }

    /** Adds a line to the world's log. */
    say(who: string, what: string) {
        this.log.add(this.nowMs, who, what)
    }

    /** Makes a device, switched off. */
    async device(spec: DeviceSpec = {}): Promise<LabDevice> {
        const name = spec.name ?? `d${this.devices.length + 1}`
        const image = await imageOf(spec)
        if (spec.wifi || spec.button) this.clock.drains = true
        const make = () =>
            new LabDevice({
                name,
                id: spec.id ?? idOf(name),
                image,
                clock: this.clock,
                net: this.net,
                random: this.random.stream(`entropy of ${name}`),
                log: this.log,
                wifi: !!spec.wifi,
                button: !!spec.button,
                lazyTurns: this.options.lazyTurns ?? true,
            })
        const device = await this.seeded(async () => make())
        this.devices.push(device)
        return device
    }

    /** A broker whose every move the test scripts, at `host:port`. */
    scripted(address = "broker:1883"): ScriptedBroker {
        return new ScriptedBroker(this, address)
    }

    /** A correct and strict broker at `host:port`. */
    broker(address = "broker:1883", options: BrokerOptions = {}): Broker {
        return new Broker(this, address, options)
    }

    /** Lets `ms` pass. */
    async run(ms: number) {
        await this.seeded(() => this.clock.runFor(ms))
    }

    /**
     * Lets time pass until something holds.
     * @param what a condition, or "connected": every device that has power
     * @throws Error when it does not hold within `limitMs`
     * @returns how long it took, ms
     */
    async until(
        what: "connected" | (() => boolean),
        limitMs: number,
    ): Promise<number> {
        const startMs = this.nowMs
        const done = what === "connected" ? () => this.allConnected() : what
        if (!(await this.seeded(() => this.clock.runUntil(done, limitMs))))
            throw new Error(
                `did not happen within ${limitMs} ms: ${what}\n${this.tail()}`,
            )
        return this.nowMs - startMs
    }

    /** Calls `run` at a time from now, within the run. */
    after(delayMs: number, run: () => void) {
        this.clock.setTimeout(run, delayMs)
    }

    /** The last lines of the log, for a failing test's message. */
    tail(lines = 40): string {
        return this.log.text().split("\n").slice(-lines).join("\n")
    }

    /** Switches everything off. */
    async close() {
        for (const device of this.devices) await device.close()
    }

    private allConnected(): boolean {
        return this.devices.every(d => d.isConnected || !d.isPlugged)
    }

    private static running = false

    /** Runs with the world's own Math.random. */
    private async seeded<T>(run: () => Promise<T>): Promise<T> {
        if (World.running) throw new Error("another world is running")
        World.running = true
        const random = Math.random
        Math.random = this.jacdacRandom.fraction
        try {
            return await run()
        } finally {
            Math.random = random
            World.running = false
        }
    }
}

/** The flash of a device that has this program and these settings; made once. */
function imageOf({
    program = "src/main.ts",
    bytecode,
    settings = {},
}: DeviceSpec): Promise<Uint8Array> {
    const json: Record<string, string> = {}
    for (const name of Object.keys(settings))
        json[name] = toJson(`${settings[name]}`)
    if (bytecode) return makeFlash(bytecode, json)
    const key = JSON.stringify([program, settings])
    let image = images.get(key)
    if (!image) {
        image = makeFlash(loadProgram(program).bytecode, json)
        images.set(key, image)
    }
    return image
}

function idOf(name: string): string {
    return createHash("sha256").update(name).digest("hex").slice(0, 16)
}

function describe(bytes: Uint8Array): string {
    const hex = Buffer.from(bytes.subarray(0, 24)).toString("hex")
    return `${bytes.length} B ${hex}${bytes.length > 24 ? ".." : ""}`
}
