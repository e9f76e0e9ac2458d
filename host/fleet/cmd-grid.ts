// `npm run fleet -- grid`: every claim we make about our policies, simulated. Exit code 1 when one is broken.
import { setImmediate } from "node:timers/promises"
import { Command } from "commander"
import { readFlags } from "../flags"
import { allClaims, play } from "./claims"
import { seconds } from "./results"
import { INTERRUPTED, type Tool } from "./tool"

export const gridTool: Tool = {
    name: "grid",
    summary: "simulate all that we claim of our policies: minutes",
    async run(args, io) {
        const command = new Command("npm run fleet -- grid")
            .description("Simulates all that we claim of our policies.")
            .addHelpText(
                "after",
                "\nExit codes: 0 all hold; 1 one does not; 2 a flag can't be used; 130 Ctrl-C.",
            )
            .allowExcessArguments(false)
        const given = readFlags(command, args, (text, isError) =>
            (isError ? io.err : io.out)(text),
        )
        if (typeof given === "number") return given
        const claims = allClaims()
        const worst = new Map<string, { ratio: number; text: string }>()
        const startMs = performance.now()
        let broken = 0
        let done = 0
        for (const claim of claims) {
            await setImmediate()
            if (io.stopped()) break
            const r = play(claim)
            done++
            const text = `${claim.name}: p99 ${seconds(r.p99)} s, ${r.ratio.toFixed(2)} N/C, wasted ${r.wasted}, deaths ${r.brokerDeaths}`
            if (!claim.kept(r)) {
                broken++
                io.out(`BROKEN ${text} (promised: ${claim.promised})\n`)
            }
            const { devices, rate } = claim.scenario
            const kind =
                claim.policy === "fitted"
                    ? `fitted ${claim.margin}`
                    : `adaptive, N/C ${devices / rate < 60 ? "below" : "from"} 60 s`
            const figure = kind.includes("below") ? r.p99 : r.ratio
            if (figure > (worst.get(kind)?.ratio ?? -1))
                worst.set(kind, { ratio: figure, text })
            const leftS =
                ((performance.now() - startMs) / 1000) *
                (claims.length / done - 1)
            io.status(
                `${done} of ${claims.length}, ${broken} broken; about ${Math.ceil(leftS)} s left`,
            )
        }
        for (const { text } of worst.values()) io.out(`worst: ${text}\n`)
        io.out(`${done} of ${claims.length} claims tried, ${broken} broken\n`)
        if (done < claims.length) return INTERRUPTED
        return broken ? 1 : 0
    },
}
