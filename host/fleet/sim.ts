// One outage of one fleet, as a discrete-event simulation. What comes of an attempt is decided when it
// arrives at the broker, so an attempt is one event: the next is the attempt after it. Only where a broker
// may die meanwhile (`fragile`) the end of an attempt is an event of its own.
import { Sfc32 } from "../../src/core/random"
import type { Evidence } from "../../src/core/verdict"
import { DEAD_MS, SimBroker, type BrokerKind } from "./broker"
import { Calendar } from "./calendar"
import type { FleetPolicy, PolicyMaker } from "./policy"

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
    /** Connections the broker completed for nobody; NaN: not known. */
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

/** So many attempts of a device at a broker that is away are one event: few enough to stop between two. */
const AT_ONCE = 16

/** What a device's event in the calendar is. */
const enum Stage {
    /** No event: connected, or gave up. */
    none,
    attempt,
    /** CONNACK, when no death of the broker prevents it. */
    served,
    /** The end of its patience, when no death of the broker prevents it. */
    stalled,
}

export class FleetSim {
    private readonly calendar: Calendar
    private readonly stage: Uint8Array
    /** When CONNACK came or, without deaths, will come; Infinity: not yet. */
    private readonly doneMs: Float64Array
    /** When the attempt under way began; only where a broker may die. */
    private readonly beganMs: Float64Array
    private readonly broker: SimBroker
    private readonly policy: FleetPolicy
    private readonly random: Sfc32
    private readonly backMs: number
    private readonly limitMs: number
    private readonly mayDie: boolean
    /** Until when a broker that died is away. */
    private deadUntilMs = 0
    private attempts = 0
    private wasted = 0
    private served = 0
    private attemptsBySecond: number[] = []

    constructor(
        private readonly scenario: Scenario,
        make: PolicyMaker,
    ) {
        const { devices, seed, rate, backlogS, broker, powerOn } = scenario
        this.mayDie = broker === "fragile"
        this.random = new Sfc32(seed, seed >>> 8, 7, 1)
        this.policy = make(devices, this.random)
        this.calendar = new Calendar(devices, new Sfc32(seed, 0, 0, 2))
        this.stage = new Uint8Array(devices)
        this.doneMs = new Float64Array(devices).fill(Infinity)
        this.beganMs = new Float64Array(this.mayDie ? devices : 0)
        this.broker = new SimBroker({ kind: broker, rate, backlogS })
        this.backMs = powerOn ? 0 : scenario.outageS * 1000
        this.limitMs = this.backMs + scenario.limitS * 1000
        for (let i = 0; i < devices; ++i) {
            if (powerOn) this.plan(i, 0, this.policy.started(i))
            else this.plan(i, this.noticeMs(), this.policy.lost(i))
        }
    }

    private noticeMs() {
        return ((this.random.next() >>> 0) / 2 ** 32) * NOTICE_MS
    }

    /** Simulated so far. */
    get timeMs() {
        return this.calendar.time
    }

    /** Devices that have a CONNACK, or are about to. */
    get servedDevices() {
        return this.served
    }

    /** Runs for at most `forMs` of simulated time; false when there is no more to come. */
    run(forMs: number): boolean {
        const untilMs = Math.min(this.calendar.time + forMs, this.limitMs)
        let device = this.calendar.take(untilMs)
        while (device >= 0) {
            this.event(device, this.calendar.time)
            device = this.calendar.take(untilMs)
        }
        return this.calendar.size > 0 && this.calendar.time < this.limitMs
    }

    private plan(device: number, fromMs: number, waitMs: number) {
        if (waitMs < 0) {
            this.stage[device] = Stage.none
            return
        }
        this.stage[device] = Stage.attempt
        this.calendar.add(device, fromMs + waitMs)
    }

    private event(device: number, nowMs: number) {
        const stage: Stage = this.stage[device]
        if (stage === Stage.attempt) this.attempt(device, nowMs)
        else if (stage === Stage.served) this.accept(device, nowMs)
        else if (stage === Stage.stalled)
            this.fail(device, "stalled", nowMs, nowMs - this.beganMs[device])
    }

    private attempt(device: number, nowMs: number) {
        if (nowMs < this.backMs) return this.away(device, nowMs)
        this.count(nowMs)
        if (nowMs < this.deadUntilMs) {
            this.fail(device, "refused", nowMs + REFUSED_MS, REFUSED_MS)
            return
        }
        const answer = this.broker.arrive(nowMs)
        if (answer === "dropped") this.unanswered(device, nowMs)
        else if (answer === "busy")
            this.fail(device, "busy", nowMs + REFUSED_MS, REFUSED_MS)
        else this.queued(device, nowMs, answer)
        if (this.mayDie && this.broker.dies(nowMs)) this.die(nowMs)
    }

    private count(nowMs: number) {
        this.attempts++
        countSecond(this.attemptsBySecond, nowMs - this.backMs)
    }

