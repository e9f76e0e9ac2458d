// The restart limit: may this start use the network? The runtime restarts a crashed program after 5 s, for ever; a
// fleet that does so is a herd. Pure: it is given the stored record and the facts of this start, and answers with what
// to do and the record to write.
//
// | this start                                | counts | how it is known                                          |
// |-------------------------------------------|--------|----------------------------------------------------------|
// | new build                                 | clears | the build's hash in the record is another, or none       |
// | crash                                     | yes    | the clock runs on, and no intent                         |
// | restart                                   | yes    | the clock runs on, and the intent was written            |
// | watchdog                                  | yes    | chip reset, and the intent was written                   |
// | command                                   | yes    | chip reset, and the intent was written: a broker can ask |
// |                                           |        | again and again                                          |
// | planned                                   | no     | chip reset, the intent was written, after an hour or more|
// | power-on                                  | row    | chip reset without intent: power cut, brownout, button   |
// |                                           |        | and a reset of the chip's own all look alike             |
// | unknown                                   | yes    | the record is unreadable; held if the clock runs on      |
//
// | state | a start that counts                             | otherwise                                        |
// |-------|-------------------------------------------------|--------------------------------------------------|
// | run   | held as the (burst + 1)-th in the window, or    | run; held for a minute once 20 power-ons in a    |
// |       | the 21st in an hour, or beyond the allowance    | row have each run for less than a minute         |
// | held  | held for the rest                               | held for the rest, then trial                    |
// | trial | held, twice as long, an hour at most            | trial                                            |
//
// The allowance is a token bucket, against loops that are too slow for the windows or whose runs are stable ones: 100
// starts in hand, each that counts takes one, 75 minutes bring one back; one that finds none is held until there is one,
// an hour at most. So in any span of T hours T + 101 such starts use the network at most, whatever comes in between.
// A start in a hold is free.
//
// A run of `stable` clears everything but the allowance; a person (clearHold) and a new build clear that, too.
//
// Writes. At most one for a start (a trial is a start), before it does anything else; none for one that is held
// as before, and none at the end of a hold that nothing is on trial after. And one to clear: settleMs says when and
// settled what. After a power-on the row has to be cleared at 60 s and, if there is a history, that at `stable`; one write
// does both at `stable` while the row is short, and at 60 s only the row once it is half of what trips. A hold found at a
// chip reset has nothing to clear, and saves its progress at 60 s instead, so that a device that never has an hour of
// power still gets to its trial. In the long run the allowance makes that 2.6 writes an hour, besides two for a power-on.
//
// What time it is. There is only the clock since the last chip reset. Between two records with no reset between them
// ages are exact, to less than a second (whole seconds: a start may count for that much more than the window,
// and a hold end that much early). Across a reset what passed between the last record and the reset, and while there was no power, is missing:
// ages and the elapsed part of a hold are then too small, never too large, which can only hold a device that
// would have run. A deliberate reboot writes the time first, so it loses next to nothing. A reset whose own start left
// no record looks like no reset at all; the sum is still too small. What can't be known: whether a start happened
// whose record was not written (power cut in between: one start miscounted at most), and why a chip was reset.

import { intSetting, type ConfigSource } from "./config"
import { div, MAX_INT, mulDiv } from "./int"
import {
    emptyRecord,
    hash31,
    MAX_AGE_S,
    MAX_DEBT_S,
    MAX_HOLD_S,
    MAX_STARTS,
    MAX_TRIPS,
    MAX_WATCHDOGS,
    type Intent,
    type RecordProblem,
    type RestartRecord,
    type RestartState,
} from "./record"

/** A program start at which the clock shows at least this came without a chip reset (measured: 1,167 at most with one). */
export const CHIP_RESET_MS = 2000

/** No run is this much shorter than the time from its record to the next start: 5.25 s (measured) in whole seconds. */
const RESTART_S = 7

/** A run of this long says that power and chip are fine. */
const SETTLED_MS = 60000
const SETTLED_S = 60

/** So many runs in a row, each shorter than that and ended by an unannounced chip reset, trip a short hold. */
const UNKNOWN_BURST = 20
const SHORT_HOLD_S = 60

/** Half of it: from here on the row is cleared as soon as it may be. */
const UNKNOWN_HALF = 10

