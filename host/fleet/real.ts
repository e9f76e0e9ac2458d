// The outage of sim.ts with real firmware: every device is a VM on a virtual clock, the broker is the
// simulation's, and what happens to an attempt is decided when it is dialled, as there.
import { generate, parser, type Packet } from "mqtt-packet"
import type { Policy } from "../../src/core/policy"
import { Sfc32 } from "../../src/core/random"
import { VirtualClock } from "../vm/clock"
import type { Network, Socket, SocketEvents } from "../vm/network"
import { DEAD_MS, SimBroker, type Answer } from "./broker"
import { countSecond, resultOf, type Result, type Scenario } from "./sim"
import { fleetImage, VmFleet } from "./vm-fleet"

/** From SYN to RST, as in sim.ts. */
const REFUSED_MS = 20

/** A device notices a loss within this, as in sim.ts. */
const NOTICE_MS = 500

/** From SYN to an open connection. */
const OPEN_MS = 1

/** Sessions are this much older than `stable` when the broker goes. */
const CALM_MS = 2000

export class RealFleet {
    readonly clock = new VirtualClock()
    private readonly fleet: VmFleet
    private readonly broker: SimBroker
    private readonly random: Sfc32
    private readonly links = new Map<number, BrokerLink>()
    private readonly doneMs: Float64Array
    /** Connects everybody at once: the time before the outage. */
    private isCalm = true
    private goneMs = 0
    backMs = 0
    private deadUntilMs = 0
    private attempts = 0
    private wasted = 0
    private attemptsBySecond: number[] = []

    private constructor(
        readonly name: string,
        private readonly scenario: Scenario,
        private readonly policy: Policy,
        image: Uint8Array,
    ) {
        const { devices, seed, rate, backlogS, broker } = scenario
        this.random = new Sfc32(seed, seed >>> 8, 7, 1)
        this.broker = new SimBroker({ kind: broker, rate, backlogS })
        this.doneMs = new Float64Array(devices).fill(Infinity)
        this.fleet = new VmFleet({
            devices,
            clock: this.clock,
            lazyTurns: true,
            seed,
            image,
            network: device => this.network(device),
            connected: device => {
                if (!this.isCalm) this.doneMs[device] = this.clock.nowMs()
            },
            lost: device => (this.doneMs[device] = Infinity),
        })
    }

    /** A fleet that is switched off. */
    static async make(name: string, scenario: Scenario, policy: Policy) {
        const image = await fleetImage(policy, "broker", 1883)
        return new RealFleet(name, scenario, policy, image)
    }

    /** Devices that are connected. */
    get up() {
        return this.fleet.up
    }

    get panics() {
        return this.fleet.panics
    }

    /** Switches all on; unless it is the power-on that is looked at, they have connected when it is over. */
    *start(): Generator<void> {
        const { devices, powerOn } = this.scenario
        if (powerOn) this.isCalm = false
        this.fleet.powerOn()
        if (powerOn) return
        while (this.up < devices) yield this.clock.runForSync(1000)
        yield this.clock.runForSync(this.policy.stableMs + CALM_MS)
    }

    /** The outage and what follows, in steps of a second, until all are back or the limit is reached. */
    *run(): Generator<void> {
        const { devices, powerOn, outageS, limitS } = this.scenario
        this.goneMs = this.clock.nowMs()
        this.backMs = this.goneMs + (powerOn ? 0 : outageS * 1000)
        if (!powerOn) this.goAway()
        const endMs = this.backMs + limitS * 1000
        while (this.clock.nowMs() < endMs) {
            yield this.clock.runForSync(1000)
            if (this.clock.nowMs() >= this.backMs && this.up === devices) return
        }
    }

    close() {
        this.fleet.powerOff()
    }

    private goAway() {
        this.isCalm = false
        for (let i = 0; i < this.scenario.devices; ++i) {
            const link = this.links.get(i)
            this.clock.setTimeout(() => link?.end(), this.noticeMs())
        }
    }

