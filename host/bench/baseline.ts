// What was measured before, in baseline.json, and whether something has grown since. Only what does not
// depend on the machine is kept: bytes, counts, and ratios of things measured by turns.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { PROJECT } from "../vm/program"

/** What kind of number it is decides how much it may grow. */
export type Kind = keyof typeof SLACK

/** The part by which a number of each kind may exceed its baseline. */
export const SLACK = {
    /** Socket writes, bytes on the wire, allocations: exact. */
    count: 0,
    /** Bytecode and heap. */
    bytes: 0.01,
    /** Times another's cost. */
    ratio: 0.25,
    /** When a fleet is back, in N/C: its own draws decide. */
    spread: 0.05,
}

/** A number that must not grow. */
export interface Guarded {
    value: number
    kind: Kind
}

/** The baseline's sections: one for each command. */
export type Section = "size" | "bench"

/** What a section holds: numbers by name. */
export type Baseline = Record<string, number>

export const FILE = "host/bench/baseline.json"

/** What came of a comparison, in sentences. */
export interface Verdict {
    /** What has grown, or can't be compared. */
    faults: string[]
    /** What has shrunk so much that the baseline should follow. */
    news: string[]
}

/**
 * Compares what was found with the baseline.
 * @param isDue whether a name of the baseline should have been measured this time
 * @param renew the command that accepts what is new
 */
export function compare(
    found: Record<string, Guarded>,
    baseline: Baseline,
    isDue: (name: string) => boolean,
    renew: string,
): Verdict {
    const faults: string[] = []
    const news: string[] = []
    for (const [name, { value: exact, kind }] of Object.entries(found)) {
        const value = Math.round(exact * 1000) / 1000
        const before = baseline[name]
        if (before === undefined) {
            faults.push(`${name} is ${value}: not in ${FILE}; ${renew} adds it`)
            continue
        }
        const most = before * (1 + SLACK[kind])
        if (!(value <= most))
            faults.push(
                `${name} grew from ${before} to ${value} (${percent(value, before)}); ` +
                    `allowed: ${rounded(most)}, which ${renew} changes`,
            )
        else if (value < before * (1 - SLACK[kind]))
            news.push(
                `${name} went from ${before} down to ${value} (${percent(value, before)}); ${renew} keeps it there`,
            )
    }
    for (const name of Object.keys(baseline))
        if (!(name in found) && isDue(name))
            faults.push(
                `${name} is in ${FILE}, but was not measured; ${renew} takes it out`,
            )
    return { faults, news }
}

function percent(value: number, before: number): string {
    if (before === 0) return "from nothing"
    const part = (100 * (value - before)) / before
    return `${part > 0 ? "+" : ""}${part.toFixed(1)} %`
}

/** A limit in as many digits as one reads, never more than it is. */
function rounded(most: number): number {
    return most < 100 ? Math.floor(most * 1000 + 1e-6) / 1000 : Math.floor(most)
}

interface File {
    comment: string
    size: Baseline
    bench: Baseline
}

function read(): File {
    return JSON.parse(readFileSync(join(PROJECT, FILE), "utf8")) as File
}

/** A section of the committed baseline. */
export function baselineOf(section: Section): Baseline {
    return read()[section]
}

/**
 * Makes what was found the baseline.
 * @param isDue whether a name should have been measured this time: it is gone when it was not; others stay
 */
export function accept(
    section: Section,
    found: Record<string, Guarded>,
    isDue: (name: string) => boolean,
) {
    const file = read()
    const all: Baseline = {}
    for (const [name, before] of Object.entries(file[section]))
        if (name in found || !isDue(name)) all[name] = before
    for (const [name, { value }] of Object.entries(found))
        all[name] = Math.round(value * 1000) / 1000
    file[section] = all
    const text = JSON.stringify(file, undefined, 4) + "\n"
    writeFileSync(join(PROJECT, FILE), text)
}

/** Compares, says what is wrong on stderr, and answers with the exit code. */
export function check(
    section: Section,
    found: Record<string, Guarded>,
    isDue: (name: string) => boolean,
    err: (text: string) => void,
): number {
    const renew = `npm run ${section} -- --accept`
    const { faults, news } = compare(found, baselineOf(section), isDue, renew)
    for (const text of news) err(`note: ${text}\n`)
    for (const text of faults) err(`error: ${text}\n`)
    return faults.length ? 1 : 0
}
