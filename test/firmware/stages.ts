// Two stages for one script (scripts.ts): the lab with its strict broker on virtual time, and a real
// mosquitto behind a fault proxy on real sockets and real time. A script sees no difference.
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import mqtt, { type MqttClient } from "mqtt"
import { FaultProxy } from "../../host/lab/fault-proxy"
import type { ActiveFault, WireFault } from "../../host/lab/wire"
import { World } from "../../host/lab/world"
import type { Line } from "../../src/core/line"
import { LabClient } from "../host/lab-client"
import { freePort, Mosquitto } from "../mosquitto"
import { RealDevice } from "../real-device"

/** What a script may know of a device. */
export interface Actor {
    readonly id: string
    powerOn(): void
    powerOff(): void
    said<E extends Line["ev"]>(ev: E): Extract<Line, { ev: E }>[]
}

/** A message as a client saw it that the faults don't concern. */
export interface Heard {
    topic: string
    text: string
    retain: boolean
}

/** What a script is played on. */
export interface Stage {
    readonly devices: Actor[]
    /** All messages of all devices, in order; commands are left out. */
    readonly heard: Heard[]
    /** Switches a fault on between devices and broker. */
    fault(fault: WireFault): ActiveFault
    /** @throws when it takes too long: minutes in the lab, one on the real clock */
    until(what: string, holds: () => boolean): Promise<void>
    /** Publishes to a device's command topic. */
    send(
        device: Actor,
        command: string,
        payload?: string,
        flags?: { qos?: 0 | 1; retain?: boolean },
    ): void
    /** Connects with a client id, past the faults. */
    takeOver(clientId: string): Promise<void>
    /** The milliseconds that have passed. */
    nowMs(): number
    /** CONNECTs of these devices that the broker has accepted. */
    accepted(): number
    /** What the broker found wrong with what the devices sent. */
    complaints(): string[]
    panics(): number[]
    close(): Promise<void>
}

/** What a script needs of its stage. */
export interface StageSpec {
    name: string
    settings: Record<string, string | number>
    /** Default 1. */
    devices?: number
    /** The broker lets nobody in without a password. */
    closed?: boolean
}

const SHORT_LIMIT_MS = 60_000
const LAB_LIMIT_MS = 600_000

/** What mosquitto says of a client that breaks the standard. */
export const COMPLAINT = /malformed|protocol err|invalid|oversize/i

const isCommand = (topic: string) => topic.includes("/cmd/")

export async function labStage(spec: StageSpec): Promise<Stage> {
    const world = new World()
    const broker = world.broker("broker:1883", {
        users: spec.closed ? { somebody: "else" } : undefined,
    })
    const heard: Heard[] = []
    const spread = broker.spread.bind(broker)
    broker.spread = message => {
        const { topic, payload, retain } = message
        if (!isCommand(topic))
            heard.push({ topic, text: payload.toString(), retain })
        spread(message)
    }
    for (let i = 0; i < (spec.devices ?? 1); ++i)
        await world.device({
            settings: { MQTT_HOST: "broker", ...spec.settings },
        })
    const { devices } = world
    return {
        devices,
        heard,
        fault: fault => world.net.fault("*", fault),
        until: async (what, holds) => {
            try {
                await world.until(holds, LAB_LIMIT_MS)
            } catch (e) {
                ;(e as Error).message = `${what}: ${(e as Error).message}`
                throw e
            }
        },
        send: (device, command, payload = "", flags = {}) =>
            broker.publish(
                `herdless/${device.id}/cmd/${command}`,
                payload,
                flags,
            ),
        async takeOver(clientId) {
            const thief = new LabClient(world, "thief")
            await world.until(() => thief.what.includes("open"), 1000)
            thief.connect({ clientId })
        },
        nowMs: () => world.nowMs,
        accepted: () => broker.connects,
        complaints: () => broker.violations.map(v => `[${v.clause}] ${v.what}`),
        panics: () => devices.flatMap(d => d.panics.map(p => p.code)),
        close: () => world.close(),
    }
}

/** One mosquitto, and how a second one is had that lets nobody in; many stages share it. */
export class MosquittoTheatre {
    private readonly folder = mkdtempSync(join(tmpdir(), "herdless-log-"))
    private readonly logFile = join(this.folder, "mosquitto.log")
    private mosquitto: Mosquitto | undefined

    async open(closed = false) {
        this.mosquitto = new Mosquitto(await freePort(), [
            `log_dest file ${this.logFile}`,
            "log_type all",
            ...(closed ? ["allow_anonymous false"] : []),
        ])
        await this.mosquitto.start()
        return this.mosquitto.port
    }

    /** What mosquitto has logged. */
    log(): string[] {
        return readFileSync(this.logFile, "utf8").split("\n")
    }

    async close() {
        await this.mosquitto?.dispose()
        rmSync(this.folder, { recursive: true, force: true })
    }

    /** A proxy of its own, with a client that looks on past it. */
    async stage(spec: StageSpec): Promise<Stage> {
        const own = spec.closed ? new MosquittoTheatre() : undefined
        const port = own ? await own.open(true) : this.mosquitto!.port
        const proxy = new FaultProxy(port)
        await proxy.start()
        const devices: RealDevice[] = []
        for (let i = 0; i < (spec.devices ?? 1); ++i)
            devices.push(await realDevice(spec, i, proxy.port))
        const clients: MqttClient[] = []
        const client = async (clientId?: string) => {
            const made = await mqtt.connectAsync({
                host: "127.0.0.1",
                port,
                clientId,
                // Knows how to ask for a message's own retain flag.
                protocolVersion: 5,
                reconnectPeriod: 0,
            })
            made.on("error", () => {})
            clients.push(made)
            return made
        }
        const heard: Heard[] = []
        const watcher = own ? undefined : await client()
        watcher?.on("message", (topic, payload, { retain }) => {
            if (!isCommand(topic))
                heard.push({ topic, text: payload.toString(), retain })
        })
        for (const { id } of devices)
            await watcher?.subscribeAsync({
                [`herdless/${id}/#`]: { qos: 1, rap: true },
            })
        const log = () => (own ?? this).log()
        return {
            devices,
            heard,
            fault: fault => proxy.fault(fault),
            until: (what, holds) =>
                devices[0].until(what, holds, SHORT_LIMIT_MS),
            send: (device, command, payload = "", flags = {}) =>
                void watcher?.publish(
                    `herdless/${device.id}/cmd/${command}`,
                    payload,
                    flags,
                ),
            takeOver: async clientId => void (await client(clientId)),
            nowMs: () => proxy.clock.nowMs(),
            accepted: () =>
                log().filter(
                    line =>
                        line.includes("New client connected") &&
                        devices.some(d => line.includes(d.id)),
                ).length,
            complaints: () =>
                log().filter(
                    line =>
                        COMPLAINT.test(line) &&
                        (own || devices.some(d => line.includes(d.id))),
                ),
            panics: () => devices.flatMap(d => d.panics),
            async close() {
                for (const device of devices) device.powerOff()
                for (const one of clients) await one.endAsync(true)
                proxy.close()
                await own?.close()
            },
        }
    }
}

function realDevice({ name, settings }: StageSpec, i: number, port: number) {
    const json: Record<string, string> = {}
    for (const [key, value] of Object.entries(settings))
        json[key] = JSON.stringify(value)
    return RealDevice.make({
        id: createHash("sha256")
            .update(`${name}/${i}`)
            .digest("hex")
            .slice(0, 16),
        settings: { MQTT_HOST: '"127.0.0.1"', MQTT_PORT: `${port}`, ...json },
    })
}
