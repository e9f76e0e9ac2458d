// What `npm start` prints: one readable line for each event, or one line of JSON. With JSON,
// stdout carries nothing else; all other text goes to stderr.
import pc from "picocolors"
import { isChatter, plain } from "../show"
import { inWords, toJsonLine, type Happening } from "./event"

export interface ScreenOptions {
    json: boolean
    verbose: boolean
    colours: boolean
    out: (text: string) => void
    err: (text: string) => void
}

type Paint = (text: string) => string

export class Screen {
    private readonly colours: ReturnType<typeof pc.createColors>

    constructor(private readonly options: ScreenOptions) {
        this.colours = pc.createColors(options.colours)
    }

    /** An event. */
    show(happening: Happening) {
        const { out, json } = this.options
        if (json) return out(toJsonLine(happening) + "\n")
        const { tMs, dev, line } = happening
        const who =
            line.ev === "broker" ||
            line.ev === "client" ||
            line.ev === "publish"
                ? "broker"
                : dev === "host"
                  ? "host"
                  : "device"
        out(this.row(tMs, who, this.paint(happening)(inWords(line))))
    }

    /** A line of the device's console that is not one of the log. */
    console(tMs: number, text: string) {
        if (!this.options.verbose && isChatter(text)) return
        this.note(this.row(tMs, "device", this.colours.dim(plain(text)), ""))
    }

    /** Anything else, as a line of its own. */
    note(text: string) {
        const { json, out, err } = this.options
        if (json) err(text + "\n")
        else out(text + "\n")
    }

    /** The beginning of a line that a `note` will end. */
    begin(text: string) {
        const { json, out, err } = this.options
        if (json) err(text)
        else out(text)
    }

    private row(tMs: number, who: string, text: string, end = "\n") {
        const time = (tMs / 1000).toFixed(2).padStart(8)
        return `${this.colours.dim(`${time} s  ${who.padEnd(6)}`)}  ${text}${end}`
    }

    private paint({ line }: Happening): Paint {
        const { green, red, yellow, cyan, magenta, dim, bold } = this.colours
        switch (line.ev) {
            case "connected":
                return green
            case "lost":
            case "halt":
            case "held":
            case "reboot":
            case "panic":
                return red
            case "retry":
                return yellow
            case "drop":
            case "config":
                return magenta
            case "attempt":
            case "boot":
                return cyan
            case "broker":
                return line.up ? green : red
            case "link":
            case "wifi":
                return line.up ? green : red
            case "outage":
                return line.ok
                    ? text => bold(green(text))
                    : text => bold(red(text))
            case "publish":
            case "client":
                return dim
            case "power":
                return bold
        }
    }
}
