// What a monitor hears, one event at a time, and the file form of it: one JSON object a line, as
// `npm start --json` prints them. What is recorded is what the picture is made of, so a replay shows the same. Pure.
import { parseLine, type Line } from "../../src/core/line"

/** What comes over a serial port besides lines of the log. */
export type PortLine =
    /** The port was opened, or is gone. */
    | { ev: "port"; open: boolean; reason: string }
    /** Any other console line; `at` is the source position of the stack frame in it, as `path:line:column`. */
    | { ev: "text"; text: string; at?: string }
    /** Bytes that are no text, since the last such event. */
    | { ev: "noise"; bytes: number }
    /** More came in a second than is shown: bytes in all, and lines left out. */
    | { ev: "flood"; bytes: number; dropped: number }

/** One thing heard. */
export interface MonitorEvent {
    /** When, in ms; only differences count. */
    tMs: number
    /** Where from: a port's path, a device's id. */
    dev: string
    /** The device's own clock, for a line of the log. */
    clockMs?: number
    line: Line | PortLine
}

/** The event as one line of JSON. Our own keys win over what a device put into its line. */
export function toJson({ tMs, dev, clockMs, line }: MonitorEvent): string {
    const own = { t: Math.round(tMs), dev, clock: clockMs }
    return JSON.stringify(Object.assign({ ...own }, line, own))
}

/** The event of a line of JSON, or undefined for anything else, broken or of another kind. Never throws. */
export function fromJson(text: string): MonitorEvent | undefined {
    if (!text.startsWith("{")) return undefined
    let all: Record<string, unknown>
    try {
        all = JSON.parse(text) as Record<string, unknown>
    } catch {
        return undefined
    }
    const { t, dev, clock, ...rest } = all
    if (!isCount(t) || typeof dev !== "string") return undefined
    const clockMs = isCount(clock) ? clock : undefined
    const line = portLine(rest) ?? logLine(rest, clockMs ?? 0)
    return (
        line && { tMs: t, dev, ...(clockMs !== undefined && { clockMs }), line }
    )
}

/** The very check that a line from a device has to pass. */
function logLine(rest: object, clockMs: number): Line | undefined {
    return parseLine(`# ${clockMs} ${JSON.stringify(rest)}`)?.line
}

function portLine(o: Record<string, unknown>): PortLine | undefined {
    const { ev, open, reason, text, at, bytes, dropped } = o
    if (ev === "port" && typeof open === "boolean" && isText(reason))
        return { ev, open, reason }
    if (ev === "text" && isText(text))
        return { ev, text, ...(isText(at) && { at }) }
    if (ev === "noise" && isCount(bytes)) return { ev, bytes }
    if (ev === "flood" && isCount(bytes) && isCount(dropped))
        return { ev, bytes, dropped }
    return undefined
}

function isText(v: unknown): v is string {
    return typeof v === "string"
}

/** A whole number from 0 up that a double holds exactly. */
function isCount(v: unknown): v is number {
    return Number.isSafeInteger(v) && (v as number) >= 0
}
