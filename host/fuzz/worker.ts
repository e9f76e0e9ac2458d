// One core's share of a fuzz.
import { serve } from "../soak/serve"
import { fuzzPure, type Find } from "./pure"
import { fuzzVm } from "./vm"

/** Some streams of a seed, through one of the two ways. */
export interface Share {
    way: "pure" | "vm"
    seed: number
    from: number
    count: number
}

/** What came of them. */
export interface Yield {
    done: number
    /** Packets that the parser read, by type. */
    packets?: Record<string, number>
    find?: Find
}

serve<Share, Yield>(async ({ way, seed, from, count }, progress) =>
    way === "pure"
        ? fuzzPure(seed, from, count, progress)
        : fuzzVm(seed, from, count, progress),
)
