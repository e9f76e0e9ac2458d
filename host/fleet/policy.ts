// Whom the simulator can drive: our own policy, which is the device's very code, and the peers'
// published formulas. A FleetPolicy holds the state of all devices.
import { Backoff, type Policy } from "../../src/core/backoff"
import type { Random } from "../../src/core/random"
import type { Evidence, Lane, Verdict } from "../../src/core/verdict"

/** The reconnect behaviour of a whole fleet; devices are numbered from 0. All waits in ms; negative: gives up for good. */
export interface FleetPolicy {
    readonly name: string
    /** The wait at a program start. */
    started(device: number): number
    /** The wait after losing a session that had lasted long. */
    lost(device: number): number
    /** The wait after an attempt that failed `attemptMs` after it began. */
    failed(device: number, evidence: Evidence, attemptMs: number): number
    /** CONNACK came. */
    accepted(device: number, nowMs: number): void
    /** The wait after the session that began with `accepted` was cut. */
    cut(device: number, nowMs: number): number
    /** How long the coming attempt waits for TCP and for CONNACK. */
    dialMs(device: number): number
    connackMs(device: number): number
}

/** Makes a policy for a fleet of so many devices. */
export type PolicyMaker = (devices: number, random: Random) => FleetPolicy

/** A session that is older than any that counts as young. */
const LONG_MS = 0x7fffffff

/**
 * Our own: one Backoff for each device.
 * @param randomOf a device's own random source, when it is not the fleet's
 */
export function ours(
    name: string,
    policy: Policy,
    randomOf?: (device: number) => Random,
): PolicyMaker {
    return (devices, random) => {
        const backoffs = Array.from(
            { length: devices },
            (_, device) => new Backoff(policy, randomOf?.(device) ?? random),
        )
        return {
            name,
            started: device => backoffs[device].begin(),
            lost(device) {
                backoffs[device].accepted(0)
                return backoffs[device].ended(LONG_MS, VERDICTS.reset)
            },
            failed: (device, evidence, attemptMs) =>
                backoffs[device].failed(VERDICTS[evidence], attemptMs),
            accepted: (device, nowMs) => backoffs[device].accepted(nowMs),
            cut: (device, nowMs) =>
                backoffs[device].ended(nowMs, VERDICTS.reset),
            dialMs: () => policy.dialMs,
            connackMs: device => backoffs[device].connackWaitMs,
        }
    }
}

const VERDICTS: Record<Evidence, Verdict> = {
    refused: verdict("retry", "refused"),
    silent: verdict("retry", "silent"),
    stalled: verdict("overload", "stalled"),
    busy: verdict("overload", "busy"),
    reset: verdict("overload", "reset"),
}

function verdict(lane: Lane, evidence: Evidence): Verdict {
    return { lane, evidence, reason: evidence }
}

/** What a formula may look at. The object is the same for all calls. */
export interface Turn {
    /** Failures since the last reset: 0 for the wait after the loss itself. */
    n: number
    /** What the formula left here for this device last time; 0 after a reset. */
    memory: number
    /** How long the attempt took that failed; 0 when there was none. */
    attemptMs: number
    /** A number from [0, 1). */
    uniform(): number
}

/** The wait in ms; negative: gives up. */
export type Formula = (turn: Turn) => number

/** How a peer's client waits, whatever the formula. */
export interface PeerOptions {
    /** For TCP, and again for CONNACK. */
    patienceMs: number
    /** A session has to last so long for the failures to be forgotten; 0: forgotten at CONNACK. */
    stableMs?: number
}

/** A peer: a formula over the number of failures, the same patience whatever happens. */
export function formula(
    name: string,
    { patienceMs, stableMs = 0 }: PeerOptions,
    wait: Formula,
): PolicyMaker {
    return (devices, random) => {
        const failures = new Int32Array(devices)
        const memory = new Float64Array(devices)
        const acceptedMs = new Float64Array(stableMs ? devices : 0)
        const turn: Turn = {
            n: 0,
            memory: 0,
            attemptMs: 0,
            uniform: () => (random.next() >>> 0) / 2 ** 32,
        }
        const draw = (device: number, attemptMs: number) => {
            turn.n = failures[device]
            turn.memory = memory[device]
            turn.attemptMs = attemptMs
            const waitMs = Math.round(wait(turn))
            memory[device] = turn.memory
            return waitMs
        }
        const begin = (device: number) => {
            failures[device] = 0
            memory[device] = 0
            return draw(device, 0)
        }
        const failed = (device: number, attemptMs: number) => {
            failures[device]++
            return draw(device, attemptMs)
        }
        return {
            name,
            started: begin,
            lost: begin,
            failed: (device, _evidence, attemptMs) => failed(device, attemptMs),
            accepted(device, nowMs) {
                if (stableMs) acceptedMs[device] = nowMs
            },
            cut: (device, nowMs) =>
                stableMs && nowMs - acceptedMs[device] < stableMs
                    ? failed(device, 0)
                    : begin(device),
            dialMs: () => patienceMs,
            connackMs: () => patienceMs,
        }
    }
}
