// The fleet's policy: one retained message retunes every device. What a message means, what of it may be
// applied, and when it is written to flash. Pure.
//
//   <prefix>/policy   {"issue": 7, "minMs": 1000, "capMs": 60000, "spreadMs": 0, "overloadCapMs": 3600000, "jitter": "proportional"}
//
// | a message that                                   | does                                             |
// |--------------------------------------------------|--------------------------------------------------|
// | is a whole policy in bounds, of a newer issue    | is in force at once, and kept in flash           |
// | is the one in force, again (at each connection)  | nothing                                          |
// | is anything else                                 | nothing but a line that says what is wrong       |
//
// Newer means a higher issue number. The last number, 2^30, may be used again for another policy, so nobody can use the
// numbers up and so keep a bad policy from being corrected. reset() forgets policy and issue number; a retained message
// comes again at the next connection.
//
// Why no message can do harm for good: every bound is a constant here, the other numbers of the policy (CONNACK, dial, stable,
// slow lane) are the device's own, and nothing but a connection is needed to bring the next message. What could keep
// connections from succeeding is a fleet told to be impatient. So once overload has been proven and no session
// has been stable for `PATIENCE_MS`, `policy(true)` lets the waits climb to 6 h whatever the message said: then no fleet of
// up to 6 h of the broker's work keeps it down.
//
// Flash: only what differs from what is stored is written, and that at most once in an hour and once after a program start. What
// comes in between waits in RAM, the newest only. The stored text is a list of a checksum and the message, so
// that a torn one is never taken for a policy.

import type { Jitter, Policy } from "./policy"
import type { ConfigLine } from "./line"
import { hash31 } from "./record"

/** The settings key of the stored policy. */
export const FLEET_POLICY_KEY = "POLICY"

/** The most characters of a message: room for one spread over lines by hand. */
export const FLEET_POLICY_MAX_TEXT = 400

/** The most bytes of the stored text; larger settings abort the runtime. */
export const FLEET_POLICY_MAX_BYTES = 200

/** The last issue number, 2^30. */
export const MAX_ISSUE = 0x40000000

/** No policy waits longer: 6 h. */
export const MAX_WAIT_MS = 21600000

/** No policy waits less. */
export const MIN_WAIT_MS = 500

/** At most one flash write in this time, after the first. */
export const STORE_EVERY_MS = 3600000

/** Overload was proven, and so long no stable session: the waits may climb. */
export const PATIENCE_MS = 3600000

/** What a message sets. */
export interface FleetPolicy {
    /** 1..2^30; a higher one replaces a lower one. */
    issue: number
    /** 500..cap, ms. */
    minMs: number
    /** 500..overload cap, ms. */
    capMs: number
    /** 0..overload cap, ms; 0 with jitter `none`. */
    spreadMs: number
    /** 500..6 h, ms. */
    overloadCapMs: number
    jitter: Jitter
}

/** What is wrong with a text, and what would be allowed. */
export interface Refusal {
    value: string
    allowed: string
}

/** The policy in a text, or why there is none. Never throws, whatever the text; undefined stands for no text. */
export function parseFleetPolicy(
    text: string | undefined,
): FleetPolicy | Refusal {
    if (!text) return refusal(text === "" ? "empty" : "not text", "a policy")
    if (text.length > FLEET_POLICY_MAX_TEXT)
        return refusal(
            `${text.length} characters`,
            `at most ${FLEET_POLICY_MAX_TEXT}`,
        )
    // One object and nothing in it: the native parser recurses without a limit.
    const at = text.indexOf("{")
    if (at < 0 || text.indexOf("{", at + 1) >= 0 || text.indexOf("[") >= 0)
        return refusal(text, "one flat JSON object")
    let o: any
    try {
        o = JSON.parse(text)
    } catch (e) {}
    if (!o || typeof o !== "object") return refusal(text, "JSON")
    return checked(o)
}

/** Whether parseFleetPolicy refused. */
export function isRefusal(what: FleetPolicy | Refusal): what is Refusal {
    return (what as Refusal).allowed !== undefined
}

/** The message of a policy: parseFleetPolicy gives back the same. */
export function formatFleetPolicy(p: FleetPolicy): string {
    const numbers = `"minMs":${p.minMs},"capMs":${p.capMs},"spreadMs":${p.spreadMs},"overloadCapMs":${p.overloadCapMs}`
    return `{"issue":${p.issue},${numbers},"jitter":"${p.jitter}"}`
}

function checked(o: any): FleetPolicy | Refusal {
    for (const key of Object.keys(o))
        if (!isKey(key))
            return refusal(
                `key ${key}`,
                "issue minMs capMs spreadMs overloadCapMs jitter",
            )
    return (
        outside(o, "issue", 1, MAX_ISSUE) ||
        outside(o, "overloadCapMs", MIN_WAIT_MS, MAX_WAIT_MS) ||
        outside(o, "capMs", MIN_WAIT_MS, o.overloadCapMs) ||
        outside(o, "minMs", MIN_WAIT_MS, o.capMs) ||
        notJitter(o.jitter) ||
        // A spread is random, and none is not.
        outside(
            o,
            "spreadMs",
            0,
            o.jitter === "none" ? 0 : o.overloadCapMs,
        ) || {
            issue: o.issue,
            minMs: o.minMs,
            capMs: o.capMs,
            spreadMs: o.spreadMs | 0, // not -0
            overloadCapMs: o.overloadCapMs,
            jitter: o.jitter,
        }
    )
}