/** The second window: so many in so long, for loops too slow for the first. */
const SLOW_BURST = MAX_STARTS
const SLOW_WINDOW_S = 3600

/** What a start that counts costs of the allowance, and how much that is: 100 starts. */
const COST_S = 4500
const ALLOWANCE_S = 450000

/** A planned reboot that comes sooner than this is a loop. */
const PLANNED_MIN_S = 3600

/** Watchdog reboots further apart than this are not a row. */
const WATCHDOG_ROW_S = 86400

/** The numbers of the restart limit. Milliseconds count as whole seconds; values out of range as the nearest in it. */
export interface RestartPolicy {
    /** Starts in the window that may run; 1..20. */
    burst: number
    /** 10,000..3,600,000. */
    windowMs: number
    /** The first hold; 10,000..3,600,000. */
    holdMs: number
    /** A run of this long clears everything; from the window to a day. */
    stableMs: number
}

/** The defaults: 5 in 120 s, 5 min, 10 min. A new object each time. */
export function defaultRestartPolicy(): RestartPolicy {
    return { burst: 5, windowMs: 120000, holdMs: 300000, stableMs: 600000 }
}

/** The policy in the settings RST_BURST, RST_WINDOW, RST_HOLD, RST_STABLE. */
export function readRestartPolicy(from: ConfigSource): RestartPolicy {
    const p = defaultRestartPolicy()
    p.burst = intSetting(from, "RST_BURST", 1, MAX_STARTS, p.burst)
    p.windowMs = intSetting(from, "RST_WINDOW", 10000, 3600000, p.windowMs)
    p.holdMs = intSetting(from, "RST_HOLD", 10000, 3600000, p.holdMs)
    if (p.stableMs < p.windowMs) p.stableMs = p.windowMs
    const lowMs = p.windowMs
    p.stableMs = intSetting(from, "RST_STABLE", lowMs, 86400000, p.stableMs)
    return p
}

/** What is known of a start, besides its record. */
export interface StartFacts {
    /** The clock at the program's first statement, before any wait. */
    upMs: number
    /** Text that differs between builds. */
    build: string
    /** As readRecord said. */
    problem?: RecordProblem
}

/** What led to a start, as far as the runtime lets one tell. */
export type Cause =
    | "power-on"
    | "crash"
    | "restart"
    | "watchdog"
    | "planned"
    | "command"
    | "new build"
    | "unknown"

/** The answer for one start. */
export interface Decision {
    /** `held`: no network for leftMs, then trialStarts. `run` and `trial`: go. */
    action: RestartState
    cause: Cause
    /** Why it is held, in words; "" when it isn't. */
    reason: string
    /** The record as it is now. */
    record: RestartRecord
    /** Whether it has to be written, before anything else. */
    write: boolean
    /** Starts in the window that count, this one included. */
    starts: number
    /** Holds since the last stable run. */
    trips: number
    /** What is left of the hold. */
    leftMs: number
}

/** Decides what a start may do. Total: it has an answer for any record, facts and policy, and never throws. */
export function decide(
    record: RestartRecord,
    facts: StartFacts,
    policy: RestartPolicy,
): Decision {
    const cause = causeOf(record, facts)
    const chipReset = isChipReset(facts.upMs)
    const r = atUptime(record, facts.upMs)
    r.buildHash = hash31(facts.build)
    r.intent = "none"
    r.watchdogs = cause === "watchdog" ? nextInRow(record) : 0
    let reason = ""
    if (cause === "new build") {
        clearAll(r)
        // Not even another build's record reads as nothing.
        if (facts.problem === "foreign version") r.trips = 1
        return decision(r, cause, reason, true, policy)
    }
    if (!chipReset) forgive(r, r.upS - record.upS - RESTART_S, policy)
    const wasHeld = r.state === "held"
    const counts = isSelfMade(cause, record, chipReset)
    if (counts) r.agesS.unshift(0)
    if (counts && !wasHeld) charge(r)
    if (cause === "power-on" && !wasHeld) r.unknownResets++
    if (wasHeld) {
        reason = "hold not over"
        if (r.leftS <= 0) startTrial(r)
    } else if (counts) {
        reason = tripReason(r, cause, policy)
        if (reason !== "") trip(r, cause, policy)
    } else if (r.unknownResets > UNKNOWN_BURST) {
        reason = "20 short runs after chip resets"
        r.unknownResets = UNKNOWN_BURST
        r.state = "held"
        r.leftS = SHORT_HOLD_S
    }
    const write = !wasHeld || r.state !== "held" || record.intent !== "none"
    return decision(r, cause, reason, write, policy)
}

