// The random source of core: a small seeded generator, so that a run can be replayed.
// Pure: whoever makes one brings the entropy.
//
// Why not Math.random(): in the DeviceScript simulator every device draws the same values, and on
// hardware nothing says that the seed was good. Two devices of a fleet that draw alike retry alike.

/** A source of random 32-bit words. */
export interface Random {
    /** The next word, as a signed int32: every value from -2^31 to 2^31 - 1 is equally likely. */
    next(): number
}

/**
 * sfc32, the small fast counting generator of PractRand (Chris Doty-Humphrey): 128 bits of
 * state, additions, shifts and xor only. Not for secrets.
 *
 * One step can be undone, so two different seeds are never in the same state after the same number of steps.
 */
export class Sfc32 implements Random {
    private a: number
    private b: number
    private c: number
    private counter: number

    /** Any four int32 words, zeros included. 20 rounds of warm-up mix them. */
    constructor(a: number, b: number, c: number, counter: number) {
        this.a = a | 0
        this.b = b | 0
        this.c = c | 0
        this.counter = counter | 0
        for (let i = 0; i < 20; ++i) this.next()
    }

    next(): number {
        const word = (((this.a + this.b) | 0) + this.counter) | 0
        this.counter = (this.counter + 1) | 0
        this.a = this.b ^ (this.b >>> 9)
        this.b = (this.c + (this.c << 3)) | 0
        this.c = (((this.c << 21) | (this.c >>> 11)) + word) | 0
        return word
    }
}

/**
 * A generator for one device. The seed is 8 bytes of hardware entropy, two words, and
 * the device id's 16 hex digits, two more words; nothing is folded over anything else. So devices whose
 * entropy is the same (a broken or simulated source) still diverge when their ids differ, and a
 * device that reboots diverges from itself when its entropy works.
 *
 * Shorter entropy counts as zeros and longer is folded in, as is an id of another length: whatever the
 * board gives makes a generator.
 */
export function seededRandom(entropy: Buffer, deviceId: string): Sfc32 {
    const id = Buffer.from(deviceId, "hex")
    // From all zeros sfc32 steps to (0, 0, 0, 1), so that simulated devices 0 and 1 would draw alike, one step apart.
    return new Sfc32(
        fold(entropy, 0) ^ 0x5bd1e995,
        fold(entropy, 4),
        fold(id, 0),
        fold(id, 4),
    )
}

/** One word of those bytes whose index has this bit 4. */
function fold(bytes: Buffer, bit: number): number {
    let word = 0
    for (let i = 0; i < bytes.length; ++i)
        if ((i & 4) === bit) word = ((word << 8) | (word >>> 24)) ^ bytes[i]
    return word
}
