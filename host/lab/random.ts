// The lab's random numbers: everything that is drawn in a world comes from its seed, each
// purpose from a stream of its own, so that one more draw here shifts nothing there.
import { createHash } from "node:crypto"
import { below } from "../../src/core/int"
import { Sfc32, type Random } from "../../src/core/random"

/** One stream of random numbers. */
export class LabRandom implements Random {
    private readonly source: Sfc32

    constructor(
        private readonly seed: number,
        private readonly name = "",
    ) {
        const hash = createHash("sha256").update(`${seed}/${name}`).digest()
        const word = (i: number) => hash.readInt32LE(4 * i)
        this.source = new Sfc32(word(0), word(1), word(2), word(3))
    }

    /** The stream of another purpose; always the same one for the same name. */
    stream(name: string): LabRandom {
        return new LabRandom(this.seed, `${this.name}/${name}`)
    }

    next() {
        return this.source.next()
    }

    /** 0..n - 1, each equally likely; n in 1..2^31 - 1. */
    below(n: number): number {
        return below(n, this)
    }

    /** True `percent` times out of a hundred. */
    chance(percent: number): boolean {
        return this.below(100) < percent
    }

    /** One of a list. */
    pick<T>(list: readonly T[]): T {
        return list[this.below(list.length)]
    }

    bytes(count: number): Uint8Array {
        const bytes = new Uint8Array(count)
        for (let i = 0; i < count; ++i) bytes[i] = this.next() & 255
        return bytes
    }

    /** In [0, 1), for what expects `Math.random`. */
    readonly fraction = () => (this.next() >>> 0) / 0x1_0000_0000
}
