// A device's view as rows of a terminal: no row is wider than the terminal, whatever a device sends. Pure.
import type { createColors } from "picocolors"
import { plain, span } from "../show"
import type { MonitorEvent } from "./event"
import { cellOf, legendOf, strip, STRIP_MS } from "./strip"
import {
    countersOf,
    STATE_NAMES,
    statusOf,
    wordsOf,
    type DeviceView,
    type Heard,
    type State,
} from "./view"

export interface PictureOptions {
    nowMs: number
    /** Columns and rows to fill at most. */
    width: number
    height: number
    colours: ReturnType<typeof createColors>
    /** The rate the port is read at, for what noise may mean. */
    baud?: number
}

type Paint = (text: string) => string

const LABEL = 12
const BAR = 30

export function picture(view: DeviceView, options: PictureOptions): string[] {
    const { width, height, colours, nowMs } = options
    const { bold, dim } = colours
    const paint = painted(view.state, colours)
    const row = (label: string, text: string, how: Paint = plainly) =>
        dim(fit(` ${label.padEnd(LABEL)}`, width)) +
        how(fit(text, width - LABEL - 1))
    const rows = [
        bold(fit(` ${titleOf(view)}`, width)),
        row(STATE_NAMES[view.state], statusOf(view, nowMs), text =>
            bold(paint(text)),
        ),
        ...waitRows(view, nowMs).map(text => row("", text, paint)),
        row("Wi-Fi", view.link?.text ?? "not heard of yet"),
        row("broker", view.broker ?? "not dialled yet"),
        row("last error", lastErrorOf(view, nowMs)),
        row("counted", countersOf(view)),
        ...stripRows(view, options, row),
        ...troubleRows(view, options).map(text =>
            row("trouble", text, colours.magenta),
        ),
        ...view.complaints.map(({ text }) =>
            row("setting", text, colours.magenta),
        ),
        ...crashRows(view, nowMs).map((text, i) =>
            row(i ? "" : "exception", text, colours.red),
        ),
    ]
    const tail = tailRows(view, options, height - rows.length - 1)
    return [...rows, ...tail].slice(0, Math.max(height, 1))
}

function plainly(text: string) {
    return text
}

function titleOf({ dev, id, version, cause }: DeviceView): string {
    if (id === undefined) return dev
    const where = dev === id ? "" : `  on ${dev}`
    return `${id}${where}, program ${version}, started after ${cause}`
}

/** The countdown as a bar, what it is for, and what bounds it. */
function waitRows({ wait, failures }: DeviceView, nowMs: number): string[] {
    if (!wait) return []
    const wholeMs = wait.untilMs - wait.fromMs
    const share = Math.min(
        Math.max((nowMs - wait.fromMs) / (wholeMs || 1), 0),
        1,
    )
    const full = Math.round(share * BAR)
    const bar = "█".repeat(full) + "░".repeat(BAR - full)
    const rows = [`${bar} of ${span(wholeMs)}`]
    const after =
        failures > 0
            ? ` (${failures} failure${failures === 1 ? "" : "s"} in a row)`
            : ""
    rows.push(`because: ${wait.reason}${after}`)
    if (wait.lane === "held") return rows
    const notes = [`ceiling ${span(wait.ceilingMs)}`]
    if (wait.proven) notes.push("overload proven: may climb past the cap")
    if (wait.lane === "slow")
        notes.push("slow lane: a person or time must cure it")
    return [...rows, notes.join(", ")]
}

function lastErrorOf({ lastError }: DeviceView, nowMs: number): string {
    if (!lastError) return "none"
    const agoMs = Math.max(nowMs - lastError.atMs, 0)
    return `${span(agoMs)} ago: ${lastError.text}`
}

function stripRows(
    view: DeviceView,
    { nowMs, width, colours }: PictureOptions,
    row: (label: string, text: string, how?: Paint) => string,
): string[] {
    const cells = Math.max(Math.min(width - LABEL - 2, 120), 1)
    const states = strip(view, nowMs, cells)
    const cellsShown = states
        .map(state => painted(state, colours)(cellOf(state)))
        .join("")
    return [
        row(`last ${span(STRIP_MS)}`, "") + cellsShown,
        row("", legendOf(states), colours.dim),
    ]
}

