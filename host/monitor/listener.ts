// One device's way from bytes to events: splits lines, counts, and looks up crash frames. What it
// hears it tells at once; time is a parameter.
import { parseLine } from "../../src/core/line"
import type { Builds, Build } from "./builds"
import type { MonitorEvent } from "./event"
import { Meter } from "./meter"
import { LineSplitter } from "./splitter"

export interface ListenerOptions {
    /** A port's path or a device's id. */
    dev: string
    /** Where crash frames are looked up; undefined: they are left as they are. */
    builds?: Builds
    tell: (event: MonitorEvent) => void
    /** False: what comes is read from a file, as fast as it can be, and nothing is a flood. */
    isLive?: boolean
}

export class Listener {
    private nowMs = 0
    private build: Build | undefined
    private readonly meter: Meter
    private readonly splitter: LineSplitter

    constructor(private readonly options: ListenerOptions) {
        this.meter = new Meter({
            noise: bytes => this.say({ ev: "noise", bytes }),
            flood: (bytes, dropped) =>
                this.say({ ev: "flood", bytes, dropped }),
        })
        this.splitter = new LineSplitter({
            line: text => {
                if (options.isLive === false || this.meter.passes(this.nowMs))
                    this.take(text)
            },
            noise: bytes => this.meter.gotNoise(bytes, this.nowMs),
        })
    }

    /** Bytes from the port. */
    bytes(bytes: Uint8Array, nowMs: number) {
        this.nowMs = nowMs
        this.meter.took(bytes.length, nowMs)
        this.splitter.push(bytes)
    }

    /** Time passes: noise and floods are told. */
    tick(nowMs: number) {
        this.nowMs = nowMs
        this.meter.tick(nowMs)
    }

    opened(reason: string, nowMs: number) {
        this.nowMs = nowMs
        this.say({ ev: "port", open: true, reason })
    }

    /** Nothing more comes: what is left is the last line of a file, or half a line (`mark` says so). */
    ended(mark = "") {
        this.splitter.end(mark)
        this.meter.end()
    }

    /** The port is gone. */
    closed(reason: string, nowMs: number) {
        this.tick(nowMs)
        this.ended("…")
        this.say({ ev: "port", open: false, reason })
    }

    /** A whole console line, as the simulator hands it over. */
    line(text: string, nowMs: number) {
        this.bytes(Buffer.from(text + "\n"), nowMs)
    }

    private take(text: string) {
        const { dev, tell } = this.options
        const timed = parseLine(text)
        if (!timed) return this.text(text)
        tell({ tMs: this.nowMs, dev, clockMs: timed.tMs, line: timed.line })
    }

    private text(text: string) {
        const sha = /^DevS-SHA256: ([0-9a-f]{64})/.exec(text)
        if (sha) this.build = this.options.builds?.bySha(sha[1], this.nowMs)
        const at = this.build?.locate(text)
        this.say({ ev: "text", text, ...(at !== undefined && { at }) })
    }

    private say(line: MonitorEvent["line"]) {
        this.options.tell({ tMs: this.nowMs, dev: this.options.dev, line })
    }
}
