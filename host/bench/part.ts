// What the parts of the bench have in common.
import type { Report } from "./report"

/** What a part is given. */
export interface Bench {
    /** Fewer and smaller rounds: what CI has time for. */
    short: boolean
    /** How far it is: so much of this part (0..1), and what it is at. Lets Node's own events happen. */
    progress(done: number, text: string): Promise<void>
    /** Ctrl-C was pressed: end soon, with what is known. */
    stopped(): boolean
    /** A line for the person who waits: something is left out. */
    warn(text: string): void
}

/** One word after `npm run bench --`. */
export interface Part {
    name: string
    summary: string
    /** About how long it takes, for the time that is left. */
    seconds(short: boolean): number
    run(bench: Bench): Promise<Report>
}
