// The arithmetic of measurements: medians, and what of two things measured by turns. Pure.

/** The middle value; of an even number the lower of the two. NaN of none. */
export function median(values: readonly number[]): number {
    return quantile(values, 0.5)
}

/** The smallest value that at least this part (0..1) of all does not exceed. NaN of none. */
export function quantile(values: readonly number[], part: number): number {
    const sorted = Float64Array.from(values).sort()
    if (!sorted.length) return NaN
    return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)]
}

/**
 * How many times `others` the `ours` are, measured by turns: the median of the rounds' quotients. A machine that
 * is slow for a while slows both halves of a round, so that noise cancels where a quotient of medians keeps it.
 */
export function ratioByTurns(
    ours: readonly number[],
    others: readonly number[],
): number {
    const rounds = Math.min(ours.length, others.length)
    return median(ours.slice(0, rounds).map((cost, i) => cost / others[i]))
}

/** The most events, of sorted times, that fall into any span of `spanMs` (both ends included). */
export function densest(sortedMs: readonly number[], spanMs: number): number {
    let most = 0
    for (let from = 0, to = 0; to < sortedMs.length; ++to) {
        while (sortedMs[to] - sortedMs[from] > spanMs) ++from
        most = Math.max(most, to - from + 1)
    }
    return most
}
