// The fleet's policy on the device: from flash at the start, from the broker later. core/fleet-policy.ts
// says what is taken and when it is written.
import * as ds from "@devicescript/core"
import { Backoff } from "../core/backoff"
import {
    FLEET_POLICY_KEY,
    FleetPolicyState,
    PATIENCE_MS,
} from "../core/fleet-policy"
import type { Policy } from "../core/policy"
import type { Publish } from "../mqtt/packets"
import type { Client } from "./client"
import { log } from "./log"
import { deleteRaw, readRaw, writeRaw } from "./settings"
import { messageText } from "./text"

/** How often it is looked whether something is to be stored, and how long the broker has been away. */
const LOOK_MS = 60000

/** After a refusal, until the topic is asked for again. */
const ASK_AGAIN_MS = 60000

/** What others may ask of the fleet policy; see `serveCommands`. */
export interface FleetPolicyControl {
    /** The issue number in force; 0 for none. */
    issue(): number
    /** Back to the device's own policy. */
    reset(): void
}

/**
 * Reads the stored fleet policy. Before `startMqtt`: the first wait after a power cut is already the fleet's.
 * @param own the device's own policy, in force without one
 */
export async function readFleetPolicy(own: Policy): Promise<FleetPolicyState> {
    const state = new FleetPolicyState(own)
    const line = state.restore(await readRaw(FLEET_POLICY_KEY))
    if (line) log(line)
    return state
}

/** Removes a stored fleet policy, if there is one. */
export async function forgetFleetPolicy(state: FleetPolicyState) {
    state.reset()
    await store(state)
}

/**
 * Follows the policy that is published on `topic`. Returns at once.
 * @param client of `startMqtt`, or of `startClient` with `strategies: allStrategies`
 * @param state of which it was given `policy()`
 * @throws RangeError for one without all strategies
 */
export function followFleetPolicy(
    client: Client,
    topic: string,
    state: FleetPolicyState,
): FleetPolicyControl {
    const backoff = client.connection.backoff
    // A message may ask for any strategy.
    if (!(backoff instanceof Backoff))
        throw new RangeError("followFleetPolicy needs strategies")
    let fiber: ds.Fiber
    let idle = false
    let wasUpMs = ds.millis()
    let patient = false

    const look = async () => {
        const nowMs = ds.millis()
        // A session that was thrown out at once is none.
        if (client.state() === "connected" && !backoff.isFlap(nowMs))
            wasUpMs = nowMs
        const before = patient
        patient = backoff.proven && nowMs - wasUpMs >= PATIENCE_MS
        if (patient !== before && state.current)
            backoff.adopt(state.policy(patient))
        await store(state)
    }
    const watch = async () => {
        fiber = ds.Fiber.self()
        while (true) {
            await look()
            idle = true
            await ds.suspend(LOOK_MS)
            idle = false
        }
    }
    const changed = () => {
        backoff.adopt(state.policy(patient))
        // Not while it waits for the flash.
        if (idle) {
            idle = false
            fiber.resume(undefined)
        }
    }
    const onMessage = (message: Publish) => {
        const before = state.current
        const line = state.offer(messageText(message))
        if (line) log(line)
        if (state.current !== before) changed()
    }
    const listen = async () => {
        const ask = async () => await client.subscribe(topic, onMessage, 1)
        while ((await ask()).slice(0, 7) === "refused")
            await ds.sleep(ASK_AGAIN_MS)
    }
    watch.start()
    listen.start()
    return {
        issue: () => (state.current ? state.current.issue : 0),
        reset: () => {
            log(state.reset())
            changed()
        },
    }
}

/** Writes what is to be written. One that fails is tried again in an hour; until then the policy is only in RAM. */
async function store(state: FleetPolicyState) {
    const nowMs = ds.millis()
    const text = state.toStore(nowMs)
    if (text === undefined) return
    const done = text
        ? await writeRaw(FLEET_POLICY_KEY, text)
        : await deleteRaw(FLEET_POLICY_KEY)
    state.wasStored(done ? text : undefined, nowMs)
}