/**
 * The record when a hold is over, before the network is used. To be written when it says `trial`; else the hold was for
 * short runs, and what is stored already stands for it: a device that browns out at each dial writes no more.
 */
export function trialStarts(
    record: RestartRecord,
    upMs: number,
): RestartRecord {
    const r = atUptime(record, upMs)
    startTrial(r)
    return r
}

/** The record to write when a person ends a hold: as if nothing had happened. */
export function clearHold(record: RestartRecord, upMs: number): RestartRecord {
    const r = atUptime(record, upMs)
    clearAll(r)
    return r
}

/**
 * The record to write, and to read back, before the device restarts or reboots on purpose. A write followed at once by
 * a reboot is lost, and then the start is a crash or a power-on.
 */
export function withIntent(
    record: RestartRecord,
    intent: Intent,
    upMs: number,
): RestartRecord {
    const r = atUptime(record, upMs)
    if (r.upS - record.upS >= SETTLED_S && r.state !== "held")
        r.unknownResets = 0
    r.intent = intent
    return r
}

/** How long from now a start has to last until `settled` is written, once; -1 for never. Ask after decide and trialStarts. */
export function settleMs(record: RestartRecord, policy: RestartPolicy): number {
    if (record.state === "held")
        // Found at a chip reset: only then does the record's time not run on by itself.
        return record.upS < 2 && record.leftS > SETTLED_S ? SETTLED_MS : -1
    const history = record.agesS.length > 0 || record.trips > 0
    if (history && record.unknownResets < UNKNOWN_HALF)
        return mulDiv(stableS(policy), 1000, 1)
    return record.unknownResets > 0 ? SETTLED_MS : -1
}

/** The record after so long a run, see settleMs. */
export function settled(
    record: RestartRecord,
    upMs: number,
    policy: RestartPolicy,
): RestartRecord {
    const r = atUptime(record, upMs)
    forgive(r, r.upS - record.upS, policy)
    return r
}

function causeOf(record: RestartRecord, facts: StartFacts): Cause {
    switch (facts.problem) {
        case "missing":
        case "foreign version": // this build would have written its own
            return "new build"
        case "unreadable":
            return "unknown"
    }
    if (record.buildHash !== hash31(facts.build)) return "new build"
    const intent = record.intent
    if (!isChipReset(facts.upMs))
        return intent === "restart" ? "restart" : "crash"
    // A restart that was only announced, and then the power went.
    if (intent === "none" || intent === "restart") return "power-on"
    return intent as Cause
}

function isChipReset(upMs: number): boolean {
    return !(upMs >= CHIP_RESET_MS)
}

function isSelfMade(
    cause: Cause,
    record: RestartRecord,
    chipReset: boolean,
): boolean {
    switch (cause) {
        case "crash":
        case "restart":
        case "watchdog":
        case "command":
            return true
        case "planned":
            return record.upS < PLANNED_MIN_S
        case "unknown":
            return !chipReset
        default:
            return false
    }
}

/** Why a start that counts is held, or "". */
function tripReason(
    r: RestartRecord,
    cause: Cause,
    policy: RestartPolicy,
): string {
    // In this power-on a program of ours had a turn at the record. What is left of it proves that
    // the device can't count: this may be the thousandth start.
    if (cause === "unknown") return "record unreadable"
    if (r.state === "trial") return "trial failed"
    if (startsWithin(r, windowS(policy)) > bounded(policy.burst, 1, MAX_STARTS))
        return "restart burst"
    if (startsWithin(r, SLOW_WINDOW_S) > SLOW_BURST) return "slow restart loop"
    if (r.debtS > ALLOWANCE_S) return "restart allowance spent"
    return ""
}

