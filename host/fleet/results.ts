// What came of a comparison, as JSON for programs and as a table for people.
import type { Comparison } from "./compare"
import type { Result, Scenario } from "./sim"

/** Times in seconds from the broker's return; null for never. */
export interface ResultJson {
    name: string
    recovered: number
    p50: number | null
    p99: number | null
    last: number | null
    /** p99 over limitSeconds. */
    ratio: number | null
    attemptsPerDevice: number
    /** Null: not known. */
    wasted: number | null
    peakPerSecond: number
    brokerDeaths: number
}

export interface ComparisonJson {
    /** No policy is faster than this: devices / rate. */
    limitSeconds: number
    seed: number
    policies: ResultJson[]
    /** Only when Ctrl-C came before the end: the last policy's figures are of an unfinished run. */
    interrupted?: true
}

export function jsonOf(comparison: Comparison): ComparisonJson {
    const { scenario, results, interrupted } = comparison
    return {
        limitSeconds: scenario.devices / scenario.rate,
        seed: scenario.seed,
        policies: results.map(resultJson),
        ...(interrupted ? { interrupted: true } : {}),
    }
}

function resultJson(r: Result): ResultJson {
    return {
        name: r.name,
        recovered: r.recovered,
        p50: finite(r.p50),
        p99: finite(r.p99),
        last: finite(r.last),
        ratio: finite(r.ratio),
        attemptsPerDevice: r.attemptsPerDevice,
        wasted: finite(r.wasted),
        peakPerSecond: r.peakPerSecond,
        brokerDeaths: r.brokerDeaths,
    }
}

function finite(value: number): number | null {
    return Number.isFinite(value) ? value : null
}

/** The columns of the table, on the terminal and in the report. */
export const COLUMNS: {
    title: string
    key: keyof ResultJson
    text: (r: Result) => string
}[] = [
    { title: "policy", key: "name", text: r => r.name },
    { title: "p99 s", key: "p99", text: r => seconds(r.p99) },
    {
        title: "p99 / limit",
        key: "ratio",
        text: r => (r.ratio === Infinity ? "never" : r.ratio.toFixed(2)),
    },
    { title: "p50 s", key: "p50", text: r => seconds(r.p50) },
    { title: "last s", key: "last", text: r => seconds(r.last) },
    { title: "back", key: "recovered", text: r => String(r.recovered) },
    {
        title: "attempts each",
        key: "attemptsPerDevice",
        text: r => r.attemptsPerDevice.toFixed(1),
    },
    {
        title: "wasted",
        key: "wasted",
        text: r => (Number.isNaN(r.wasted) ? "?" : String(r.wasted)),
    },
    {
        title: "peak /s",
        key: "peakPerSecond",
        text: r => String(r.peakPerSecond),
    },
    { title: "deaths", key: "brokerDeaths", text: r => String(r.brokerDeaths) },
]

export function seconds(value: number): string {
    if (!Number.isFinite(value)) return "never"
    return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)
}

/** Columns of text, the first to the left, the others to the right. */
export function tableText(rows: string[][]): string[] {
    const widths = rows[0].map((_, c) =>
        Math.max(...rows.map(row => row[c].length)),
    )
    return rows.map(row =>
        row
            .map((cell, c) =>
                c === 0 ? cell.padEnd(widths[c]) : cell.padStart(widths[c]),
            )
            .join("  "),
    )
}

/** What was simulated, in a line. */
export function scenarioText(scenario: Scenario): string {
    const { devices, rate, seed, outageS, silent, powerOn } = scenario
    const what = powerOn
        ? "all switched on together"
        : `${outageS} s outage, ${silent ? "silent" : "refused"}`
    return (
        `${devices} devices, ${rate} connections/s (${scenario.broker}, backlog ${scenario.backlogS} s), ` +
        `${what}, seed ${seed}: nobody can be faster than ${seconds(devices / rate)} s`
    )
}

/** A table with a line of words above it. */
export function textOf({ scenario, results, interrupted }: Comparison) {
    return [
        scenarioText(scenario),
        ...tableText([
            COLUMNS.map(c => c.title),
            ...results.map(r => COLUMNS.map(c => c.text(r))),
        ]),
        ...(interrupted ? ["interrupted: the last line is unfinished"] : []),
    ].join("\n")
}
