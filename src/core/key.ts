// Idempotency keys: names for operations, so that whoever gets one twice can tell. Pure: the entropy is given.
//
//   <device id, 16 hex digits>-<64 random bits of this start, 16 hex digits>-<number of the operation in this start>
//
// Unique without a clock and without a flash write: two starts of one device would have to draw the same 64 bits
// (with 10,000 starts the odds are one in 3 * 10^11), and two devices to have one id as well. One operation keeps its key
// through all its retries, reconnects, and, where the message itself is in flash, restarts: it is part of the message.

/** The most characters of a key: an id, the start, and a number of 10 digits. */
export const KEY_MAX_CHARS = 44

/** Gives out the keys of one program start. */
export class Keys {
    private readonly source: string
    private count = 0

    /**
     * @param deviceId 16 hex digits
     * @param entropy 8 bytes from hardware, drawn at this start
     * @throws RangeError when the entropy is not 8 bytes, or all zeros, which no working source gives
     */
    constructor(deviceId: string, entropy: Buffer) {
        const start = entropy.toString("hex")
        if (start.length !== 16 || start === "0000000000000000")
            throw new RangeError(`entropy is ${start}: must be 8 random bytes`)
        this.source = `${deviceId}-${start}-`
    }

    /** A key that was never given out before. */
    next(): string {
        return this.source + ++this.count
    }
}
