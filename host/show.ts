// A line of the public log as one readable line: plain words, units, nothing left to guess. Pure.
// What comes from a device can't drive the terminal: see `plain`.
import type { ConfigLine, Line, LostLine, RetryLine } from "../src/core/line"

/**
 * Text without anything a terminal would act on: control characters (ESC, newline, the C1
 * range) and the invisible ones that reorder or hide text are left out.
 */
export function plain(text: string): string {
    return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "")
}

/** Whether a console line is the runtime talking to itself: no output of the program, no error, no stack line. */
export function isChatter(text: string): boolean {
    if (!/^[>*!#?]| at |OOM|panic|Guru Med|abort\(|rst:0x/i.test(text))
        return true
    // The runtime says so itself at each start.
    return /^\* (DeviceScript|start:|stop )/.test(text)
}

/** A time span in words: `320 ms`, `3.2 s`, `2 min 5 s`, `3 h 4 min`, `2 d 7 h`. */
export function span(ms: number): string {
    if (ms < 1000) return `${Math.round(ms)} ms`
    const tenths = Math.round(ms / 100)
    if (tenths < 600) return `${tenths / 10} s`
    const s = Math.round(ms / 1000)
    if (s < 3600) return pair(Math.floor(s / 60), "min", s % 60, "s")
    const min = Math.round(s / 60)
    if (min < 1440) return pair(Math.floor(min / 60), "h", min % 60, "min")
    const h = Math.round(min / 60)
    return pair(Math.floor(h / 24), "d", h % 24, "h")
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string) {
    return small
        ? `${big} ${bigUnit} ${small} ${smallUnit}`
        : `${big} ${bigUnit}`
}

/** What happened, in words, without the time and the device. */
export function describe(line: Line): string {
    return plain(words(line))
}

function words(line: Line): string {
    switch (line.ev) {
        case "boot":
            return (
                `program ${line.version} started on ${line.id} after ${line.cause}, ` +
                `clock at ${span(line.upMs)}` +
                (line.starts
                    ? `, ${count(line.starts, "start")} of its own doing lately`
                    : "") +
                (line.verdict === "trial" ? ", on trial after a hold" : "")
            )
        case "link":
            return (
                (line.up ? "Wi-Fi up" : "Wi-Fi down") +
                (line.ip ? `, address ${line.ip}` : "") +
                (line.why ? `: ${line.why}` : "")
            )
        case "attempt":
            return `attempt ${line.n}: dialling ${line.proto}://${line.host}:${line.port}`
        case "connected":
            return (
                `connected in ${span(line.tookMs)} (attempt ${line.n}), ` +
                (line.session ? "session resumed" : "new session")
            )
        case "lost":
            return lost(line)
        case "retry":
            return retry(line)
        case "halt":
            return `stopped, no more attempts until told to start: ${line.reason}`
        case "held":
            if (line.leftMs === 0) return `the hold is over: ${line.reason}`
            return (
                `held off the network for ${span(line.leftMs)} more ` +
                `by the restart limit (trip ${line.trips}): ${line.reason}`
            )
        case "reboot":
            return `reboots on purpose (${line.cause}): ${line.reason}`
        case "drop":
            return (
                `dropped ${line.what}` +
                (line.topic === undefined ? "" : ` on ${line.topic}`) +
                (line.bytes === undefined
                    ? ""
                    : `, ${count(line.bytes, "byte")}`) +
                `: ${line.reason}; ${line.dropped} dropped so far`
            )
        case "config":
            if (line.key === "policy") return fleetPolicy(line)
            return (
                `setting ${line.key} is ${line.value}, allowed ${line.allowed}; ` +
                `using ${line.used}`
            )
    }
}

/** A fleet policy that came over MQTT, or out of flash. */
function fleetPolicy({ value, allowed, used }: ConfigLine): string {
    if (value === used) return `fleet policy ${value} in force`
    if (value === "reset") return `fleet policy reset; ${used} in force`
    return `fleet policy refused: ${value}, allowed ${allowed}; ${used} in force`
}

function lost(line: LostLine): string {
    return (
        `connection lost after ${span(line.upMs)}: ${line.reason}` +
        (line.flap
            ? "; too short to be stable, counts as a failed attempt"
            : "")
    )
}

function retry(line: RetryLine): string {
    const notes = [`ceiling ${span(line.ceilingMs)}`]
    if (line.lane === "slow")
        notes.push("slow lane: a person or time must cure it")
    if (line.proven) notes.push("overload proven")
    const wait = span(line.delayMs)
    const hint = line.n > 0 ? meaning(line) : ""
    return (
        (line.n > 0
            ? `retrying in ${wait} after ${count(line.n, "failure")}`
            : line.evidence === "none"
              ? `first attempt in ${wait}`
              : `reconnecting in ${wait}`) +
        `: ${line.reason}${hint ? ` (${hint})` : ""}, ${notes.join(", ")}`
    )
}

/** What the evidence tells about the broker, where the reason does not say it already. */
function meaning(line: RetryLine): string {
    switch (line.evidence) {
        case "silent":
            return "nobody answers"
        case "stalled":
            return "somebody is there but does not answer"
        case "busy":
            return "the broker has too much to do"
        case "reset":
            return "the broker closes connections"
        case "refused":
            return line.reason === "connection refused" ? "nobody listens" : ""
        case "none":
            return ""
    }
}

/** A number and what it counts. */
export function count(n: number, one: string, more = `${one}s`): string {
    return `${n} ${n === 1 ? one : more}`
}
