// What `--file` and stdin bring: a recording (one event a line, see event.ts) or a console's raw text. A recording
// has its own times. Raw text has only the device's clock, which starts again with every reset.
import type { MonitorEvent } from "./event"
import { fromJson } from "./event"
import { Listener } from "./listener"
import type { Builds } from "./builds"

/** A line of a recording is no longer than this; the rest of it is left out. */
const MAX_LINE = 10_000

export interface RecordingOptions {
    /** The name for a device whose text has none. */
    dev: string
    builds?: Builds
    /** The time for raw text; undefined: it is taken from the device's clock. */
    nowMs?: () => number
    tell: (event: MonitorEvent) => void
}

export class RecordingReader {
    private rest = Buffer.alloc(0)
    private isRecording: boolean | undefined
    private readonly listener: Listener
    /** Times from the device's clock: what was before its last reset, and what it showed last. */
    private beforeMs = 0
    private clockMs = 0

    constructor(private readonly options: RecordingOptions) {
        this.listener = new Listener({
            dev: options.dev,
            builds: options.builds,
            tell: event => options.tell(this.timed(event)),
            isLive: options.nowMs !== undefined,
        })
    }

    /** The next piece of the file. */
    push(bytes: Buffer) {
        this.isRecording ??= looksRecorded(bytes)
        if (!this.isRecording)
            return this.listener.bytes(bytes, this.options.nowMs?.() ?? 0)
        let all = Buffer.concat([this.rest, bytes])
        for (let at; (at = all.indexOf(0x0a)) >= 0; all = all.subarray(at + 1))
            this.record(all.subarray(0, at))
        this.rest = all.subarray(0, MAX_LINE)
    }

    /** The end: what is left is a last line. */
    end() {
        if (this.isRecording) this.record(this.rest)
        else this.listener.ended()
    }

    private record(bytes: Buffer) {
        const event = fromJson(bytes.toString())
        if (event) this.options.tell(event)
    }

    private timed(event: MonitorEvent): MonitorEvent {
        if (this.options.nowMs) return event
        const { clockMs } = event
        if (clockMs !== undefined) {
            if (clockMs < this.clockMs) this.beforeMs += this.clockMs
            this.clockMs = clockMs
        }
        return { ...event, tMs: this.beforeMs + this.clockMs }
    }
}

function looksRecorded(bytes: Buffer): boolean {
    return /^\s*\{"t":\d/.test(bytes.subarray(0, 100).toString())
}
