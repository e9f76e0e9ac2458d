// What the tools of `npm run fleet` have in common: each is given its arguments and a console
// that tests can replace, and answers with an exit code. Flags are checked here.
import { InvalidArgumentError } from "commander"

/** Exit code after Ctrl-C. */
export const INTERRUPTED = 130

/** The outside world of a tool. */
export interface Io {
    out(text: string): void
    err(text: string): void
    /** The line of progress; the next one replaces it on a terminal. */
    status(text: string): void
    /** Ctrl-C was pressed: the tool prints what it knows and returns INTERRUPTED. */
    stopped(): boolean
}

/** One word after `npm run fleet --`. */
export interface Tool {
    name: string
    summary: string
    /** Exit code: 0 done, 1 found a failure, 2 a flag can't be used. */
    run(args: string[], io: Io): Promise<number>
}

/** Without a terminal, a line of progress this often. */
const QUIET_MS = 10_000
const DRAW_MS = 200

/** The real console: results to stdout, progress to stderr. */
export function consoleIo(): Io {
    const { stdout, stderr } = process
    let stopped = false
    process.on("SIGINT", () => (stopped = true))
    process.on("SIGTERM", () => (stopped = true))
    let drawnMs = performance.now()
    let isDrawn = false
    const clear = () => {
        if (isDrawn) stderr.write("\r\x1b[K")
        isDrawn = false
    }
    return {
        out(text) {
            clear()
            stdout.write(text)
        },
        err(text) {
            clear()
            stderr.write(text)
        },
        status(text) {
            const nowMs = performance.now()
            if (nowMs - drawnMs < (stderr.isTTY ? DRAW_MS : QUIET_MS)) return
            drawnMs = nowMs
            clear()
            stderr.write(stderr.isTTY ? text : `${text}\n`)
            isDrawn = stderr.isTTY
        },
        stopped: () => stopped,
    }
}

/** A flag's value: a number in a range, with or without a fraction. */
export const decimal = (low: number, high: number) => (text: string) => {
    const value = Number(text)
    if (!/^\d*\.?\d+$/.test(text) || value < low || value > high)
        throw new InvalidArgumentError(`Allowed: ${low} to ${high}.`)
    return value
}
