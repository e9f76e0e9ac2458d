// Whom the simulator can drive: our own policy, which is the device's very code, and the peers'
// published formulas. A FleetPolicy holds the state of all devices.
import { Backoff } from "../../src/core/backoff"
import { type Policy } from "../../src/core/policy"
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
 * Our own: the device's Backoff, which takes on one device's state after the other.
 * @param randomOf a device's own random source, when it is not the fleet's
 */
export function ours(
    name: string,
    policy: Policy,
    randomOf?: (device: number) => Random,
): PolicyMaker {
    return (devices, random) => {
        const fleet = new Backoffs(policy, devices, random, randomOf)
        return {
            name,
            started: device => fleet.done(device, fleet.of(device).begin()),
            lost(device) {
                const backoff = fleet.of(device)
                backoff.accepted(0)
                const waitMs = backoff.ended(LONG_MS, VERDICTS.reset)
                return fleet.done(device, waitMs)
            },
            failed(device, evidence, attemptMs) {
                const backoff = fleet.of(device)
                const waitMs = backoff.failed(VERDICTS[evidence], attemptMs)
                return fleet.done(device, waitMs)
            },
            accepted(device, nowMs) {
                fleet.of(device).accepted(Math.floor(nowMs))
                fleet.done(device, 0)
            },
            cut(device, nowMs) {
                const backoff = fleet.of(device)
                return fleet.done(device, backoff.ended(nowMs, VERDICTS.reset))
            },
            dialMs: () => policy.dialMs,
            connackMs: device => fleet.connackWaitMs(device),
        }
    }
}

/** Integers of a device's state. */
const ROW = 8

/** One Backoff and the states of a fleet, a row of integers each: a million objects would be several cache misses an event. */
class Backoffs {
    private readonly rows: Int32Array
    private readonly one: Backoff
    private readonly randoms: Random[] | undefined

    constructor(
        policy: Policy,
        devices: number,
        random: Random,
        randomOf?: (device: number) => Random,
    ) {
        this.rows = new Int32Array(devices * ROW)
        // What it draws when it is made is no device's.
        this.one = new Backoff(policy, { next: () => 0 })
        this.one.random = random
        if (randomOf)
            this.randoms = Array.from({ length: devices }, (_, i) =>
                randomOf(i),
            )
        for (let device = 0; device < devices; ++device) {
            const own = this.randoms ? this.randoms[device] : random
            this.keep(device, new Backoff(policy, own))
        }
    }

    /** The Backoff, in the device's state; `done` ends that. */
    of(device: number): Backoff {
        const { rows, one } = this
        const at = device * ROW
        const flags = rows[at]
        one.proven = (flags & 1) !== 0
        one.silences = flags >> 1
        one.attempts = rows[at + 1]
        one.ceilingMs = rows[at + 2]
        one.connackWaitMs = rows[at + 3]
        one.slowMs = rows[at + 4]
        one.lastMs = rows[at + 5]
        one.acceptedMs = rows[at + 6]
        if (this.randoms) one.random = this.randoms[device]
        return one
    }

    /** As `of(device).connackWaitMs`, which would read all of the row, at each attempt. */
    connackWaitMs(device: number): number {
        return this.rows[device * ROW + 3]
    }

    /** Keeps the device's state; hands the wait on. */
    done(device: number, waitMs: number): number {
        this.keep(device, this.one)
        return waitMs
    }

    private keep(device: number, backoff: Backoff) {
        const { rows } = this
        const at = device * ROW
        rows[at] = (backoff.proven ? 1 : 0) | (backoff.silences << 1)
        rows[at + 1] = backoff.attempts
        rows[at + 2] = backoff.ceilingMs
        rows[at + 3] = backoff.connackWaitMs
        rows[at + 4] = backoff.slowMs
        rows[at + 5] = backoff.lastMs
        rows[at + 6] = backoff.acceptedMs
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
