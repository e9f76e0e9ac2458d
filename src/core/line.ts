// The public log: one line for every decision, written on the device and parsed on the host by
// this one file. A line is strict JSON, ASCII, at most 144 bytes; the runtime puts the time before it:
// console.data(JSON...) prints `# 61234 {"ev":"retry","n":3,...}`, and an ESP32's console keeps 158 bytes
// of that (microsoft/jacdac-c, JD_DMESG_LINE_BUFFER). Pure.
//
// Text in a line may come from the network or from settings. It is cut to 40 bytes as written
// (a `"` or `\` takes two), the longest of a line further until the line fits, and what is not printable ASCII becomes `?`, so that
// nobody can break a line, forge one, or make it longer than the console keeps.

import type { Evidence, Lane } from "./verdict"

/** The most bytes of a formatted line, without the time before it. */
export const LINE_MAX_BYTES = 144

/** The most bytes of any text in a line, without its quotes. */
export const TEXT_MAX_BYTES = 40

/** A program start. */
export interface BootLine {
    ev: "boot"
    /** Device id, 16 hex digits. */
    id: string
    version: string
    /** What led to this start, in words; core/restart.ts has the list. */
    cause: string
    /** The clock at this start; below 2,000 after a chip reset. */
    upMs: number
    /** Starts that the device did to itself, in the restart limit's window. */
    starts?: number
    /** Holds since the last stable run. */
    trips?: number
    /** What the restart limit makes of it: run, held or trial. */
    verdict?: "run" | "held" | "trial"
}

/** Wi-Fi came or went. */
export interface LinkLine {
    ev: "link"
    up: boolean
    ip?: string
    why?: string
}

/** A dial begins. */
export interface AttemptLine {
    ev: "attempt"
    /** 1 for the first of an outage. */
    n: number
    host: string
    port: number
    /** mqtt, mqtts, and the like. */
    proto: string
}

/** CONNACK with code 0. */
export interface ConnectedLine {
    ev: "connected"
    n: number
    /** From the dial to CONNACK. */
    tookMs: number
    /** Session present. */
    session: boolean
    /** 5 when it speaks MQTT 5; left out with MQTT 3.1.1. */
    mqtt?: number
}

/** A session ended. */
export interface LostLine {
    ev: "lost"
    /** How long the session lasted. */
    upMs: number
    lane: Lane
    evidence: Evidence
    reason: string
    /** It was too short to count as stable. */
    flap: boolean
}

/** The next attempt is planned: when, and why then. */
export interface RetryLine {
    ev: "retry"
    /** Failures in a row so far. */
    n: number
    delayMs: number
    ceilingMs: number
    lane: Lane
    /** "none" for a first wait that no failure began. */
    evidence: Evidence | "none"
    reason: string
    /** Overload was proven in this outage. */
    proven: boolean
}

/** No more attempts until someone starts them. */
export interface HaltLine {
    ev: "halt"
    reason: string
}

/** The restart limit keeps this start off the network. */
export interface HeldLine {
    ev: "held"
    /** 0: the hold is over, and the reason says why. */
    leftMs: number
    reason: string
    trips: number
}

/** The device is about to reboot on purpose. */
export interface RebootLine {
    ev: "reboot"
    /** watchdog, planned or command. */
    cause: string
    reason: string
}

/** Something did not fit and was dropped. */
export interface DropLine {
    ev: "drop"
    /** What it was: message in, outbox entry. */
    what: string
    topic?: string
    bytes?: number
    reason: string
    /** How many of its kind so far. */
    dropped: number
}

/** A setting was not allowed, and what is used instead. */
export interface ConfigLine {
    ev: "config"
    key: string
    value: string
    /** Its range or choices, in words. */
    allowed: string
    used: string
}

/** Every line of the log; `ev` says which. */
export type Line =
    | BootLine
    | LinkLine
    | AttemptLine
    | ConnectedLine
    | LostLine
    | RetryLine
    | HaltLine
    | HeldLine
    | RebootLine
    | DropLine
    | ConfigLine

/** A line as it came over the wire, with the device's clock. */
export interface TimedLine {
    tMs: number
    line: Line
}

/**
 * The line as JSON. Text is cut and cleaned as said above; undefined fields are left out, and flags that
 * are false. Every number is below 2^32.
 */
export function formatLine(line: Line): string {
    const from: any = line
    const out: any = { ev: line.ev }
    for (const key of Object.keys(from)) {
        const value = from[key]
        if (value !== undefined && value !== false)
            out[key] =
                typeof value === "string" ? cleanField(key, value) : value
    }
    let text = JSON.stringify(out)
    while (text.length > LINE_MAX_BYTES) {
        shortenLongest(out, text.length - LINE_MAX_BYTES)
        text = JSON.stringify(out)
    }
    return text
}

/** The longest text of a line loses so many bytes, as far as it has them. Without any text every line fits. */
function shortenLongest(line: any, excessBytes: number) {
    let longest = ""
    let bytes = 0
    for (const key of Object.keys(line)) {
        if (typeof line[key] !== "string" || isWord(key)) continue
        const written = JSON.stringify(line[key]).length - 2
        if (written <= bytes) continue
        longest = key
        bytes = written
    }
    line[longest] = clean(line[longest], bytes - excessBytes)
}

/** Whether a field has one of a few words of our own, which are not cut. */
function isWord(key: string): boolean {
    switch (key) {
        case "ev":
        case "lane":
        case "evidence":
        case "verdict":
            return true
        default:
            return false
    }
}

