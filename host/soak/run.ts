// One seed of a soak: the safety phase with its troubles and traffic, then the liveness phase.
import { LabRandom } from "../lab/random"
import { converge } from "./converge"
import type { Finding } from "./device-watch"
import { Rig, type Actor } from "./rig"
import { describeTrouble, drawSchedule, type Trouble } from "./schedule"
import { between } from "./troubles"

/** What one run is made from; the same job gives the same run, to the byte. */
export interface Job {
    seed: number
    hours: number
    devices: number
    /** Only these troubles of the plan, by id. */
    only?: number[]
    /** The firmware, instead of src/main.ts. */
    program?: string
}

/** What came of it. */
export interface Outcome {
    seed: number
    deviceSeconds: number
    /** Times each trouble took effect. */
    fired: Record<string, number>
    finding?: Finding
    /** The troubles that had begun when it failed, in words, and their ids. */
    troubles?: { id: number; text: string }[]
    /** How long the healed world took to converge. */
    convergedMs?: number
    /** SHA-256 over the world's log. */
    digest: string
    stats: Record<string, number>
}

const STEP_MS = 5000

/** The world's end of power-on: devices start within this. */
const START_MS = 5000

export async function runJob(
    job: Job,
    progress: (deviceSeconds: number) => void = () => {},
): Promise<Outcome> {
    const { seed, hours, devices } = job
    const rig = await Rig.make(seed, devices, job.program)
    const { world } = rig
    const plan = drawSchedule(
        seed,
        hours,
        rig.actors.map(({ part }) => ({
            name: part.name,
            wifi: !!part.spec.wifi,
        })),
    ).filter(t => !job.only || job.only.includes(t.id))
    const endMs = hours * 3_600_000
    const started = begin(rig, plan, endMs)
    const seconds = () => Math.round((world.nowMs * devices) / 1000)
    let reportedMs = 0
    while (world.nowMs < endMs && !rig.finding) {
        await world.run(Math.min(STEP_MS, endMs - world.nowMs))
        rig.look()
        if (world.nowMs - reportedMs < 600_000) continue
        reportedMs = world.nowMs
        progress(seconds())
    }
    const converged = rig.finding ? undefined : await converge(rig)
    progress(seconds())
    const outcome: Outcome = {
        seed,
        deviceSeconds: seconds(),
        fired: rig.fired,
        finding: rig.finding,
        troubles: rig.finding && started(),
        convergedMs: converged?.tookMs,
        digest: world.log.digest(),
        stats: rig.stats(),
    }
    await rig.close()
    return outcome
}

/** Sets everything going; returns what tells which troubles have begun. */
function begin(rig: Rig, plan: readonly Trouble[], endMs: number) {
    const { world } = rig
    const random = new LabRandom(rig.seed, "traffic")
    for (const actor of rig.actors) {
        const own = random.stream(actor.part.name)
        world.after(own.below(START_MS), () => {
            actor.device.powerOn()
            if (actor.part.spec.wifi) actor.device.joinWifi()
        })
        talk(rig, actor, own, endMs)
    }
    for (const trouble of plan)
        world.after(trouble.atMs, () => rig.begin(trouble))
    return () =>
        plan
            .filter(t => t.atMs <= world.nowMs)
            .map(t => ({ id: t.id, text: describeTrouble(t) }))
}

/** Messages to a device, now and then some. */
function talk(rig: Rig, actor: Actor, random: LabRandom, endMs: number) {
    const { world } = rig
    const delayMs = between(random, 500, 300_000)
    world.after(delayMs, () => {
        if (world.nowMs >= endMs) return
        for (let count = 1 + random.below(4); count > 0; --count)
            rig.send(
                actor,
                random.pick(actor.part.topics),
                between(random, 8, random.chance(10) ? 3000 : 300),
                random.below(2) as 0 | 1,
            )
        talk(rig, actor, random, endMs)
    })
}
