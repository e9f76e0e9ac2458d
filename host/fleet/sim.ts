// One outage of one fleet, as a discrete-event simulation. A device has one event at a time: its
// next attempt, or the end of the one under way. What happens at the broker is decided when an
// attempt arrives, so an attempt costs two events at most.
import { Sfc32 } from "../../src/core/random"
import type { Evidence } from "../../src/core/verdict"
import { DEAD_MS, SimBroker, type BrokerKind } from "./broker"
import { Calendar } from "./calendar"
import type { PolicyMaker } from "./policy"

/** What happens to the fleet. */
export interface Scenario {
    devices: number
    /** Connections the broker completes a second. */
    rate: number
    backlogS: number
    broker: BrokerKind
    /** The broker is away for so long; with `powerOn` it is not away at all. */
    outageS: number
    /** While away it does not even refuse. */
    silent: boolean
    /** All devices are switched on together instead of losing the broker. */
    powerOn: boolean
    seed: number
    /** Give up watching so long after the broker is back. */
    limitS: number
}

/** What came of it. Times in seconds from the broker's return; Infinity for never. */
export interface Result {
    name: string
    recovered: number
    p50: number
    p99: number
    last: number
    /** p99 over devices / rate. */
    ratio: number
    attemptsPerDevice: number
    /** Connections the broker completed for nobody. */
    wasted: number
    peakPerSecond: number
    brokerDeaths: number
    /** Devices recovered, and attempts, in each second from the broker's return. */
    recoveredBySecond: number[]
    attemptsBySecond: number[]
}

/** A device notices a loss within this. */
const NOTICE_MS = 500

/** From SYN to RST. */
const REFUSED_MS = 20

const enum Stage {
    idle,
    attempt,
    refused,
    silent,
    stalled,
    busy,
    reset,
    served,
    done,
    gaveUp,
}

const EVIDENCE: Partial<Record<Stage, Evidence>> = {
    [Stage.refused]: "refused",
    [Stage.silent]: "silent",
    [Stage.stalled]: "stalled",
    [Stage.busy]: "busy",
    [Stage.reset]: "reset",
}

export class FleetSim {
    private readonly calendar: Calendar
    private readonly stage: Uint8Array
    private readonly doneMs: Float64Array
    private readonly broker: SimBroker
    private readonly policy
    private readonly random: Sfc32
    private readonly backMs: number
    /** Until when a broker that died is away. */
    private deadUntilMs = 0
    private attempts = 0
    private wasted = 0
    private recovered = 0
    private attemptsBySecond: number[] = []

    constructor(
        private readonly scenario: Scenario,
        make: PolicyMaker,
    ) {
        const { devices, seed, rate, backlogS, broker } = scenario
        this.random = new Sfc32(seed, seed >>> 8, 7, 1)
        this.policy = make(devices, this.random)
        this.calendar = new Calendar(devices)
        this.stage = new Uint8Array(devices)
        this.doneMs = new Float64Array(devices).fill(Infinity)
        this.broker = new SimBroker({ kind: broker, rate, backlogS })
        this.backMs = scenario.powerOn ? 0 : scenario.outageS * 1000
        for (let i = 0; i < devices; ++i) {
            const noticeMs = scenario.powerOn
                ? 0
                : ((this.random.next() >>> 0) / 2 ** 32) * NOTICE_MS
            this.plan(i, noticeMs, this.policy.first(i))
        }
    }

    /** Simulated so far. */
    get timeMs() {
        return this.calendar.time
    }

    /** Devices that are back. */
    get recoveredDevices() {
        return this.recovered
    }

    /** Runs for at most `forMs` of simulated time; false when there is no more to come. */
    run(forMs: number): boolean {
        const limitMs = this.backMs + this.scenario.limitS * 1000
        const untilMs = Math.min(this.calendar.time + forMs, limitMs)
        let device = this.calendar.take(untilMs)
        while (device >= 0) {
            this.event(device, this.calendar.time)
            device = this.calendar.take(untilMs)
        }
        return this.calendar.size > 0 && this.calendar.time < limitMs
    }

