// What `--file` and stdin bring: a recording (one event a line, see event.ts) or a console's raw text. A recording
// has its own times. Raw text has only the device's clock, which starts again with every reset. What `npm start`
// says before its script's first line may stand before a recording.
import type { MonitorEvent } from "./event"
import { fromJson } from "./event"
import { Listener } from "./listener"
import type { Builds } from "./builds"

/** A line of a recording is no longer than this; the rest of it is left out. */
const MAX_LINE = 10_000

/** Whether it is a recording is known after so many bytes. */
const MAX_HEAD = 4000

/** npm's two lines, `> name@version script` and `> command`, for each script that it runs. */
const BANNER_HEAD = String.raw`> @?[^\s@]+@[^\s@]+ [^\n]*\n`
const BANNER = String.raw`^\s*(?:${BANNER_HEAD}> [^\n]*\n\s*)*`
const RECORDED = new RegExp(String.raw`${BANNER}\{"t":\d`)
/** Nothing but a banner yet, or the beginning of one, or of an event. */
const UNDECIDED = new RegExp(
    String.raw`${BANNER}(?:>[^\n]*|${BANNER_HEAD}(?:>[^\n]*)?|\{?"?t?"?:?)$`,
)

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
        let all = Buffer.concat([this.rest, bytes])
        this.isRecording ??= looksRecorded(all)
        if (!this.isRecording) {
            this.rest = this.isRecording === undefined ? all : Buffer.alloc(0)
            if (this.isRecording === false) this.hear(all)
            return
        }
        for (let at; (at = all.indexOf(0x0a)) >= 0; all = all.subarray(at + 1))
            this.record(all.subarray(0, at))
        this.rest = all.subarray(0, MAX_LINE)
    }

    /** The end: what is left is a last line. */
    end() {
        if (this.isRecording) return this.record(this.rest)
        this.hear(this.rest)
        this.listener.ended()
    }

    private hear(bytes: Buffer) {
        this.listener.bytes(bytes, this.options.nowMs?.() ?? 0)
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

/** Undefined: what is there does not tell. */
function looksRecorded(bytes: Buffer): boolean | undefined {
    const head = bytes.subarray(0, MAX_HEAD).toString()
    if (RECORDED.test(head)) return true
    return bytes.length < MAX_HEAD && UNDECIDED.test(head) ? undefined : false
}
