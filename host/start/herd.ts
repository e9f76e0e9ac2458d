// Many devices at once, each a real VM, against one broker, with buttons for trouble: `npm start -- --devices 50 --web`.
// A policy is a set of settings in flash: choosing another one flashes every device and switches it on again.
import { randomBytes } from "node:crypto"
import { Desk } from "../monitor/desk"
import { Listener } from "../monitor/listener"
import type { Builds } from "../monitor/builds"
import type { Action } from "../monitor/web"
import type { Clock } from "../vm/clock"
import type { Settings } from "../vm/env"
import { makeFlash } from "../vm/flash-image"
import { RealNetwork } from "../vm/real-network"
import { Board, OFF_MS } from "./board"
import { EmbeddedBroker } from "./broker"
import { Queue } from "./queue"

/** What the slow broker can do; 50 devices at once then need 25 s, longer than they wait for a CONNACK. */
const SLOW_PER_S = 2

/** Policies to compare, as the settings of the firmware. */
const POLICIES: Record<string, { label: string; settings: Settings }> = {
    herdless: { label: "Herdless (adaptive, jitter)", settings: {} },
    full: {
        label: "1 to 60 s doubling, full jitter",
        settings: { JITTER: '"full"', OVERLOAD_CAP: "60000" },
    },
    doubling: {
        label: "1 to 60 s doubling, no jitter",
        settings: { JITTER: '"none"', OVERLOAD_CAP: "60000" },
    },
    fixed: {
        label: "every 5 s, no jitter",
        settings: {
            JITTER: '"none"',
            RETRY_MIN: "5000",
            RETRY_CAP: "5000",
            OVERLOAD_CAP: "5000",
        },
    },
}

export interface HerdOptions {
    clock: Clock
    bytecode: Uint8Array
    devices: number
    /** Settings of the firmware, but for broker and policy. */
    settings: Settings
    builds: Builds
}

export class Herd {
    readonly desk = new Desk()
    private readonly broker: EmbeddedBroker
    private readonly queue: Queue
    private readonly network = new RealNetwork()
    private readonly ids: string[]
    private boards: Board[] = []
    private hasWifi = true
    private hasPower = true
    private policy = "herdless"
    private closed = false

    constructor(private readonly options: HerdOptions) {
        this.queue = new Queue(options.clock)
        this.broker = new EmbeddedBroker(() => {}, this.queue)
        this.ids = Array.from({ length: options.devices }, () =>
            randomBytes(8).toString("hex"),
        )
    }

    async start() {
        await this.broker.up()
        for (const id of this.ids) this.desk.add(id)
        await this.build()
    }

    /** Devices with the policy chosen; they go on at once. */
    private async build() {
        const { bytecode, settings } = this.options
        const image = await makeFlash(bytecode, {
            ...settings,
            ...POLICIES[this.policy].settings,
            MQTT_HOST: JSON.stringify(this.broker.host),
            MQTT_PORT: `${this.broker.port}`,
            MQTT_PROTO: '"tcp"',
        })
        if (this.closed) return
        this.boards = this.ids.map(id => this.makeBoard(id, image))
        this.hasPower = true
        for (const board of this.boards) board.powerOn()
    }

    private nowMs() {
        return Math.round(this.options.clock.nowMs())
    }

    private makeBoard(deviceId: string, image: Uint8Array): Board {
        const { clock, builds } = this.options
        const listener = new Listener({
            dev: deviceId,
            builds,
            tell: event => this.desk.take(event),
        })
        return new Board({
            deviceId,
            clock,
            image,
            network: this.network,
            setNetwork: up => (this.network.up = up),
            hasWifi: this.hasWifi,
            onLine: line =>
                this.desk.take({ tMs: this.nowMs(), dev: deviceId, line }),
            onConsole: text => listener.line(text, this.nowMs()),
            onHost: line => {
                if (line.ev === "power")
                    this.desk.power(deviceId, line.on, this.nowMs())
            },
        })
    }

    actions(): Action[] {
        return [
            { id: "broker", label: "Broker down", isOn: !this.broker.isUp },
            {
                id: "slow",
                label: `Slow broker (${SLOW_PER_S} connections a second)`,
                isOn: this.queue.perSecond !== undefined,
            },
            { id: "wifi", label: "Wi-Fi down", isOn: !this.hasWifi },
            { id: "power", label: "Power cut (1 s)", isOn: !this.hasPower },
            {
                id: "policy",
                label: "Policy",
                value: this.policy,
                choices: Object.entries(POLICIES).map(([id, { label }]) => [
                    id,
                    label,
                ]),
            },
        ]
    }

    async act(id: string, value: string) {
        const { broker, queue } = this
        switch (id) {
            case "broker":
                if (broker.isUp) await broker.down()
                else await broker.up()
                return
            case "slow":
                queue.perSecond = queue.perSecond ? undefined : SLOW_PER_S
                return
            case "wifi":
                this.hasWifi = !this.hasWifi
                for (const board of this.boards) board.setWifi(this.hasWifi)
                return
            case "power":
                return this.cutPower()
            case "policy":
                this.policy = value
                await this.closeBoards()
                await this.build()
        }
    }

    private cutPower() {
        if (!this.hasPower) return
        this.hasPower = false
        for (const board of this.boards) board.powerCycle()
        this.options.clock.setTimeout(() => (this.hasPower = true), OFF_MS)
    }

    private async closeBoards() {
        const { boards } = this
        this.boards = []
        await Promise.all(boards.map(board => board.close()))
    }

    async close() {
        this.closed = true
        await this.closeBoards()
        await this.broker.down()
    }
}
