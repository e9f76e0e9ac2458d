// The AWS simulation for several sizes and strategies, as JSON for programs and as a table for people.
import { setImmediate } from "node:timers/promises"
import { tableText, type ComparisonJson, type ResultJson } from "./results"
import { rowResult, ROW_RUNS, type RowResult, type RowStrategy } from "./row"
import type { Io } from "./tool"

export interface Rows {
    seed: number
    results: RowResult[]
    interrupted: boolean
}

export async function compareRows(
    wanted: { sizes: number[]; strategies: RowStrategy[]; seed: number },
    io: Io,
): Promise<Rows> {
    const { sizes, strategies, seed } = wanted
    const results: RowResult[] = []
    for (const clients of sizes)
        for (const strategy of strategies) {
            results.push(rowResult(strategy, clients, seed))
            io.status(`${strategy}, ${clients} clients: done`)
            await setImmediate()
            if (io.stopped()) return { seed, results, interrupted: true }
        }
    return { seed, results, interrupted: false }
}

/** As of the other brokers; calls are attempts, and those that came too late are wasted. There is no limit. */
export interface RowJson extends ResultJson {
    devices: number
}

export function rowJsonOf({ seed, results, interrupted }: Rows): Omit<
    ComparisonJson,
    "limitSeconds" | "policies"
> & {
    limitSeconds: null
    policies: RowJson[]
} {
    return {
        limitSeconds: null,
        seed,
        policies: results.map(r => ({
            name: r.strategy,
            devices: r.clients,
            recovered: r.clients,
            p50: r.p50Ms / 1000,
            p99: r.p99Ms / 1000,
            last: r.timeMs / 1000,
            ratio: null,
            attemptsPerDevice: r.calls / r.clients,
            wasted: r.calls - r.clients,
            peakPerSecond: r.peakPerSecond,
            brokerDeaths: 0,
        })),
        ...(interrupted ? { interrupted: true } : {}),
    }
}

/** Time in ms / calls, as the article shows them. */
export function rowTextOf({ seed, results, interrupted }: Rows): string {
    const strategies = [...new Set(results.map(r => r.strategy))]
    const sizes = [...new Set(results.map(r => r.clients))]
    const cell = (clients: number, strategy: string) => {
        const r = results.find(
            x => x.clients === clients && x.strategy === strategy,
        )
        return r ? `${r.timeMs.toFixed(0)}/${r.calls.toFixed(0)}` : ""
    }
    return [
        `one row with a version, means of ${ROW_RUNS} runs from seed ${seed}: time in ms / calls`,
        ...tableText([
            ["clients", ...strategies],
            ...sizes.map(n => [
                String(n),
                ...strategies.map(strategy => cell(n, strategy)),
            ]),
        ]),
        ...(interrupted ? ["interrupted: not all was simulated"] : []),
    ].join("\n")
}