/** `allowed` lists choices of our own and gets a little more room. */
const ALLOWED_MAX_BYTES = 48

function cleanField(key: string, text: string): string {
    return clean(text, key === "allowed" ? ALLOWED_MAX_BYTES : TEXT_MAX_BYTES)
}

/** Text as it may stand in a line: printable ASCII, at most 40 bytes with its escapes. */
export function cleanText(text: string): string {
    return clean(text, TEXT_MAX_BYTES)
}

function clean(text: string, maxBytes: number): string {
    let out = ""
    let room = maxBytes
    // text[start .. i - 1] is fine but not in out yet
    let start = 0
    let i = 0
    for (; i < text.length && room > 0; ++i) {
        const code = text.charCodeAt(i)
        if (code === 0x22 || code === 0x5c) {
            if (room < 2) break
            room--
        } else if (code < 0x20 || code > 0x7e) {
            // A character outside the BMP is two codes in Node and one on the device; both give one "?".
            out += text.slice(start, i)
            start = i + 1
            if (code >= 0xdc00 && code <= 0xdfff) continue
            out += "?"
        }
        room--
    }
    return start === 0 && i === text.length ? text : out + text.slice(start, i)
}

/**
 * The line in a whole console line `# <millis> {...}`, or undefined for anything else: other output, JSON
 * that is cut, an `ev` that isn't known, a field that is missing or of the wrong type. Never throws. Fields that
 * are not known are let through, so that an older host reads a newer device.
 */
export function parseLine(text: string): TimedLine | undefined {
    if (text.slice(0, 2) !== "# ") return undefined
    let tMs = 0
    let i = 2
    for (; i < text.length; ++i) {
        const digit = text.charCodeAt(i) - 48
        if (digit < 0 || digit > 9) break
        tMs = shift10(tMs) + digit
    }
    // 15 digits are exact in a double, and more than any clock here shows.
    if (i === 2 || i > 17 || text.slice(i, i + 2) !== " {") return undefined
    let parsed: unknown
    try {
        parsed = JSON.parse(text.slice(i + 1))
    } catch (e) {
        return undefined
    }
    return isLine(parsed) ? { tMs, line: parsed as Line } : undefined
}

/** Ten times n, in a file that may not multiply. */
function shift10(n: number): number {
    const twice = n + n
    const four = twice + twice
    return four + four + twice
}

function isLine(o: any): boolean {
    switch (o.ev) {
        case "boot":
            return (
                isText(o.id) &&
                isText(o.version) &&
                isText(o.cause) &&
                isCount(o.upMs) &&
                isCountOrNone(o.starts) &&
                isCountOrNone(o.trips) &&
                isVerdictOrNone(o.verdict)
            )
        case "link":
            return isFlag(o, "up") && isTextOrNone(o.ip) && isTextOrNone(o.why)
        case "attempt":
            return (
                isCount(o.n) &&
                isText(o.host) &&
                isCount(o.port) &&
                isText(o.proto)
            )
        case "connected":
            return (
                isCount(o.n) &&
                isCount(o.tookMs) &&
                isFlag(o, "session") &&
                (o.mqtt === undefined || isCount(o.mqtt))
            )
        case "lost":
            return isCount(o.upMs) && isVerdict(o) && isFlag(o, "flap")
        case "retry":
            return (
                isCount(o.n) &&
                isCount(o.delayMs) &&
                isCount(o.ceilingMs) &&
                (isVerdict(o) || isFirstWait(o)) &&
                isFlag(o, "proven")
            )
        case "halt":
            return isText(o.reason)
        case "held":
            return isCount(o.leftMs) && isText(o.reason) && isCount(o.trips)
        case "reboot":
            return isText(o.cause) && isText(o.reason)
        case "drop":
            return (
                isText(o.what) &&
                isTextOrNone(o.topic) &&
                isCountOrNone(o.bytes) &&
                isText(o.reason) &&
                isCount(o.dropped)
            )
        case "config":
            return (
                isText(o.key) &&
                isText(o.value) &&
                isText(o.allowed) &&
                isText(o.used)
            )
        default:
            return false
    }
}

function isText(v: unknown): boolean {
    return typeof v === "string"
}

function isTextOrNone(v: unknown): boolean {
    return v === undefined || isText(v)
}

/** A flag that is left out is false. */
function isFlag(o: any, key: string): boolean {
    if (o[key] === undefined) o[key] = false
    return o[key] === true || o[key] === false
}

/** A whole number from 0 up, and not Infinity. */
function isCount(v: any): boolean {
    return typeof v === "number" && v >= 0 && Math.floor(v) === v && v - v === 0
}

function isCountOrNone(v: unknown): boolean {
    return v === undefined || isCount(v)
}

function isVerdictOrNone(v: unknown): boolean {
    return v === undefined || v === "run" || v === "held" || v === "trial"
}

function isVerdict(o: any): boolean {
    return isLane(o.lane) && isEvidence(o.evidence) && isText(o.reason)
}

function isFirstWait(o: any): boolean {
    return isLane(o.lane) && o.evidence === "none" && isText(o.reason)
}

function isLane(v: unknown): boolean {
    switch (v) {
        case "retry":
        case "overload":
        case "slow":
        case "stop":
            return true
        default:
            return false
    }
}

function isEvidence(v: unknown): boolean {
    switch (v) {
        case "refused":
        case "silent":
        case "stalled":
        case "busy":
        case "reset":
            return true
        default:
            return false
    }
}
