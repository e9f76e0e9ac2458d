// Which numbers suit a fleet: the fitted policy for N and C, and what the simulator predicts for it.
// Pure but for the time it takes.
import type { Policy } from "../../src/core/policy"
import { ours } from "./policy"
import { fitted } from "./presets"
import { FleetSim, type Result, type Scenario } from "./sim"

export interface PlanOptions {
    devices: number
    rate: number
    patienceMs: number
    margin: number
    seed: number
}

/** What the retained message on `<prefix>/policy` carries; the operator counts `issue` up. */
export interface PolicyMessage {
    issue: number
    minMs: number
    capMs: number
    spreadMs: number
    overloadCapMs: number
    jitter: string
}

/** Times in seconds; Infinity for never. */
export interface Prediction {
    p50: number
    p99: number
    last: number
    peakPerSecond: number
    wasted: number
}

export interface Plan {
    options: PlanOptions
    limitS: number
    policy: PolicyMessage
    env: Record<string, string>
    /** The broker is away for RESTART_S and comes back. */
    restart: Prediction
    /** All devices are switched on at the same time. */
    powerOn: Prediction
    /** The restart, when the broker completes a fifth less than it was said to. */
    slower: Prediction
    /** Seconds until one device that lost its connection alone tries again. */
    blip: { plainS: [number, number]; fastFirstS: [number, number] }
    /** Fast first in a restart, and in one so quick that its one attempt meets the broker. */
    fastFirst: { restart: Prediction; quick: Prediction }
    /** The same quick restart without it. */
    quick: Prediction
    warnings: string[]
}

/** A broker's restart, and one that is over before a device's fast attempt, at 1 to 2 s. */
export const RESTART_S = 60
export const QUICK_S = 1

/** What may be queued at the broker: more than devices wait for at first. */
const BACKLOG_S = 20

/** Bounds of the message, as compiled into the firmware. */
const MAX_SPREAD_MS = 6 * 3_600_000

/** More devices are simulated as that many, at a rate that keeps the limit. */
const MAX_SIMULATED = 200_000

export function planFor(options: PlanOptions): Plan {
    const { devices, rate, patienceMs, margin } = options
    const policy = fitted({ devices, rate, patienceMs, margin })
    const warnings: string[] = []
    if (policy.spreadMs > MAX_SPREAD_MS) {
        warnings.push(
            `a spread of ${Math.round(policy.spreadMs / 1000)} s is more than devices accept (${MAX_SPREAD_MS / 1000} s): ` +
                "this fleet needs a faster broker, or more than one",
        )
        policy.spreadMs = policy.overloadCapMs = MAX_SPREAD_MS
    }
    const restart = { outageS: RESTART_S, powerOn: false }
    const quick = { outageS: QUICK_S, powerOn: false }
    const fast = { ...policy, fastFirst: true }
    return {
        options,
        limitS: devices / rate,
        policy: messageOf(policy),
        env: envOf(policy),
        restart: predict(options, policy, restart),
        powerOn: predict(options, policy, { outageS: 0, powerOn: true }),
        slower: predict({ ...options, rate: rate * 0.8 }, policy, restart),
        blip: {
            plainS: [policy.minMs, policy.minMs + policy.spreadMs].map(toS) as [
                number,
                number,
            ],
            fastFirstS: [policy.minMs, 2 * policy.minMs].map(toS) as [
                number,
                number,
            ],
        },
        fastFirst: {
            restart: predict(options, fast, restart),
            quick: predict(options, fast, quick),
        },
        quick: predict(options, policy, quick),
        warnings,
    }
}

function toS(ms: number): number {
    return ms / 1000
}

/** The settings of the reference firmware; times in ms. */
function envOf(policy: Policy): Record<string, string> {
    return {
        RETRY_MIN: String(policy.minMs),
        RETRY_CAP: String(policy.capMs),
        OVERLOAD_CAP: String(policy.overloadCapMs),
        SPREAD: String(policy.spreadMs),
        JITTER: policy.jitter,
        CONNACK_WAIT: String(policy.connackMs),
    }
}

function messageOf(policy: Policy): PolicyMessage {
    const { minMs, capMs, spreadMs, overloadCapMs, jitter } = policy
    return { issue: 1, minMs, capMs, spreadMs, overloadCapMs, jitter }
}

function predict(
    { devices, rate, seed }: PlanOptions,
    policy: Policy,
    outage: { outageS: number; powerOn: boolean },
): Prediction {
    const scale = Math.max(1, devices / MAX_SIMULATED)
    const scenario: Scenario = {
        devices: Math.max(1, Math.round(devices / scale)),
        rate: rate / scale,
        backlogS: BACKLOG_S,
        broker: "queue",
        silent: false,
        seed,
        limitS: Math.max(7200, (20 * devices) / rate),
        ...outage,
    }
    const sim = new FleetSim(scenario, ours("plan", policy))
    while (sim.run(1e6));
    return predictionOf(sim.result(), scale)
}

function predictionOf(result: Result, scale: number): Prediction {
    const { p50, p99, last, peakPerSecond, wasted } = result
    return {
        p50,
        p99,
        last,
        peakPerSecond: Math.round(peakPerSecond * scale),
        wasted: Math.round(wasted * scale),
    }
}
