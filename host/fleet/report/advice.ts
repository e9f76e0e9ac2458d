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
        "Choose adaptive, the default, when you don't know your fleet's size or what its broker can do: it finds out.",
        "Choose fitted when you know both: on average it asks for less than the broker can do, so its queue stays short. " +
            `\`npm run fleet -- plan --devices ${devices} --rate ${rate}\` prints the numbers.`,
    ]
}

function names(results: Result[]): string {
    return results.map(r => r.name).join(", ")
}
