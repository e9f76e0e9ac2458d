// The live picture on a terminal: drawn over itself on a screen of its own, and left on the usual one at the end.
import type { Clock, Timer } from "../vm/clock"

/** Countdowns show tenths of a second. */
const DRAW_MS = 100

const ENTER = "\x1b[?1049h\x1b[?25l"
const LEAVE = "\x1b[?25h\x1b[?1049l"
const HOME = "\x1b[H"
const LINE_END = "\x1b[K\r\n"
const REST = "\x1b[J"

export interface Output {
    columns?: number
    rows?: number
    writableNeedDrain: boolean
    write: (text: string) => unknown
}

export class Terminal {
    private timer: Timer | undefined
    private last = ""
    private isOpen = false

    /** @param draw the rows to show now, for so many columns and rows */
    constructor(
        private readonly out: Output,
        private readonly clock: Clock,
        private readonly draw: (width: number, height: number) => string[],
    ) {}

    open() {
        this.isOpen = true
        this.out.write(ENTER)
        this.show()
    }

    private show() {
        const { out } = this
        const rows = this.rows()
        // The last row without a line end: it would scroll.
        const text = HOME + rows.join(LINE_END) + "\x1b[K" + REST
        // A terminal that does not keep up gets fewer pictures, not later ones.
        if (text !== this.last && !out.writableNeedDrain) {
            this.last = text
            out.write(text)
        }
        this.timer = this.clock.setTimeout(() => this.show(), DRAW_MS)
    }

    private rows(): string[] {
        return this.draw(this.out.columns ?? 0, this.out.rows ?? 0)
    }

    /** As many as fit above the next prompt. */
    private lastRows(): string[] {
        const { columns = 0, rows = 0 } = this.out
        return this.draw(columns, rows && rows - 1)
    }

    /** Back to the usual screen, with the last picture on it. */
    close() {
        if (!this.isOpen) return
        this.isOpen = false
        this.clock.clearTimeout(this.timer)
        this.out.write(LEAVE + this.lastRows().join("\n") + "\n")
    }
}
