// Plain words on what a comparison shows and what to choose.
import type { Comparison } from "../compare"
import { seconds } from "../results"
import type { Result } from "../sim"

/** Sentences, as plain text; `code` in back quotes. */
export function adviceOf({ scenario, results }: Comparison): string[] {
    const { devices, rate } = scenario
    const back = results.filter(r => Number.isFinite(r.p99))
    const lost = results.filter(r => !Number.isFinite(r.p99))
    const deadly = results.filter(r => r.brokerDeaths > 0)
    const best = [...back].sort((a, b) => a.p99 - b.p99)[0] as
        Result | undefined
    return [
        `${devices} devices and a broker that completes ${rate} connections a second: whatever the policy, ` +
            `they can't all be back before ${seconds(devices / rate)} s.`,
        best
            ? `Here ${best.name} has 99 % of them back first, after ${seconds(best.p99)} s: ${best.ratio.toFixed(2)} times that limit.`
            : "Here no policy brings 99 % of them back.",
        lost.length
            ? `Not back within ${seconds(scenario.limitS)} s: ${names(lost)}. A broker that falls behind serves connections that ` +
              "nobody waits for any more, for as long as its devices ask for more than it can do."
            : "All of them bring 99 % back in the time watched.",
        ...(deadly.length
            ? [`The broker dies again under ${names(deadly)}.`]
            : []),
        ...alikeOf(results).map(
            group =>
                `${joined(group)} behave alike here, so their curves lie on top of each other.`,
        ),
        "Choose adaptive, the default, when you don't know your fleet's size or what its broker can do: it finds out.",
        "Choose fitted when you know both: on average it asks for less than the broker can do, so its queue stays short. " +
            `\`npm run fleet -- plan --devices ${devices} --rate ${rate}\` prints the numbers.`,
    ]
}

function names(results: Result[]): string {
    return results.map(r => r.name).join(", ")
}

/** Two that differ by less than this are alike. */
const ALIKE = 0.02

/** Groups of two or more policies whose figures are nearly the same. */
export function alikeOf(results: Result[]): string[][] {
    const groups: Result[][] = []
    for (const r of results) {
        const group = groups.find(([first]) => isAlike(first, r))
        if (group) group.push(r)
        else groups.push([r])
    }
    return groups.filter(g => g.length > 1).map(g => g.map(r => r.name))
}

function isAlike(a: Result, b: Result): boolean {
    const near = (x: number, y: number) =>
        x === y || Math.abs(x - y) <= ALIKE * Math.max(x, y)
    return (
        near(a.p50, b.p50) &&
        near(a.p99, b.p99) &&
        near(a.recovered, b.recovered) &&
        near(a.attemptsPerDevice, b.attemptsPerDevice)
    )
}

/** a, b and c. */
function joined(list: string[]): string {
    return `${list.slice(0, -1).join(", ")} and ${list[list.length - 1]}`
}
