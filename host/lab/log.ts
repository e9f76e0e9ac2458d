// What happened in a world, in order: one text line for each event, and a digest over all of
// them, so that two runs can be compared to the byte.
import { createHash } from "node:crypto"

/** One event. */
export interface LogEntry {
    atMs: number
    /** A device's name, a broker's address, or "world". */
    who: string
    what: string
}

export class EventLog {
    /** The latest events, at most `keep` of them. */
    entries: LogEntry[] = []
    /** Events so far, forgotten ones included. */
    count = 0
    private readonly hash = createHash("sha256")

    /** @param keep entries to remember; the digest covers all of them anyway */
    constructor(private readonly keep = 1_000_000) {}

    add(atMs: number, who: string, what: string) {
        const entry = { atMs, who, what }
        this.hash.update(`${formatEntry(entry)}\n`)
        this.count++
        this.entries.push(entry)
        if (this.entries.length >= 2 * this.keep)
            this.entries = this.entries.slice(-this.keep)
    }

    /** SHA-256 over every line so far, in hex. */
    digest(): string {
        return this.hash.copy().digest("hex")
    }

    /** The lines, of one participant if named. */
    text(who?: string): string {
        return this.entries
            .filter(e => who === undefined || e.who === who)
            .map(formatEntry)
            .join("\n")
    }
}

/** An event as a line: time, who, what. */
export function formatEntry({ atMs, who, what }: LogEntry): string {
    return `${atMs.toString().padStart(9)} ${who} ${what}`
}
