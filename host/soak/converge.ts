// The liveness phase: everything is healed, and now every device has to be connected, subscribed and
// publishing again, in the time that its policy promises from where it stands. Waits and attempts are
// judged by the policy's watch; here it is that each state is left, and that the end is reached.
import { filterMatches } from "../lab/mqtt-wire"
import type { Actor, Rig } from "./rig"

/** What left before the healing may still fail when it began less than this after it. */
const GRACE_MS = 1000

/** A crash, 5 s of the runtime, its start, and a second until the settings are there. */
const BOOT_MS = 12_000

/** Association, and the next look at the Wi-Fi service. */
const LINK_MS = 20_000

/** Between two lines of a hold. */
const HELD_MS = 65_000

const STEP_MS = 1000

/** More than any promise here: an hour's wait, an attempt, another hour. */
const GIVE_UP_MS = 3 * 3_600_000

/** Handlers that block have a queue of less before them, and refused filters are asked for again. */
const QUEUE_MS = 70_000

export interface Converged {
    /** How long it took until the last device was back. */
    tookMs: number
}

export async function converge(rig: Rig): Promise<Converged | undefined> {
    const { world } = rig
    const healedMs = world.nowMs
    rig.heal()
    rig.forget()
    for (const { watch } of rig.actors) {
        watch.healedMs = healedMs + GRACE_MS
        watch.telemetry = 0
    }
    while (!rig.actors.every(a => isBack(rig, a, healedMs))) {
        if (rig.finding) return undefined
        if (world.nowMs - healedMs > GIVE_UP_MS)
            return void rig.found(rig.actors[0], "convergence", "not at all")
        await world.run(STEP_MS)
        rig.look()
        rig.forget()
        for (const a of rig.actors) {
            if (a.watch.isUp) rig.send(a, a.part.topics[0], 20, 0)
            checkProgress(rig, a, healedMs)
        }
    }
    const tookMs = world.nowMs - healedMs
    await settle(rig)
    return rig.finding ? undefined : { tookMs }
}

/** Connected, and both ways work since the healing. */
function isBack(rig: Rig, { part, watch }: Actor, healedMs: number): boolean {
    const { policy } = watch
    const fromMs = healedMs + GRACE_MS
    if (!watch.isUp || !rig.strict.connected.includes(part.clientId))
        return false
    return (
        policy.sinceMs > fromMs ||
        (policy.lastInMs > fromMs && watch.telemetry > 0)
    )
}

/** No state lasts longer than it may. */
function checkProgress(rig: Rig, actor: Actor, healedMs: number) {
    const { watch, part } = actor
    const { policy } = watch
    const { nowMs } = rig.world
    const since = (ms: number) => nowMs - Math.max(healedMs, ms)
    const stuck = (ms: number, longestMs: number) => {
        if (since(ms) > longestMs)
            rig.found(
                actor,
                "convergence",
                `${policy.phase} for ${since(ms)} ms, promised ${longestMs} ms`,
            )
    }
    if (!watch.isRunning) return stuck(watch.diedMs, BOOT_MS)
    switch (policy.phase) {
        case "booted":
        case "noLink":
            return stuck(policy.sinceMs, LINK_MS)
        case "lost":
        case "halted":
            return stuck(policy.sinceMs, 5000)
        case "held":
            // A line a minute, and an end: the policy's watch sees to it that it comes nearer.
            return stuck(policy.sinceMs, HELD_MS)
        case "connected":
            // Half-open is found out by whoever notices first, the broker at one and a half times.
            if (isBack(rig, actor, healedMs)) return
            return stuck(
                policy.sinceMs,
                2 * part.promises.keepAliveMs +
                    part.promises.pingMs +
                    2 * part.everyMs +
                    5000,
            )
    }
}

/** All is well: now it has to stay so, and everything has to work. */
async function settle(rig: Rig) {
    const { world, strict } = rig
    await world.run(QUEUE_MS)
    rig.forget()
    const losses = rig.actors.map(a => a.watch.losses)
    const checks: (() => void)[] = []
    for (const actor of rig.actors) {
        const { part, watch } = actor
        watch.telemetry = 0
        const { answers } = watch
        const numbers = part.topics
            .filter(topic => !topic.endsWith("/block"))
            .flatMap(topic =>
                ([0, 1] as const).map(qos => ({
                    topic,
                    number: rig.send(actor, topic, 100, qos),
                })),
            )
        checks.push(() => {
            const fail = (what: string) => rig.found(actor, "convergence", what)
            const session = strict.sessions.get(part.clientId)
            for (const filter of part.filters)
                if (!session?.subscriptions.has(filter))
                    fail(`${filter} is not subscribed`)
            if (watch.telemetry === 0) fail("no telemetry")
            if (!part.isApp && watch.answers === answers)
                fail("a ping has no answer")
            if (!part.isApp) return
            watch.outbound.settledAll()
            for (const { topic, number } of numbers)
                part.filters.forEach((filter, handler) => {
                    if (!filterMatches(filter, topic)) return
                    if (!watch.delivery.has(handler, number))
                        fail(`m${number} on ${topic} did not reach ${filter}`)
                })
        })
    }
    const longestMs = Math.max(...rig.actors.map(a => a.part.everyMs))
    await world.run(longestMs + 15_000)
    rig.look()
    rig.forget()
    for (const check of checks) check()
    rig.actors.forEach((a, i) => {
        if (a.watch.losses !== losses[i])
            rig.found(
                a,
                "convergence",
                "a session was lost, though all is well",
            )
    })
}
