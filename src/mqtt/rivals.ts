// Two devices with one client id throw each other out: the broker ends the older session each time.
// MQTT 5 says so (0x8E); in MQTT 3.1.1 it shows only as sessions that the broker closes young, one after the
// other. Pure: it is told how sessions end, and says what to make of it.
//
// | sessions in a row closed young    | the device                                                     |
// |-----------------------------------|----------------------------------------------------------------|
// | 1, 2                              | backs off, as after any session that dies young                |
// | 3 to 5                            | the same, and says what it may be                              |
// | from 6 on                         | 5 min growing to 1 h, until a session has lasted 2 h, or three  |
// |                                   | in a row were alike                                            |
//
// Alike: as long as the session before to 5 s, or 59 min and more. That is a limit on a session's age, such as a load
// balancer has. A rival ends our session when its own wait is over, and that is drawn from 5 min or more with a tenth of
// jitter: three in a row are not alike, and few waits are 59 min.
//
// Not sooner, because an overloaded broker closes young sessions too, and its devices must come back.
import { slow, type Verdict } from "../core/verdict"

const SAY_AFTER = 3
const SLOW_AFTER = 6

/** Longer than the rival can be kept waiting by the same rule. */
const FREE_MS = 7200000

/** A wait of the slow lane is hardly ever so long. */
const LONG_MS = 3540000

/** Jitter puts a rival's dials further apart than this. */
const ALIKE_MS = 5000

/** Sessions alike, in a row. */
const FREE_AFTER = 3

export class Rivals {
    private young = 0
    private alike = 0
    private lastMs = 0

    /** A session has ended; returns the verdict to go by. `flap`: it was too young to count. */
    ended(verdict: Verdict, flap: boolean, upMs: number): Verdict {
        if (upMs >= FREE_MS) this.young = 0
        if (verdict.evidence !== "reset") return verdict
        if (this.isLimit(flap, upMs)) this.young = 0
        const suspected = this.young >= SLOW_AFTER
        if (!flap && !suspected) {
            this.young = 0
            return verdict
        }
        this.young++
        if (this.young < SAY_AFTER) return verdict
        const reason = "same client id twice?"
        if (this.young >= SLOW_AFTER) return slow(reason)
        return { lane: verdict.lane, evidence: verdict.evidence, reason }
    }

    /** Whether sessions end as by a limit on their age. */
    private isLimit(flap: boolean, upMs: number): boolean {
        const apart = upMs - this.lastMs
        const isAlike =
            upMs >= LONG_MS || (apart <= ALIKE_MS && apart >= -ALIKE_MS)
        this.lastMs = upMs
        this.alike = isAlike && !flap ? this.alike + 1 : 0
        return this.alike >= FREE_AFTER
    }
}