function trip(r: RestartRecord, cause: Cause, policy: RestartPolicy) {
    // An unreadable record reads as tripped once, and this is that once.
    if (cause !== "unknown" && r.trips < MAX_TRIPS) r.trips++
    let holdS = seconds(policy.holdMs, 10000, 3600000)
    for (let i = 1; i < r.trips && holdS < MAX_HOLD_S; ++i) holdS += holdS
    if (holdS < r.debtS - ALLOWANCE_S) holdS = r.debtS - ALLOWANCE_S
    r.state = "held"
    r.leftS = holdS < MAX_HOLD_S ? holdS : MAX_HOLD_S
}

/** Has a start pay for the network it is about to use, now or after a hold. */
function charge(r: RestartRecord) {
    const debtS = r.debtS + COST_S
    r.debtS = debtS < MAX_DEBT_S ? debtS : MAX_DEBT_S
}

function startTrial(r: RestartRecord) {
    // After a hold without a trip, for short runs, nothing is on trial.
    r.state = r.trips > 0 ? "trial" : "run"
    r.leftS = 0
}

/** Clears what a run of so long clears. What a hold is for is not cleared by the time it takes. */
function forgive(r: RestartRecord, ranS: number, policy: RestartPolicy) {
    if (r.state === "held") return
    if (ranS >= stableS(policy)) clear(r)
    else if (ranS >= SETTLED_S) r.unknownResets = 0
}

function clear(r: RestartRecord) {
    r.agesS = []
    r.trips = 0
    r.state = "run"
    r.leftS = 0
    r.intent = "none"
    r.unknownResets = 0
}

/** Clears what no run clears, too. */
function clearAll(r: RestartRecord) {
    clear(r)
    r.watchdogs = 0
    r.debtS = 0
}

function nextInRow(record: RestartRecord): number {
    if (record.upS >= WATCHDOG_ROW_S) return 1
    const next = record.watchdogs + 1
    return next < MAX_WATCHDOGS ? next : MAX_WATCHDOGS
}

/** A copy of the record, made at upMs: everything in it is older by what has certainly passed. */
function atUptime(record: RestartRecord, upMs: number): RestartRecord {
    // The clock ends at 2^32, which no int32 literal can say.
    let lastMs = MAX_INT
    lastMs += lastMs
    const upS = seconds(upMs, 0, lastMs)
    const reset = isChipReset(upMs) || upS < record.upS
    const passedS = reset ? upS : upS - record.upS
    const r = emptyRecord()
    r.buildHash = record.buildHash
    r.upS = upS
    r.trips = record.trips
    r.state = record.state
    r.leftS = record.leftS > passedS ? record.leftS - passedS : 0
    r.intent = record.intent
    for (const ageS of record.agesS)
        if (ageS + passedS <= MAX_AGE_S) r.agesS.push(ageS + passedS)
    r.unknownResets = record.unknownResets
    r.watchdogs = record.watchdogs
    r.debtS = record.debtS > passedS ? record.debtS - passedS : 0
    return r
}

function startsWithin(r: RestartRecord, limitS: number): number {
    let count = 0
    for (const ageS of r.agesS) if (ageS <= limitS) count++
    return count
}

function decision(
    r: RestartRecord,
    cause: Cause,
    reason: string,
    write: boolean,
    policy: RestartPolicy,
): Decision {
    const starts = startsWithin(r, windowS(policy))
    if (r.agesS.length > MAX_STARTS) r.agesS.pop()
    const held = r.state === "held"
    return {
        action: r.state,
        cause,
        reason: held ? reason : "",
        record: r,
        write,
        starts,
        trips: r.trips,
        leftMs: held ? mulDiv(r.leftS, 1000, 1) : 0,
    }
}

function windowS(policy: RestartPolicy): number {
    return seconds(policy.windowMs, 10000, 3600000)
}

function stableS(policy: RestartPolicy): number {
    const s = seconds(policy.stableMs, 0, 86400000)
    const lowS = windowS(policy)
    return s < lowS ? lowS : s
}

/** Milliseconds as whole seconds, kept within bounds; up to 2^32 - 1, by halves that are int32. */
function seconds(ms: number, lowMs: number, highMs: number): number {
    return div(bounded(ms, lowMs, highMs) >>> 1, 500)
}

/** The nearest number in low..high; low for NaN. */
function bounded(n: number, low: number, high: number): number {
    return n >= low ? (n <= high ? n : high) : low
}