    /** An attempt before the broker is back, and those after it: they concern nobody else, and need not wait for their turn. */
    private away(device: number, nowMs: number) {
        const { silent } = this.scenario
        let atMs = nowMs
        for (let left = AT_ONCE; ; --left) {
            this.count(atMs)
            const tookMs = silent ? this.policy.dialMs(device) : REFUSED_MS
            const evidence = silent ? "silent" : "refused"
            const waitMs = this.policy.failed(device, evidence, tookMs)
            const nextMs = Math.ceil(atMs + tookMs + waitMs)
            if (waitMs < 0 || nextMs >= this.backMs || left === 1)
                return this.plan(device, atMs + tookMs, waitMs)
            atMs = nextMs
        }
    }

    private unanswered(device: number, nowMs: number) {
        const waitedMs = this.policy.dialMs(device)
        this.fail(device, "silent", nowMs + waitedMs, waitedMs)
    }

    /** The broker will complete the connection after `answerMs`, for whoever is still there. */
    private queued(device: number, nowMs: number, answerMs: number) {
        const patienceMs = this.policy.connackMs(device)
        const inTime = answerMs <= patienceMs
        if (!inTime) this.wasted++
        if (this.mayDie) {
            this.beganMs[device] = nowMs
            this.stage[device] = inTime ? Stage.served : Stage.stalled
            this.calendar.add(device, nowMs + Math.min(answerMs, patienceMs))
        } else if (inTime) this.accept(device, nowMs + answerMs)
        else this.fail(device, "stalled", nowMs + patienceMs, patienceMs)
    }

    private accept(device: number, atMs: number) {
        this.stage[device] = Stage.none
        this.doneMs[device] = atMs
        this.served++
        this.policy.accepted(device, atMs)
    }

    private fail(
        device: number,
        evidence: Evidence,
        atMs: number,
        attemptMs: number,
    ) {
        this.plan(device, atMs, this.policy.failed(device, evidence, attemptMs))
    }

    /** The broker dies: whoever it served, or has in its queue, is thrown out. */
    private die(nowMs: number) {
        this.deadUntilMs = nowMs + DEAD_MS
        const { policy, stage, doneMs } = this
        this.calendar.moveAll(device => {
            let waitMs: number
            if (doneMs[device] !== Infinity) {
                this.served--
                doneMs[device] = Infinity
                waitMs = this.noticeMs() + policy.cut(device, nowMs)
            } else if (stage[device] > Stage.attempt) {
                const attemptMs = nowMs - this.beganMs[device]
                waitMs = policy.failed(device, "reset", attemptMs)
            } else return undefined
            stage[device] = waitMs < 0 ? Stage.none : Stage.attempt
            return waitMs < 0 ? undefined : nowMs + waitMs
        })
    }

    /** What is known by now. */
    result(): Result {
        const { backMs, attemptsBySecond } = this
        // A CONNACK that is still to come counts only when there is nothing else to wait for.
        const knownMs =
            this.calendar.size === 0
                ? this.limitMs
                : Math.min(this.calendar.time, this.limitMs)
        return resultOf(
            this.policy.name,
            this.scenario,
            this.doneMs.map(ms => (ms > knownMs ? Infinity : ms - backMs)),
            {
                attempts: this.attempts,
                attemptsBySecond,
                wasted: this.wasted,
                deaths: this.broker.deaths,
            },
        )
    }
}

/** What is counted while an outage runs. */
export interface Counts {
    attempts: number
    /** In each second from the broker's return. */
    attemptsBySecond: number[]
    wasted: number
    deaths: number
}

/** @param doneMs of each device, from the broker's return; Infinity: not connected */
export function resultOf(
    name: string,
    { devices, rate }: Scenario,
    doneMs: Float64Array,
    { attempts, attemptsBySecond, wasted, deaths }: Counts,
): Result {
    const times = doneMs.map(ms => Math.max(0, ms)).sort()
    const at = (part: number) => times[Math.ceil(part * devices) - 1] / 1000
    const recovered = firstInfinite(times)
    return {
        name,
        recovered,
        p50: at(0.5),
        p99: at(0.99),
        last: at(1),
        ratio: at(0.99) / (devices / rate),
        attemptsPerDevice: attempts / devices,
        wasted,
        peakPerSecond: attemptsBySecond.reduce((a, b) => Math.max(a, b), 0),
        brokerDeaths: deaths,
        recoveredBySecond: bySecond(times.subarray(0, recovered)),
        attemptsBySecond,
    }
}

/** How many of the sorted times are finite. */
function firstInfinite(times: Float64Array): number {
    const at = times.indexOf(Infinity)
    return at < 0 ? times.length : at
}

/** How many of the sorted times, ms, fall into each second. */
function bySecond(times: Float64Array): number[] {
    const counts: number[] = []
    for (const ms of times) {
        const second = Math.floor(ms / 1000)
        while (counts.length <= second) counts.push(0)
        counts[second]++
    }
    return counts
}

/** Counts something in its second since the broker's return; not what was before, nor while that time is unknown (NaN). */
export function countSecond(counts: number[], sinceMs: number) {
    const second = Math.floor(sinceMs / 1000)
    if (!(second >= 0)) return
    while (counts.length <= second) counts.push(0)
    counts[second]++
}
