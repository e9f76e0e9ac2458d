// What is known of one device, made from what was heard of it: event in, view out, time a parameter. Pure.
// Terminal and web page show the same view. Its size is bounded whatever a device sends: every list and every text has a limit.
import type { Line, LostLine, RetryLine } from "../../src/core/line"
import { count, describe, isChatter, plain, span } from "../show"
import type { MonitorEvent, PortLine } from "./event"

export type State =
    /** Nothing heard that tells. */
    | "unknown"
    /** The port is gone: unplugged, or taken by another program. */
    | "away"
    | "starting"
    | "noLink"
    | "waiting"
    | "connecting"
    | "connected"
    | "held"
    | "halted"
    | "crashed"
    /** No power: only the simulator knows. */
    | "off"

/** Since when a device is in a state, for the history. */
export interface Mark {
    atMs: number
    state: State
}

/** A line of the tail: what came last, in words. */
export interface Heard {
    atMs: number
    text: string
    kind: Line["ev"] | PortLine["ev"]
}

/** Why a device waits, and for how long. */
export interface Wait {
    fromMs: number
    untilMs: number
    ceilingMs: number
    reason: string
    proven: boolean
    lane: RetryLine["lane"] | "held"
}

export interface Counters {
    attempts: number
    connects: number
    losses: number
    /** Sessions too short to be stable. */
    flaps: number
    /** What did not fit, since the program started. */
    drops: number
    crashes: number
    /** Program starts. */
    starts: number
}

export interface DeviceView {
    /** The port or the device the view was made for. */
    readonly dev: string
    readonly id?: string
    readonly version?: string
    /** After what the program started, in the device's own words. */
    readonly cause?: string
    readonly state: State
    readonly sinceMs: number
    readonly port?: { open: boolean; reason: string }
    readonly link?: { up: boolean; text: string }
    /** Where it dials: `tcp://host:1883`. */
    readonly broker?: string
    /** The attempt running, or the one that connected. */
    readonly attempt: number
    /** Failures in a row. */
    readonly failures: number
    readonly wait?: Wait
    readonly lastError?: { atMs: number; text: string }
    /** The exception printed last, and how the program got there. */
    readonly crash?: { atMs: number; reason: string; frames: string[] }
    /** What is wrong with the port's output, until a line of the log comes again. */
    readonly trouble?: {
        kind: "noise" | "flood"
        bytes: number
        times: number
        text: string
    }
    /** Settings that were not allowed, by key. */
    readonly complaints: readonly { key: string; text: string }[]
    readonly counters: Counters
    /** Dropped so far, by kind. */
    readonly drops: Readonly<Record<string, number>>
    readonly history: readonly Mark[]
    readonly tail: readonly Heard[]
    /** When anything was heard last. */
    readonly heardMs: number
}

export const MAX_HISTORY = 120
export const MAX_TAIL = 40
const MAX_FRAMES = 8
const MAX_COMPLAINTS = 8
const MAX_DROP_KINDS = 8
/** A device keeps its texts at 40 bytes; one that doesn't is cut here. */
const MAX_TEXT = 300
/** The runtime starts a crashed program again after this time. */
const RESTART_MS = 5000

/** A view before anything was heard. */
export function newView(dev: string): DeviceView {
    return {
        dev,
        state: "unknown",
        sinceMs: 0,
        attempt: 0,
        failures: 0,
        complaints: [],
        counters: {
            attempts: 0,
            connects: 0,
            losses: 0,
            flaps: 0,
            drops: 0,
            crashes: 0,
            starts: 0,
        },
        drops: {},
        history: [],
        tail: [],
        heardMs: 0,
    }
}

/** The view after one more event. The one given stays as it is. */
export function take(view: DeviceView, event: MonitorEvent): DeviceView {
    const { tMs, line } = event
    let next: DeviceView = { ...view, heardMs: tMs }
    if (isLogLine(line))
        next = afterLog({ ...next, trouble: undefined }, line, tMs)
    else next = afterPort(next, line, tMs)
    const text = clip(wordsOf(line))
    if (!text || (line.ev === "text" && isChatter(line.text))) return next
    const heard = { atMs: tMs, text, kind: line.ev }
    return { ...next, tail: pushed(view.tail, heard, MAX_TAIL) }
}

function isLogLine(line: Line | PortLine): line is Line {
    switch (line.ev) {
        case "port":
        case "text":
        case "noise":
        case "flood":
            return false
        default:
            return true
    }
}

/** An event in words. */
export function wordsOf(line: Line | PortLine): string {
    switch (line.ev) {
        case "port":
            return plain(`port ${line.open ? "open" : "gone"}: ${line.reason}`)
        case "text":
            return plain(line.text) + (line.at ? `  ${plain(line.at)}` : "")
        case "noise":
            return `${line.bytes} bytes that are no text`
        case "flood":
            return `${line.bytes} bytes in a second: ${line.dropped} lines left out`
        default:
            return describe(line)
    }
}