    private plan(device: number, fromMs: number, waitMs: number) {
        if (waitMs < 0) {
            this.stage[device] = Stage.gaveUp
            return
        }
        this.stage[device] = Stage.attempt
        this.calendar.set(device, fromMs + waitMs)
    }

    private event(device: number, nowMs: number) {
        const stage: Stage = this.stage[device]
        if (stage === Stage.attempt) return this.attempt(device, nowMs)
        if (stage === Stage.served) {
            this.stage[device] = Stage.done
            this.doneMs[device] = nowMs
            this.recovered++
            return
        }
        const evidence = EVIDENCE[stage]
        if (!evidence) return
        const waitMs = this.policy.failed(device, evidence, nowMs)
        this.plan(device, nowMs, waitMs)
    }

    private attempt(device: number, nowMs: number) {
        this.attempts++
        this.count(nowMs)
        if (nowMs < this.backMs || nowMs < this.deadUntilMs) {
            const silent = this.scenario.silent && nowMs < this.backMs
            if (silent)
                this.end(device, Stage.silent, nowMs + this.dial(device))
            else this.end(device, Stage.refused, nowMs + REFUSED_MS)
            return
        }
        const answer = this.broker.arrive(nowMs)
        if (answer === "dropped")
            this.end(device, Stage.silent, nowMs + this.dial(device))
        else if (answer === "busy")
            this.end(device, Stage.busy, nowMs + REFUSED_MS)
        else {
            const patienceMs = this.policy.connackMs(device)
            if (answer <= patienceMs)
                this.end(device, Stage.served, nowMs + answer)
            else {
                this.wasted++
                this.end(device, Stage.stalled, nowMs + patienceMs)
            }
        }
        if (this.broker.dies(nowMs)) this.die(nowMs)
    }

    private end(device: number, stage: Stage, atMs: number) {
        this.stage[device] = stage
        this.calendar.set(device, atMs)
    }

    private dial(device: number) {
        return this.policy.dialMs(device)
    }

    /** The broker dies: whoever it served, or has in its queue, is thrown out. */
    private die(nowMs: number) {
        this.deadUntilMs = nowMs + DEAD_MS
        for (let i = 0; i < this.stage.length; ++i) {
            const stage: Stage = this.stage[i]
            if (stage === Stage.done) {
                this.recovered--
                this.doneMs[i] = Infinity
                this.plan(i, nowMs, this.policy.first(i))
            } else if (stage === Stage.served || stage === Stage.stalled)
                this.end(i, Stage.reset, nowMs)
        }
    }

    private count(nowMs: number) {
        const second = Math.floor((nowMs - this.backMs) / 1000)
        if (second < 0) return
        const counts = this.attemptsBySecond
        while (counts.length <= second) counts.push(0)
        counts[second]++
    }

    result(): Result {
        const { devices, rate } = this.scenario
        const times = this.doneMs
            .map(ms => Math.max(0, ms - this.backMs) / 1000)
            .sort()
        const at = (part: number) =>
            times[Math.min(devices - 1, Math.ceil(part * devices) - 1)]
        const recoveredBySecond: number[] = []
        for (const time of times) {
            if (time === Infinity) break
            while (recoveredBySecond.length <= time) recoveredBySecond.push(0)
            recoveredBySecond[Math.floor(time)]++
        }
        return {
            name: this.policy.name,
            recovered: this.recovered,
            p50: at(0.5),
            p99: at(0.99),
            last: at(1),
            ratio: at(0.99) / (devices / rate),
            attemptsPerDevice: this.attempts / devices,
            wasted: this.wasted,
            peakPerSecond: this.attemptsBySecond.reduce(
                (a, b) => Math.max(a, b),
                0,
            ),
            brokerDeaths: this.broker.deaths,
            recoveredBySecond,
            attemptsBySecond: this.attemptsBySecond,
        }
    }
}
