// Who takes part in a soak: the reference firmware, an application on the library, and the firmware
// with Wi-Fi, in turn; each seed begins with another. Settings are drawn from the seed, so that not only the defaults are soaked.
import { createHash } from "node:crypto"
import { defaultPolicy, type Jitter } from "../../src/core/policy"
import { LabRandom } from "../lab/random"
import type { DeviceSpec } from "../lab/world"
import type { Promises } from "./policy-watch"

/** What one device plays. */
export interface Part {
    name: string
    clientId: string
    spec: DeviceSpec
    promises: Promises
    /** What it subscribes to, all the time. */
    filters: string[]
    /** Its handlers print what they are given (test/bytecode/soak-app.ts). */
    isApp: boolean
    /** The first part of the topics it listens to. */
    inbox: string
    /** Topics for traffic to it, the first one harmless in any number. */
    topics: string[]
    /** A topic it listens to, for what is too large. */
    giant: string
    /** Where its telemetry goes, and how often, ms. */
    outbox: string
    everyMs: number
}

/** The settings of a part, as numbers where they are numbers. */
type Settings = Record<string, string | number>

const APP = "test/bytecode/soak-app.ts"

export function castOf(
    seed: number,
    devices: number,
    program = "src/main.ts",
): Part[] {
    return Array.from({ length: devices }, (_, i) => {
        const name = `d${i + 1}`
        const id = createHash("sha256").update(name).digest("hex").slice(0, 16)
        const random = new LabRandom(seed, `cast ${name}`)
        const turn = (i + seed) % 3
        return turn === 1
            ? application(name, id)
            : firmware(name, id, program, random, turn === 2)
    })
}

function firmware(
    name: string,
    id: string,
    program: string,
    random: LabRandom,
    wifi: boolean,
): Part {
    const settings: Settings = { MQTT_HOST: "broker", ...drawSettings(random) }
    const base = `herdless/${id}`
    return {
        name,
        clientId: `herdless-${id}`,
        spec: { name, id, program, settings, wifi },
        promises: promisesOf(settings),
        filters: [`${base}/cmd/+`],
        isApp: false,
        inbox: base,
        giant: `${base}/cmd/giant`,
        topics: [`${base}/cmd/ping`, `${base}/cmd/status`, `${base}/cmd/none`],
        outbox: `${base}/telemetry`,
        everyMs: 1000 * Number(settings.TELEMETRY),
    }
}

function application(name: string, id: string): Part {
    const base = `soak/${id}`
    return {
        name,
        clientId: `herdless-${id}`,
        spec: { name, id, program: APP },
        promises: {
            policy: defaultPolicy(),
            keepAliveMs: 30_000,
            pingMs: 10_000,
        },
        // The numbers that the program prints.
        filters: [
            `${base}/#`,
            `${base}/a/+`,
            `${base}/a/b`,
            `${base}/throw`,
            `${base}/block`,
            "other/+/x",
        ],
        isApp: true,
        inbox: base,
        giant: `${base}/giant`,
        topics: [
            `${base}/a/b`,
            base,
            `${base}/a/c`,
            `${base}/a/`,
            `${base}/deep/er/still`,
            `${base}/throw`,
            `${base}/block`,
            "other/one/x",
        ],
        outbox: `up/${id}`,
        everyMs: 10_000,
    }
}

/** Mostly the defaults; sometimes another strategy, a spread, or other bounds. */
function drawSettings(random: LabRandom): Settings {
    const s: Settings = { TELEMETRY: random.pick([1, 5, 20, 60]) }
    if (random.chance(50)) s.KEEP_ALIVE = random.pick([5, 20, 120, 600])
    if (random.chance(30)) s.PING_WAIT = random.pick([1000, 3000, 30_000])
    if (random.chance(30)) {
        s.RETRY_MIN = random.pick([1, 200, 5000])
        s.RETRY_CAP = random.pick([5000, 20_000, 300_000])
    }
    if (random.chance(50)) s.OVERLOAD_CAP = random.pick([300_000, 900_000])
    if (random.chance(30))
        s.JITTER = random.pick(["equal", "full", "decorrelated", "none"])
    else if (random.chance(25)) s.SPREAD = random.pick([2000, 30_000, 300_000])
    if (random.chance(20)) s.STABLE = random.pick([0, 1000, 60_000])
    if (random.chance(30)) s.MQTT_VERSION = 3
    return s
}

/** What the firmware promises with these settings; README's table. */
export function promisesOf(settings: Settings): Promises {
    const policy = defaultPolicy()
    const number = (key: string, otherwise: number) =>
        Number(settings[key] ?? otherwise)
    policy.minMs = number("RETRY_MIN", policy.minMs)
    policy.capMs = number("RETRY_CAP", policy.capMs)
    policy.overloadCapMs = number("OVERLOAD_CAP", policy.overloadCapMs)
    policy.spreadMs = number("SPREAD", policy.spreadMs)
    policy.stableMs = number("STABLE", policy.stableMs)
    policy.jitter = (settings.JITTER ?? policy.jitter) as Jitter
    return {
        policy,
        keepAliveMs: 1000 * number("KEEP_ALIVE", 60),
        pingMs: number("PING_WAIT", 10_000),
    }
}