function afterLog(view: DeviceView, line: Line, tMs: number): DeviceView {
    switch (line.ev) {
        case "boot":
            return booted(view, line.id, tMs, {
                version: clip(line.version),
                cause: clip(line.cause),
            })
        case "link": {
            const text = clip(describe(line))
            const link = { up: line.up, text: text.replace(/^Wi-Fi /, "") }
            const next = { ...view, link }
            if (line.up) return next
            return enter(
                { ...failed(next, text, tMs), wait: undefined },
                "noLink",
                tMs,
            )
        }
        case "attempt":
            return enter(
                {
                    ...counted(view, "attempts"),
                    attempt: line.n,
                    wait: undefined,
                    broker: clip(`${line.proto}://${line.host}:${line.port}`),
                },
                "connecting",
                tMs,
            )
        case "connected":
            return enter(
                { ...counted(view, "connects"), attempt: line.n, failures: 0 },
                "connected",
                tMs,
            )
        case "lost":
            return lost(view, line, tMs)
        case "retry":
            return waiting(view, line, tMs)
        case "halt":
            return enter(failed(view, describe(line), tMs), "halted", tMs)
        case "held": {
            const reason = clip(line.reason)
            const wait: Wait = {
                fromMs: tMs,
                untilMs: tMs + line.leftMs,
                ceilingMs: line.leftMs,
                reason,
                proven: false,
                lane: "held",
            }
            return enter({ ...failed(view, reason, tMs), wait }, "held", tMs)
        }
        case "reboot":
            return failed(view, describe(line), tMs)
        case "drop":
            return dropped(view, line.what, line.dropped)
        case "config": {
            const key = clip(line.key)
            const rest = view.complaints.filter(c => c.key !== key)
            const complaint = { key, text: clip(describe(line)) }
            return {
                ...view,
                complaints: pushed(rest, complaint, MAX_COMPLAINTS),
            }
        }
    }
}

/** Another program start: what belonged to the run before is gone. Another device: everything is. */
function booted(
    view: DeviceView,
    id: string,
    tMs: number,
    program: { version: string; cause: string },
): DeviceView {
    const clean = clip(id)
    const same = view.id === undefined || view.id === clean
    const { port, history, heardMs, dev, tail } = view
    const old = same ? view : { ...newView(dev), port, history, tail, heardMs }
    return enter(
        {
            ...old,
            ...program,
            id: clean,
            attempt: 0,
            failures: 0,
            wait: undefined,
            link: undefined,
            complaints: [],
            drops: {},
            counters: {
                ...old.counters,
                starts: old.counters.starts + 1,
                drops: 0,
            },
        },
        "starting",
        tMs,
    )
}

function lost(view: DeviceView, line: LostLine, tMs: number): DeviceView {
    const next = counted(failed(view, describe(line), tMs), "losses")
    return enter(line.flap ? counted(next, "flaps") : next, "waiting", tMs)
}

function waiting(view: DeviceView, line: RetryLine, tMs: number): DeviceView {
    const wait: Wait = {
        fromMs: tMs,
        untilMs: tMs + line.delayMs,
        ceilingMs: line.ceilingMs,
        reason: clip(line.reason),
        proven: line.proven,
        lane: line.lane,
    }
    const next = { ...view, wait, failures: line.n }
    const text = `attempt ${view.attempt} failed: ${line.reason}`
    return enter(line.n > 0 ? failed(next, text, tMs) : next, "waiting", tMs)
}

function dropped(view: DeviceView, what: string, sum: number): DeviceView {
    const isNew = !Object.hasOwn(view.drops, clip(what))
    const isFull = Object.keys(view.drops).length >= MAX_DROP_KINDS
    const kind = isNew && isFull ? "other" : clip(what)
    const drops = { ...view.drops, [kind]: sum }
    const all = Object.values(drops).reduce((a, b) => a + b, 0)
    return { ...view, drops, counters: { ...view.counters, drops: all } }
}

function afterPort(view: DeviceView, line: PortLine, tMs: number): DeviceView {
    switch (line.ev) {
        case "port": {
            const port = { open: line.open, reason: clip(line.reason) }
            const next = { ...view, port }
            if (line.open)
                return view.state === "away"
                    ? enter(next, "unknown", tMs)
                    : next
            return enter({ ...next, wait: undefined }, "away", tMs)
        }
        case "noise":
        case "flood": {
            const { trouble } = view
            const same = trouble?.kind === line.ev ? trouble : undefined
            return {
                ...view,
                trouble: {
                    kind: line.ev,
                    bytes: (same?.bytes ?? 0) + line.bytes,
                    times: (same?.times ?? 0) + 1,
                    text: wordsOf(line),
                },
            }
        }
        case "text":
            return afterText(view, line.text, line.at, tMs)
    }
}

