// Integer arithmetic. This is the only file in core that multiplies or divides; lint keeps
// `*`, `/` and `%` out of the others.
//
// In DeviceScript a number is an int32 or a double, `%` is a signed int32 operation
// (4294967295 % 10 is -1) and `>>>` truncates to 32 bits first. So nothing here lets a
// value leave int32 on the way to its result: every step is exact in both languages.

import type { Random } from "./random"

/** 2^31 - 1, the largest value that settings, delays and ceilings can have. */
export const MAX_INT = 0x7fffffff

/** floor(a / b) for 0 <= a <= 2^31 - 1 and 1 <= b <= 2^31 - 1. */
export function div(a: number, b: number): number {
    return (a / b) | 0
}

/**
 * floor(a * b / c), exact, for 0 <= a, b <= 2^31 - 1 and 1 <= c <= 2^31 - 1.
 * A result above 2^31 - 1 becomes 2^31 - 1.
 *
 * a = whole * c + rest, so the result is whole * b + floor(rest * b / c). The second part is
 * binary long division, one bit of b at a time: it needs no 62-bit product, and is at most b.
 */
export function mulDiv(a: number, b: number, c: number): number {
    const whole = div(a, c)
    if (whole > 0 && b > div(MAX_INT, whole)) return MAX_INT
    const rest = a - whole * c
    const base = whole * b
    let quotient = 0
    let remainder = 0
    for (let bit = topBit(b); bit > 0; bit >>= 1) {
        quotient += quotient
        if (remainder >= c - remainder) {
            remainder -= c - remainder
            quotient++
        } else remainder += remainder
        if (b & bit) {
            if (remainder >= c - rest) {
                remainder -= c - rest
                quotient++
            } else remainder += rest
        }
    }
    return quotient > MAX_INT - base ? MAX_INT : base + quotient
}

/** The highest power of two that is at most n; 0 for 0. */
function topBit(n: number): number {
    if (n < 1) return 0
    let bit = 1
    while (bit <= n - bit) bit += bit
    return bit
}

/** The 32-bit word a, read as unsigned, modulo n, for 1 <= n <= 2^31 - 1. */
export function umod(a: number, n: number): number {
    let r = (a >>> 1) % n
    r = r >= n - r ? r - (n - r) : r + r
    r += a & 1
    return r === n ? 0 : r
}

/**
 * An unbiased draw from 0 .. n - 1, for 1 <= n <= 2^31 - 1: words are masked to the
 * power of two above n and drawn again until one is below n, fewer than two on average. n = 1 takes no word.
 *
 * Throws RangeError for any other n. A source that is stuck on one value must not hang the
 * device: after 64 words that were all too big (one in 2^64 when it works) the last loses its highest bit.
 */
export function below(n: number, random: Random): number {
    if ((n | 0) !== n || n < 1) throw new RangeError(`below(${n})`)
    let mask = n - 1
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    mask |= mask >> 16
    if (mask === 0) return 0
    let word = 0
    for (let tries = 0; tries < 64; ++tries) {
        word = random.next()
        const draw = word & mask
        if (draw < n) return draw
    }
    return word & (mask >> 1)
}

/** Throws RangeError, naming what, its value and its range, unless `value` is an integer in `min`..`max`. */
export function mustBe(what: string, value: number, min: number, max: number) {
    if (!(value >= min && value <= max) || (value | 0) !== value)
        throw new RangeError(`${what} is ${value}: must be ${min}..${max}`)
}

/** Whole seconds in a time of the device, which may be past 2^31 ms (`Math.idiv` is int32 only). */
export function wholeSeconds(ms: number): number {
    return Math.floor(ms / 1000)
}
