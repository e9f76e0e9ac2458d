// The plan of a soak: what happens to whom and when. Drawn from the seed alone, each trouble from a
// stream of its own, so that leaving some out changes nothing about the others.
import { LabRandom } from "../lab/random"
import { between, KINDS } from "./troubles"

/** One trouble of a plan. */
export interface Trouble {
    /** Its place in the whole plan, from 1; `--only` names troubles by it. */
    id: number
    /** A key of KINDS. */
    what: string
    atMs: number
    /** 0: over at once. */
    forMs: number
    /** A device's name; undefined: all of them. */
    device: string | undefined
    args: number[]
}

/** A device of the soak, as far as the plan must know it. */
export interface Target {
    name: string
    wifi: boolean
}

/** Pauses between the starts of two troubles. */
const PAUSE_MS = [500, 1_800_000] as const

/** How long a trouble lasts. */
export const LASTS_MS = [20, 1_800_000] as const

/**
 * @param hours length of the safety phase; short ones get shorter troubles
 * @returns the troubles in the order they start; none lasts beyond the end
 */
export function drawSchedule(
    seed: number,
    hours: number,
    targets: readonly Target[],
): Trouble[] {
    const endMs = hours * 3_600_000
    const root = new LabRandom(seed, "schedule")
    const kinds = Object.entries(KINDS)
        .filter(([, k]) => k.needs !== "wifi" || targets.some(t => t.wifi))
        .flatMap(([name, k]) => Array<string>(k.weight ?? 2).fill(name))
    const troubles: Trouble[] = []
    for (let id = 1, atMs = 0; ; ++id) {
        const random = root.stream(`${id}`)
        const longestPauseMs = Math.max(
            Math.min(PAUSE_MS[1], endMs / 20),
            2 * PAUSE_MS[0],
        )
        atMs += between(random, PAUSE_MS[0], longestPauseMs)
        const what = random.pick(kinds)
        const kind = KINDS[what]
        const longestMs = Math.min(kind.longestMs ?? LASTS_MS[1], endMs / 6)
        const forMs =
            longestMs < LASTS_MS[0]
                ? 0
                : between(random, LASTS_MS[0], longestMs)
        const able = targets.filter(t => kind.needs !== "wifi" || t.wifi)
        const one = random.pick(able).name
        const forAll = random.chance(60)
        const args = kind.draw?.(random) ?? []
        if (atMs + forMs > endMs) {
            if (atMs > endMs) return troubles
            continue
        }
        troubles.push({
            id,
            what,
            atMs,
            forMs,
            device: kind.needs || !forAll ? one : undefined,
            args,
        })
    }
}

/** A trouble in one line, for people. */
export function describeTrouble(t: Trouble): string {
    const args = t.args.length ? `(${t.args.join(", ")})` : ""
    const lasts = t.forMs ? ` for ${(t.forMs / 1000).toFixed(2)} s` : ""
    const at = (t.atMs / 1000).toFixed(2)
    return `${t.id}: at ${at} s ${t.what}${args} on ${t.device ?? "all"}${lasts}`
}
