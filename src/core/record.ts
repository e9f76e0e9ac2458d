// The restart limit's memory: one small record, and its text for one settings key. Pure.
//
// The text is a JSON list of whole numbers, at most 200 bytes (159 in fact): larger values abort the runtime.
//
//   [version, build, up, trips, state, left, intent, [ages], unknown, watchdogs, debt, checksum]
//
// The checksum is over the text before it, so a value that was cut, mixed with another or
// touched is never taken for a record; this holds for all versions, so that a version this build does not know
// can be told from garbage. New fields go before the checksum, and the version counts up. An older version has fewer
// and reads as if the missing ones were zero: 1, never released, had none of unknown, watchdogs and debt.
//
// Time here is an age in whole seconds, counted from when the record was made, not a date: nothing
// overflows, and time that nobody could see (a power cut) is simply missing.

import { MAX_INT } from "./int"

/** The settings key of the record. */
export const RECORD_KEY = "RST"

/** The most bytes of a record's text. */
export const RECORD_MAX_BYTES = 200

/** The version this build writes. */
export const RECORD_VERSION = 2

/** The most starts a record remembers; the slow window's burst is as large. */
export const MAX_STARTS = 20

/** The longest age that matters: the slow window, and the longest a RST_WINDOW can be. */
export const MAX_AGE_S = 3600

/** The longest hold. */
export const MAX_HOLD_S = 3600

/** Trips above this are not told apart; the hold has long been at its maximum. */
export const MAX_TRIPS = 99

/** The largest debt: 100 starts in hand are spent, and one more waits. */
export const MAX_DEBT_S = 454500

/** Watchdog reboots in a row above this are not told apart. */
export const MAX_WATCHDOGS = 9

/** The longest uptime the clock can show: 2^32 - 1 ms. */
const MAX_UP_S = 4294967

/** Where the limit stands: `run` as ever, `held` off the network, `trial` the one start after a hold. */
export type RestartState = "run" | "held" | "trial"

/** Why the device is about to end this run on purpose. `restart` keeps the clock, the others reset the chip. */
export type Intent = "none" | "restart" | "watchdog" | "planned" | "command"

/** What the restart limit remembers. All numbers are whole and from 0 up. */
export interface RestartRecord {
    /** hash31 of the build that wrote it; 0 for none. */
    buildHash: number
    /** The uptime at which it was made. */
    upS: number
    /** Holds so far, since the last stable run. */
    trips: number
    state: RestartState
    /** What is left of the hold. */
    leftS: number
    intent: Intent
    /** How long ago each start was that the device did to itself, newest first. */
    agesS: number[]
    /** Chip resets in a row that nobody announced, each run shorter than a minute. */
    unknownResets: number
    /** Watchdog reboots in a row, each within a day. */
    watchdogs: number
    /** What the device's starts of its own have cost so far: each adds 75 minutes, time takes it off again. */
    debtS: number
}

/** Why a record is not what was stored: nothing was; it makes no sense; another build's format. */
export type RecordProblem = "missing" | "unreadable" | "foreign version"

/** A record that remembers nothing. A new object each time. */
export function emptyRecord(): RestartRecord {
    return {
        buildHash: 0,
        upS: 0,
        trips: 0,
        state: "run",
        leftS: 0,
        intent: "none",
        agesS: [],
        unknownResets: 0,
        watchdogs: 0,
        debtS: 0,
    }
}

/**
 * The record in a text, for any text. No text at all is a device that has never run this program, or one whose store
 * the runtime has formatted: then every other key is missing too, while a key of its own tells a device whose
 * limit is only new. Anything that isn't exactly a record reads as tripped once, never as nothing.
 */
export function readRecord(text: string | undefined): {
    record: RestartRecord
    problem?: RecordProblem
} {
    if (text === undefined || text === null)
        return { record: emptyRecord(), problem: "missing" }
    const fields = text.length <= RECORD_MAX_BYTES ? parseList(text) : undefined
    if (!fields) return tripped("unreadable")
    const sum = fields[fields.length - 1]
    const body = text.slice(0, text.length - `${sum}]`.length)
    if (hash31(body) !== sum) return tripped("unreadable")
    const version = fields[0]
    if (!isWhole(version, MAX_INT)) return tripped("unreadable")
    if (version < 1 || version > RECORD_VERSION)
        return tripped("foreign version")
    const record = recordOf(fields, version)
    return record ? { record } : tripped("unreadable")
}