    private noticeMs() {
        return ((this.random.next() >>> 0) / 2 ** 32) * NOTICE_MS
    }

    private network(device: number): Network {
        return {
            isUp: () => true,
            open: (_host, _port, _tls, events) => this.dial(device, events),
        }
    }

    /** What becomes of an attempt. */
    private dial(device: number, events: SocketEvents): Socket {
        const nowMs = this.clock.nowMs()
        const link = new BrokerLink(this.clock, events, () => this.wasted++)
        this.links.set(device, link)
        if (this.isCalm) {
            link.answer(0)
            return link
        }
        this.count(nowMs)
        if (nowMs < this.backMs || nowMs < this.deadUntilMs) {
            const silent = this.scenario.silent && nowMs < this.backMs
            if (!silent) link.refuse()
            return link
        }
        link.answer(this.broker.arrive(nowMs))
        if (this.broker.dies(nowMs)) this.die(nowMs)
        return link
    }

    private die(nowMs: number) {
        this.deadUntilMs = nowMs + DEAD_MS
        for (const link of this.links.values()) link.end()
    }

    private count(nowMs: number) {
        this.attempts++
        countSecond(this.attemptsBySecond, nowMs - this.backMs)
    }

    /** What is known by now. */
    result(): Result {
        const { attempts, attemptsBySecond, wasted, backMs } = this
        const times = this.doneMs.map(ms => ms - backMs)
        const { deaths } = this.broker
        const counts = { attempts, attemptsBySecond, wasted, deaths }
        return resultOf(this.name, this.scenario, times, counts)
    }
}

/** One connection, at the broker's end: says nothing but what it must. */
class BrokerLink implements Socket {
    private isOver = false
    private isOpen = false
    /** What is to be sent once CONNECT has come: the CONNACK code, and when. */
    private reply: { code: number; atMs: number } | undefined
    private readonly reader = parser()

    constructor(
        private readonly clock: VirtualClock,
        private readonly events: SocketEvents,
        private readonly inVain: () => void,
    ) {
        this.reader.on("packet", packet => this.take(packet))
    }

    refuse() {
        this.later(REFUSED_MS, () => {
            this.isOver = true
            this.events.error("connect ECONNREFUSED")
        })
    }

    /** TCP opens at once, unless the broker dropped it; CONNACK comes when the broker says. */
    answer(answer: Answer) {
        if (answer === "dropped") return
        const code = answer === "busy" ? 3 : 0
        const waitMs = answer === "busy" ? REFUSED_MS : answer
        this.reply = { code, atMs: this.clock.nowMs() + waitMs }
        this.later(OPEN_MS, () => {
            this.isOpen = true
            this.events.open()
        })
        // It is completed, whether anybody still waits for it or not.
        if (code === 0)
            this.clock.setTimeout(() => {
                if (this.isOver) this.inVain()
            }, waitMs)
    }

    /** The broker is gone, and with it the connection. */
    end() {
        if (this.isOver || !this.isOpen) return
        this.isOver = true
        this.events.close()
    }

    private take(packet: Packet) {
        if (packet.cmd === "connect") this.welcome()
        else if (packet.cmd === "subscribe")
            this.send({
                cmd: "suback",
                messageId: packet.messageId!,
                granted: packet.subscriptions.map(s => s.qos),
            })
    }

    private welcome() {
        if (!this.reply) return
        const { code, atMs } = this.reply
        this.later(Math.max(0, atMs - this.clock.nowMs()), () => {
            this.events.data(Buffer.from([0x20, 2, 0, code]))
            if (code) this.end()
        })
    }

    private send(packet: Packet) {
        this.later(OPEN_MS, () => this.events.data(generate(packet)))
    }

    private later(delayMs: number, run: () => void) {
        this.clock.setTimeout(() => {
            if (!this.isOver) run()
        }, delayMs)
    }

    write(bytes: Uint8Array) {
        if (this.isOver) return -10
        this.reader.parse(Buffer.from(bytes))
        return 0
    }

    close() {
        this.isOver = true
    }

    destroy() {
        this.isOver = true
    }
}
