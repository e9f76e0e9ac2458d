// The receiver's side of idempotency keys: has this operation come before? Pure, and bounded: the last keys are
// remembered, in order; when there is no room the oldest is forgotten, so a repetition that comes after `size` other
// keys is taken for new. A device repeats at most what it has in flight and in its outbox, so room for 32
// keys for each device that sends is plenty (defaults: 16 entries).
//
//     if (!dedup.isFirst(key)) return      // a repetition: answer as before, and do nothing
//     if (!doIt()) dedup.forget(key)       // it failed: the sender's next try is to count
//
// What it remembers is gone with the program: exactly once holds while the receiver runs.

/** A longer key is not remembered: it is no key of ours, and memory is bounded. */
export const DEDUP_MAX_CHARS = 64

/** @devsWhenUsed */
export class Dedup {
    private readonly keys: string[] = []
    /** Where the next key goes once all places are taken: the oldest is there. */
    private at = 0
    /** Repetitions so far. */
    repeats = 0

    /**
     * @param size keys remembered, 1..100,000; each costs some 60 bytes
     * @throws RangeError
     */
    constructor(private readonly size: number) {
        if ((size | 0) !== size || size < 1 || size > 100000)
            throw new RangeError(`size is ${size}: must be 1..100000`)
    }

    /** Whether `key` is not among those remembered; then it is from now on. Any text may be asked about. */
    isFirst(key: string): boolean {
        if (key.length > DEDUP_MAX_CHARS) return true
        const keys = this.keys
        const size = this.size
        if (keys.indexOf(key) >= 0) {
            this.repeats++
            return false
        }
        keys[this.at] = key
        this.at++
        if (this.at >= size) this.at = 0
        return true
    }

    /** Takes a key back: what came with it was not done, and may come again. */
    forget(key: string) {
        const i = this.keys.indexOf(key)
        // An empty text is nobody's key.
        if (i >= 0) this.keys[i] = ""
    }
}
