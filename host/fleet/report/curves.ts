// The curves of a comparison, thinned to what a screen shows, and how each is drawn.
import type { Comparison } from "../compare"
import type { Result } from "../sim"

export interface Curve {
    name: string
    color: string
    darkColor: string
    /** Lengths of dashes and gaps, px; "solid" for none. */
    dash: number[] | "solid"
    width: number
    /** [seconds, percent]. */
    recovered: [number, number][]
    /** [seconds, attempts in the fullest second]; null where there was none. */
    attempts: [number, number | null][]
}

const POINTS = 300

/** Okabe and Ito's colours, told apart by every common colour vision; the second is for a dark page. */
const COLORS = [
    ["#0072b2", "#56b4e9"],
    ["#d55e00", "#ff9f45"],
    ["#009e73", "#2fd6a5"],
    ["#a8447f", "#e89ac7"],
    ["#8a6d00", "#f0e442"],
    ["#555555", "#c8c8c8"],
    ["#1d3fa5", "#a3b8ff"],
]
const DASHES: (number[] | "solid")[] = ["solid", [8, 4], [2, 3], [10, 3, 2, 3]]

/** Until when the charts go, s: the slowest may be cut off so that the others can be told apart. */
export function xMaxOf({ scenario, results }: Comparison): number {
    const limit = scenario.devices / scenario.rate
    const lastS = Math.max(
        2 * limit,
        ...results.map(r => r.last).filter(Number.isFinite),
    )
    const shownS = Math.min(1.05 * lastS, Math.max(6 * limit, 180))
    return Math.ceil(Math.min(scenario.limitS, Math.max(30, shownS)))
}

export function curvesOf(comparison: Comparison): Curve[] {
    const { devices } = comparison.scenario
    const xMaxS = xMaxOf(comparison)
    return comparison.results.map((result, i) => {
        const [color, darkColor] = COLORS[i % COLORS.length]
        const dash = DASHES[Math.floor(i / COLORS.length) % DASHES.length]
        const width = i < 2 ? 3 : 2
        const points = thinned(result, devices, xMaxS)
        return { name: result.name, color, darkColor, dash, width, ...points }
    })
}

function thinned(result: Result, devices: number, xMaxS: number) {
    const { recoveredBySecond, attemptsBySecond } = result
    const stepS = Math.max(1, Math.ceil(xMaxS / POINTS))
    const recovered: [number, number][] = [[0, 0]]
    const attempts: [number, number | null][] = []
    let back = 0
    for (let s = 0; s < xMaxS; s += stepS) {
        let most = 0
        for (let i = s; i < s + stepS; ++i) {
            back += recoveredBySecond[i] ?? 0
            most = Math.max(most, attemptsBySecond[i] ?? 0)
        }
        const atS = Math.min(s + stepS, xMaxS)
        recovered.push([atS, Math.round((1e4 * back) / devices) / 100])
        attempts.push([s, most || null])
    }
    return { recovered, attempts }
}