function isKey(key: string): boolean {
    switch (key) {
        case "issue":
        case "minMs":
        case "capMs":
        case "spreadMs":
        case "overloadCapMs":
        case "jitter":
            return true
        default:
            return false
    }
}

function outside(
    o: any,
    key: string,
    low: number,
    high: number,
): Refusal | undefined {
    const v = o[key]
    if (typeof v === "number" && (v | 0) === v && v >= low && v <= high)
        return undefined
    return refusal(`${key} ${said(v)}`, `${low}..${high}`)
}

function notJitter(jitter: unknown): Refusal | undefined {
    switch (jitter) {
        case "proportional":
        case "equal":
        case "full":
        case "decorrelated":
        case "none":
            return undefined
        default:
            return refusal(
                `jitter ${said(jitter)}`,
                "proportional|equal|full|decorrelated|none",
            )
    }
}

function said(value: unknown): string {
    return value === undefined ? "missing" : `${value}`
}

function refusal(value: string, allowed: string): Refusal {
    return { value, allowed }
}

/** One device's fleet policy: the one in force and the one in flash. */
export class FleetPolicyState {
    /** In force; undefined: the device's own policy is. */
    current: FleetPolicy | undefined
    /** What flash holds; "" for nothing, undefined when a write failed. */
    private stored: string | undefined
    /** Flash did not say at the start; it is left alone until a policy or a reset comes. */
    private unread: boolean
    /** When flash was last written to; -1 when it was not since the start. */
    private storedMs: number

    /** @param own what settings say; has passed checkPolicy */
    constructor(readonly own: Policy) {
        this.current = undefined
        this.stored = ""
        this.unread = false
        this.storedMs = -1
    }

    /** Takes up what was stored; undefined for nothing, "" for no answer. @returns a line when that makes no sense; then it is ignored */
    restore(text: string | undefined): ConfigLine | undefined {
        this.unread = text === ""
        if (!text) return undefined
        this.stored = text
        const body = text.slice(text.indexOf("{"), text.length - 1)
        const policy =
            withSum(body) === text ? parseFleetPolicy(body) : undefined
        if (policy === undefined || isRefusal(policy))
            return this.line("stored policy", "a whole one")
        this.current = policy
        return undefined
    }

    /** A message came. @returns a line that says what came of it, or undefined when it is the one in force */
    offer(text: string | undefined): ConfigLine | undefined {
        const policy = parseFleetPolicy(text)
        if (isRefusal(policy)) return this.line(policy.value, policy.allowed)
        const now = this.current
        const same =
            !!now && formatFleetPolicy(policy) === formatFleetPolicy(now)
        if (same) return undefined
        const isNewer =
            !now || policy.issue > now.issue || policy.issue === MAX_ISSUE
        const value = `issue ${policy.issue}`
        const allowed = now ? `above ${now.issue}` : `1..${MAX_ISSUE}`
        if (isNewer) this.current = policy
        return this.line(value, allowed)
    }

    /** Back to the device's own policy, and any issue number is new again. */
    reset(): ConfigLine {
        const value = "reset"
        this.current = undefined
        if (this.unread) this.stored = undefined
        return this.line(value, value)
    }

    /**
     * The policy to follow, a new object.
     * @param patient the fleet has been kept out by overload for PATIENCE_MS
     */
    policy(patient = false): Policy {
        const own = this.own
        const current = this.current
        const from = current ? current : own
        return {
            minMs: from.minMs,
            capMs: from.capMs,
            spreadMs: from.spreadMs,
            overloadCapMs:
                current && patient ? MAX_WAIT_MS : from.overloadCapMs,
            jitter: from.jitter,
            fastFirst: own.fastFirst,
            connackMs: own.connackMs,
            connackOverloadMs: own.connackOverloadMs,
            dialMs: own.dialMs,
            stableMs: own.stableMs,
            slowMinMs: own.slowMinMs,
            slowCapMs: own.slowCapMs,
            maxAttempts: own.maxAttempts,
        }
    }

    /** The text to write to flash now ("": remove it), or undefined when there is none or it is too early. */
    toStore(nowMs: number): string | undefined {
        const text = this.text()
        if (text === this.stored) return undefined
        const early =
            this.storedMs >= 0 && nowMs < this.storedMs + STORE_EVERY_MS
        return early ? undefined : text
    }

    /** A write of what toStore said has been tried; flash now holds `text`, or, undefined, nobody knows: tried again in an hour. */
    wasStored(text: string | undefined, nowMs: number) {
        this.stored = text
        this.unread = false
        this.storedMs = nowMs
    }

    private text(): string {
        return this.current ? withSum(formatFleetPolicy(this.current)) : ""
    }

    private line(value: string, allowed: string): ConfigLine {
        const now = this.current
        const used = now ? `issue ${now.issue}` : "settings"
        return { ev: "config", key: "policy", value, allowed, used }
    }
}

/** A message as it is stored. */
function withSum(body: string): string {
    return `[${hash31(body)},${body}]`
}
