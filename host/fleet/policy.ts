// Whom the simulator can drive: our own policy, which is the device's very code, and the peers'
// published formulas. A FleetPolicy holds the state of all devices.
import { Backoff, type Policy } from "../../src/core/backoff"
import type { Random } from "../../src/core/random"
import type { Evidence, Lane, Verdict } from "../../src/core/verdict"

/** The reconnect behaviour of a whole fleet; devices are numbered from 0. */
export interface FleetPolicy {
    readonly name: string
    /** The wait after a loss or a power-on, ms. */
    first(device: number): number
    /** The wait after a failed attempt, ms; negative: this device gives up for good. */
    failed(device: number, evidence: Evidence, attemptMs: number): number
    /** How long the coming attempt waits for TCP and for CONNACK, ms. */
    dialMs(device: number): number
    connackMs(device: number): number
}

/** Makes a policy for a fleet of so many devices. */
export type PolicyMaker = (devices: number, random: Random) => FleetPolicy

/** Our own: one Backoff for each device, made when it is first needed. */
export function ours(name: string, policy: Policy): PolicyMaker {
    return (devices, random) => {
        const backoffs = Array.from(
            { length: devices },
            () => new Backoff(policy, random),
        )
        return {
            name,
            first: device => backoffs[device].begin(),
            failed: (device, evidence) =>
                backoffs[device].failed(VERDICTS[evidence]),
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

/** A formula: the wait before attempt n (0 is the first after the loss), given the last wait. */
export type Formula = (
    n: number,
    lastMs: number,
    uniform: () => number,
) => number

/** A peer: a formula over the number of failures, the same patience whatever happens. */
export function formula(
    name: string,
    patienceMs: number,
    wait: Formula,
): PolicyMaker {
    return (devices, random) => {
        const failures = new Int32Array(devices)
        const last = new Float64Array(devices)
        const uniform = () => (random.next() >>> 0) / 2 ** 32
        const draw = (device: number) => {
            const waitMs = Math.round(
                wait(failures[device], last[device], uniform),
            )
            last[device] = waitMs
            return waitMs
        }
        return {
            name,
            first(device) {
                failures[device] = 0
                last[device] = 0
                return draw(device)
            },
            failed(device) {
                failures[device]++
                return draw(device)
            },
            dialMs: () => patienceMs,
            connackMs: () => patienceMs,
        }
    }
}
