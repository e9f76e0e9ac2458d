// The outage with everything real: VMs on the real clock, real sockets, and a mosquitto behind a proxy that
// admits so many connections a second. During the outage mosquitto is stopped, and the proxy refuses or is silent.
import { setTimeout as sleep } from "node:timers/promises"
import type { Policy } from "../../src/core/policy"
import { FaultProxy } from "../lab/fault-proxy"
import * as faults from "../lab/faults"
import { freePort, Mosquitto } from "../lab/mosquitto"
import { RealNetwork } from "../vm/real-network"
import type { Network } from "../vm/network"
import { countSecond, resultOf, type Result, type Scenario } from "./sim"
import { fleetImage, VmFleet } from "./vm-fleet"

const LOOPBACK = "127.0.0.1"

/** Sessions are this much older than `stable` when the broker goes. */
const CALM_MS = 1000

/** Between two looks at how far it is. */
const LOOK_MS = 100

export class MosquittoFleet {
    private readonly doneMs: Float64Array
    private isCalm = true
    private backMs = Infinity
    private attempts = 0
    private attemptsBySecond: number[] = []

    private constructor(
        readonly name: string,
        private readonly scenario: Scenario,
        private readonly policy: Policy,
        private readonly broker: Mosquitto,
        private readonly proxy: FaultProxy,
        image: Uint8Array,
    ) {
        const { devices, seed } = scenario
        this.doneMs = new Float64Array(devices).fill(Infinity)
        this.fleet = new VmFleet({
            devices,
            clock: proxy.clock,
            lazyTurns: true,
            seed,
            image,
            network: () => this.network(),
            connected: device => {
                if (!this.isCalm) this.doneMs[device] = this.nowMs
            },
            lost: device => (this.doneMs[device] = Infinity),
        })
    }
    private readonly fleet: VmFleet

    /** Starts broker and proxy; the fleet is switched off. */
    static async make(name: string, scenario: Scenario, policy: Policy) {
        const broker = new Mosquitto(await freePort(), [
            "max_queued_messages 1",
        ])
        await broker.start()
        const proxy = new FaultProxy(broker.port, scenario.seed)
        await proxy.start()
        const image = await fleetImage(policy, LOOPBACK, proxy.port)
        return new MosquittoFleet(name, scenario, policy, broker, proxy, image)
    }

    /** Devices that are connected. */
    get up() {
        return this.fleet.up
    }

    get panics() {
        return this.fleet.panics
    }

    private get nowMs() {
        return this.proxy.clock.nowMs()
    }

    /** Connects all of them; then the broker is stopped, comes back, and is watched until all are back. */
    async *run(): AsyncGenerator<void> {
        const { devices, rate, backlogS, outageS, limitS, silent, powerOn } =
            this.scenario
        const admit = () =>
            this.proxy.fault(
                faults.admitPerSecond(rate, backlogS * rate, "silence"),
            )
        if (powerOn) {
            admit()
            this.isCalm = false
            this.backMs = this.nowMs
            this.fleet.powerOn()
        } else {
            this.fleet.powerOn()
            while (this.up < devices) yield sleep(LOOK_MS)
            const calmMs = this.nowMs + this.policy.stableMs + CALM_MS
            while (this.nowMs < calmMs) yield sleep(LOOK_MS)
            this.isCalm = false
            const goneMs = this.nowMs
            const away = this.proxy.fault(
                silent ? faults.partition() : faults.refuse(),
            )
            await this.broker.stop()
            while (this.nowMs < goneMs + outageS * 1000) yield sleep(LOOK_MS)
            await this.broker.start()
            admit()
            away.off()
            this.backMs = this.nowMs
        }
        const endMs = this.backMs + limitS * 1000
        while (this.up < devices && this.nowMs < endMs) yield sleep(LOOK_MS)
    }

    async close() {
        this.fleet.powerOff()
        this.proxy.close()
        await this.broker.dispose()
    }

    private network(): Network {
        const network = new RealNetwork()
        return {
            isUp: () => true,
            open: (host, port, tls, events) => {
                if (!this.isCalm) this.count()
                return network.open(host, port, tls, events)
            },
        }
    }

    private count() {
        this.attempts++
        countSecond(this.attemptsBySecond, this.nowMs - this.backMs)
    }

    /** What is known by now. What the broker completed in vain is not known. */
    result(): Result {
        const { attempts, attemptsBySecond, backMs } = this
        const times = this.doneMs.map(ms => ms - backMs)
        const counts = { attempts, attemptsBySecond, wasted: NaN, deaths: 0 }
        return resultOf(this.name, this.scenario, times, counts)
    }
}
