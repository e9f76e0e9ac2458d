// A budget for flash writes that outlives restarts. Pure: the clock is given, in whole seconds since the chip's reset.
//
// What is written is a debt, in bytes of flash. A minute of uptime takes one byte of it off again, and what would bring it
// above ALLOWED_BYTES is not to be written. So in any span of D days at most 1,440 D + 6,000 bytes are, 5.3 MB in ten years,
// whatever crashes and restarts come in between: the debt is part of each record that is written, with the uptime it was
// written at. What passed across a chip reset can't be known and counts as the uptime since, which is never too much.

import { div, mulDiv } from "./int"

/** The most bytes in hand. */
export const ALLOWED_BYTES = 6000

/** What a byte of debt takes. */
const SECONDS_A_BYTE = 60

/** @devsWhenUsed */
export class WriteBudget {
    private debtBytes: number
    /** Whole minutes have been taken off up to here. */
    private countedS: number

    /**
     * @param debtBytes as the newest record says; 0..65,535
     * @param recordS the uptime at which it was written
     * @param nowS the uptime now; below `recordS` the chip has been reset since
     */
    constructor(debtBytes: number, recordS: number, nowS: number) {
        this.debtBytes = debtBytes
        this.countedS = nowS < recordS ? 0 : recordS
        this.debt(nowS)
    }

    /** What counts now, bytes. */
    debt(nowS: number): number {
        const bytes = div(nowS - this.countedS, SECONDS_A_BYTE)
        this.countedS += mulDiv(bytes, SECONDS_A_BYTE, 1)
        this.debtBytes = this.debtBytes > bytes ? this.debtBytes - bytes : 0
        return this.debtBytes
    }

    /** Takes so many bytes, 1..ALLOWED_BYTES; false when there are not so many in hand. */
    spend(bytes: number, nowS: number): boolean {
        if (this.debt(nowS) + bytes > ALLOWED_BYTES) return false
        this.debtBytes += bytes
        return true
    }

    /** When there will be so many bytes in hand; `nowS` when there are. */
    readyS(bytes: number, nowS: number): number {
        const missing = this.debt(nowS) + bytes - ALLOWED_BYTES
        if (missing <= 0) return nowS
        return this.countedS + mulDiv(missing, SECONDS_A_BYTE, 1)
    }
}
