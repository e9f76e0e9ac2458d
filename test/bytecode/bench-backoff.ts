// The policy's delays in a loop, for what one costs the device: a line before each batch, then so many delays without
// a wait. "nothing" is the same loop with a function that does nothing.
import * as ds from "@devicescript/core"
import { Backoff } from "../../src/core/backoff"
import { defaultPolicy, type Jitter } from "../../src/core/policy"
import { Sfc32 } from "../../src/core/random"
import { stalled, type Verdict } from "../../src/core/verdict"

const VERDICT = stalled("bench")

/** What the loop itself costs. */
class Nothing {
    begin(): number {
        return 0
    }
    failed(_verdict: Verdict): number {
        return 0
    }
}

const NAMES = [
    "nothing",
    "proportional",
    "equal",
    "full",
    "decorrelated",
    "none",
    "fitted",
]

function make(name: string): Nothing | Backoff {
    if (name === "nothing") return new Nothing()
    const policy = defaultPolicy()
    if (name === "fitted") policy.spreadMs = 125000
    else policy.jitter = name as Jitter
    return new Backoff(policy, new Sfc32(1, 2, 3, 4))
}

/** So many delays in a row, of outages of eight failures. */
function delays(backoff: Nothing | Backoff, count: number) {
    for (let i = 0; i < count; ++i)
        if (i & 7) backoff.failed(VERDICT, 0)
        else backoff.begin()
}

async function batch(name: string, backoff: Nothing | Backoff, count: number) {
    console.log(`${name} ${count}`)
    delays(backoff, count)
    console.log(`${name} end`)
    await ds.sleep(1)
}

while (true) {
    for (const name of NAMES) {
        const backoff = make(name)
        // A small one and one twice as large, to see what a delay puts on the heap; then some to take their time.
        for (let i = 0; i < 10; ++i) {
            await batch(name, backoff, 4)
            await batch(name, backoff, 8)
        }
        for (let i = 0; i < 20; ++i) await batch(name, backoff, 200)
    }
}