/** What is wrong with the port, in words that say what to do. */
function troubleRows(
    { trouble }: DeviceView,
    options: PictureOptions,
): string[] {
    if (!trouble) return []
    if (trouble.kind === "flood") return [trouble.text]
    const read = options.baud ? `, read at ${options.baud} baud` : ""
    const noise = trouble.text + read
    // A chip that resets talks at another rate for a moment: once is no sign.
    return trouble.times < 3
        ? [noise]
        : [`wrong baud rate? ${noise}`, "try --baud 115200, 1500000 or 74880"]
}

function crashRows({ crash }: DeviceView, nowMs: number): string[] {
    if (!crash) return []
    const agoMs = Math.max(nowMs - crash.atMs, 0)
    const rows = [
        `${crash.reason}, ${span(agoMs)} ago`,
        ...crash.frames.map(frame => `at ${frame}`),
    ]
    const isBare = crash.frames.some(frame => /\(pc:\d+\)$/.test(frame))
    if (isBare)
        rows.push(
            "(no build here fits, or the program's SHA-256 was not heard)",
        )
    return rows
}

function tailRows(
    { tail }: DeviceView,
    { width, colours, nowMs }: PictureOptions,
    room: number,
): string[] {
    if (room < 1) return []
    const shown = tail.slice(-room)
    return [
        colours.dim("─".repeat(width)),
        ...shown.map(heard => {
            const ago = `-${span(Math.max(nowMs - heard.atMs, 0))}`
            return (
                colours.dim(fit(` ${ago.padStart(LABEL - 1)} `, width)) +
                tone(heard.kind, colours)(fit(heard.text, width - LABEL - 1))
            )
        }),
    ]
}

/** The colour of a state. */
function painted(state: State, colours: PictureOptions["colours"]): Paint {
    switch (state) {
        case "connected":
            return colours.green
        case "waiting":
            return colours.yellow
        case "connecting":
        case "starting":
            return colours.cyan
        case "crashed":
        case "halted":
        case "held":
        case "noLink":
            return colours.red
        case "unknown":
        case "away":
        case "off":
            return colours.dim
    }
}

/** The colour of something heard. */
export function tone(
    kind: Heard["kind"],
    colours: PictureOptions["colours"],
): Paint {
    switch (kind) {
        case "connected":
            return colours.green
        case "lost":
        case "halt":
        case "held":
        case "reboot":
            return colours.red
        case "retry":
            return colours.yellow
        case "attempt":
        case "boot":
            return colours.cyan
        case "drop":
        case "config":
        case "noise":
        case "flood":
            return colours.magenta
        case "text":
            return colours.dim
        case "link":
        case "port":
            return plainly
    }
}

/** An event as a row of a log that scrolls. */
export function plainRow(
    { tMs, dev, line }: MonitorEvent,
    colours: PictureOptions["colours"],
): string {
    const time = (tMs / 1000).toFixed(2).padStart(8)
    return `${colours.dim(`${time} s  ${plain(dev)}`)}  ${tone(line.ev, colours)(wordsOf(line))}`
}

/** Characters that take two columns: East Asian wide ones and emoji. */
const WIDE =
    /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

/** The text in at most `columns` columns; marks that combine are left out, for they may pile up. */
export function fit(text: string, columns: number): string {
    const room = Math.max(columns, 0)
    if (/^[\x20-\x7e]*$/.test(text)) return cut(text, room)
    let out = ""
    let used = 0
    for (const c of text.normalize("NFC").replace(/\p{M}/gu, "")) {
        const wide = WIDE.test(c) ? 2 : 1
        if (used + wide > room) return out
        out += c
        used += wide
    }
    return out
}

function cut(text: string, room: number): string {
    if (text.length <= room) return text
    return room < 1 ? "" : text.slice(0, room - 1) + "…"
}