/** `* Exception: Error`, then its message and frames, then `! Unhandled exception` and `* stop program`. */
function afterText(
    view: DeviceView,
    text: string,
    at: string | undefined,
    tMs: number,
): DeviceView {
    const exception = /^[*!] Exception: (.*)/.exec(text)
    if (exception) {
        const crash = { atMs: tMs, reason: clip(exception[1]), frames: [] }
        const next = { ...view, crash }
        return text.startsWith("!") ? crashed(next, tMs) : next
    }
    if (text.startsWith("! Unhandled exception")) return crashed(view, tMs)
    const { crash } = view
    if (!crash || !/^[*!] {2}/.test(text)) return view
    const message = /^. {2}message: (.*)/.exec(text)
    if (message)
        return {
            ...view,
            crash: { ...crash, reason: clip(`${crash.reason}: ${message[1]}`) },
        }
    const frame = /^. {2}at (\w*?)(?:_F\d+)? \(pc:\d+\)/.exec(text)
    if (!frame || crash.frames.length >= MAX_FRAMES) return view
    const shown = clip(at ? `${frame[1]}  ${at}` : text.slice(6))
    return { ...view, crash: { ...crash, frames: [...crash.frames, shown] } }
}

/** The runtime says it twice. */
function crashed(view: DeviceView, tMs: number): DeviceView {
    if (view.state === "crashed") return view
    const reason = view.crash?.reason ?? "unhandled exception"
    return enter(
        {
            ...counted(failed(view, `crashed: ${reason}`, tMs), "crashes"),
            wait: {
                fromMs: tMs,
                untilMs: tMs + RESTART_MS,
                ceilingMs: RESTART_MS,
                reason: "the runtime starts a crashed program again",
                proven: false,
                lane: "held",
            },
        },
        "crashed",
        tMs,
    )
}

/** The device has lost its power, or got it: what only a simulator can tell. */
export function powered(view: DeviceView, on: boolean, tMs: number) {
    return enter({ ...view, wait: undefined }, on ? "starting" : "off", tMs)
}

function failed(view: DeviceView, text: string, tMs: number): DeviceView {
    return { ...view, lastError: { atMs: tMs, text: clip(plain(text)) } }
}

function counted(view: DeviceView, what: keyof Counters): DeviceView {
    const { counters } = view
    return { ...view, counters: { ...counters, [what]: counters[what] + 1 } }
}

/** Every attempt gets a mark of its own, so that the history shows how many there were. */
function enter(view: DeviceView, state: State, atMs: number): DeviceView {
    if (view.state === state && state !== "connecting") return view
    const history = pushed(view.history, { atMs, state }, MAX_HISTORY)
    return { ...view, state, sinceMs: atMs, history }
}

/** The list with one more entry, the oldest ones gone. */
function pushed<T>(list: readonly T[], entry: T, max: number): T[] {
    const kept = list.length >= max ? list.slice(list.length - max + 1) : list
    return [...kept, entry]
}

function clip(text: string): string {
    const clean = plain(text)
    return clean.length > MAX_TEXT ? clean.slice(0, MAX_TEXT) + "…" : clean
}

/** The states as a person reads them. */
export const STATE_NAMES: Record<State, string> = {
    unknown: "unknown",
    away: "unplugged",
    off: "off",
    starting: "starting",
    noLink: "no Wi-Fi",
    waiting: "waiting",
    connecting: "connecting",
    connected: "connected",
    held: "held",
    halted: "stopped",
    crashed: "crashed",
}

/** What stands beside the state's name: since when, or how long until what. */
export function statusOf(view: DeviceView, nowMs: number): string {
    const { state, wait, attempt, sinceMs } = view
    const inState = `for ${span(Math.max(nowMs - sinceMs, 0))}`
    const left = wait ? leftOf(wait.untilMs - nowMs) : ""
    switch (state) {
        case "unknown":
            return "nothing heard of its state yet"
        case "away":
            return `${inState}: ${view.port?.reason ?? ""}`
        case "off":
        case "starting":
        case "noLink":
        case "connected":
            return inState
        case "waiting":
            return wait
                ? `attempt ${view.failures + 1} ${left}`
                : "choosing a delay"
        case "connecting":
            return `attempt ${attempt}, ${inState}`
        case "held":
            return `trial start ${left}`
        case "halted":
            return "no more attempts until told to start"
        case "crashed":
            return `starts again ${left}`
    }
}

/** The counters in words; what is rare only when it happened. */
export function countersOf({ counters }: DeviceView): string {
    const { attempts, connects, losses, flaps, drops, crashes, starts } =
        counters
    return [
        count(attempts, "attempt"),
        count(connects, "connect"),
        count(losses, "loss", "losses"),
        flaps && count(flaps, "flap"),
        drops && count(drops, "drop"),
        crashes && count(crashes, "crash", "crashes"),
        starts && count(starts, "start"),
    ]
        .filter(Boolean)
        .join(", ")
}

function leftOf(leftMs: number): string {
    // The next line needs a moment; more than that is worth a word.
    if (leftMs > -2000) return `in ${span(Math.max(leftMs, 0))}`
    return `is overdue by ${span(-leftMs)}`
}