/** The text of a record: readRecord gives back the same. */
export function formatRecord(r: RestartRecord): string {
    const state = r.state === "trial" ? 2 : r.state === "held" ? 1 : 0
    const list = [
        RECORD_VERSION,
        r.buildHash,
        r.upS,
        r.trips,
        state,
        r.leftS,
        intentCode(r.intent),
    ]
    const body = `[${list.join(",")},[${r.agesS.join(",")}],${r.unknownResets},${r.watchdogs},${r.debtS},`
    return `${body}${hash31(body)}]`
}

/**
 * A hash from 0 to 2^31 - 1 of a text (Bob Jenkins's one-at-a-time): for checksums, build ids and
 * device ids. It finds accidents, not forgery.
 */
export function hash31(text: string): number {
    let h = 0
    for (let i = 0; i < text.length; ++i) {
        h = (h + text.charCodeAt(i)) | 0
        h = (h + (h << 10)) | 0
        h ^= h >>> 6
    }
    h = (h + (h << 3)) | 0
    h ^= h >>> 11
    h = (h + (h << 15)) | 0
    return h & MAX_INT
}

function tripped(problem: RecordProblem) {
    const record = emptyRecord()
    record.trips = 1
    return { record, problem }
}

/** The list in a text, or undefined. */
function parseList(text: string): any[] | undefined {
    // The list and its ages, no deeper: the native parser recurses without a limit.
    const inner = text.indexOf("[", 1)
    if (inner >= 0 && text.indexOf("[", inner + 1) >= 0) return undefined
    if (text.indexOf("{") >= 0) return undefined
    try {
        const parsed = JSON.parse(text)
        return Array.isArray(parsed) && parsed.length > 0 ? parsed : undefined
    } catch (e) {
        return undefined
    }
}

/** The record in the fields of a known version, or undefined when one is out of its range. */
function recordOf(f: any[], version: number): RestartRecord | undefined {
    const old = version === 1
    if (f.length !== (old ? 9 : 12)) return undefined
    const r = emptyRecord()
    r.buildHash = f[1]
    r.upS = f[2]
    r.trips = f[3]
    r.state = f[4] === 2 ? "trial" : f[4] === 1 ? "held" : "run"
    r.leftS = f[5]
    r.intent = intentOf(f[6])
    r.agesS = f[7]
    if (!old) {
        r.unknownResets = f[8]
        r.watchdogs = f[9]
        r.debtS = f[10]
    }
    const ok =
        isWhole(r.buildHash, MAX_INT) &&
        isWhole(r.upS, MAX_UP_S) &&
        isWhole(r.trips, MAX_TRIPS) &&
        isWhole(f[4], 2) &&
        isWhole(r.leftS, MAX_HOLD_S) &&
        isWhole(f[6], 4) &&
        areAges(r.agesS) &&
        isWhole(r.unknownResets, MAX_STARTS) &&
        isWhole(r.watchdogs, MAX_WATCHDOGS) &&
        isWhole(r.debtS, MAX_DEBT_S)
    return ok ? r : undefined
}

function intentCode(intent: Intent): number {
    switch (intent) {
        case "restart":
            return 1
        case "watchdog":
            return 2
        case "planned":
            return 3
        case "command":
            return 4
        default:
            return 0
    }
}

function intentOf(code: unknown): Intent {
    switch (code) {
        case 1:
            return "restart"
        case 2:
            return "watchdog"
        case 3:
            return "planned"
        case 4:
            return "command"
        default:
            return "none"
    }
}

/** At most MAX_STARTS ages, none younger than the one before it. */
function areAges(ages: any): boolean {
    if (!Array.isArray(ages) || ages.length > MAX_STARTS) return false
    let last = 0
    for (const age of ages) {
        if (!isWhole(age, MAX_AGE_S) || age < last) return false
        last = age
    }
    return true
}

function isWhole(v: any, high: number): boolean {
    return typeof v === "number" && v >= 0 && v <= high && Math.floor(v) === v
}
