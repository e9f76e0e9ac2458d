// The budget for flash writes: what is in hand, what a minute brings back, and what a restart knows of it.
import { ALLOWED_BYTES, WriteBudget } from "../../src/core/write-budget"
import { type Case, equal } from "../cases"

export function cases(): Case[] {
    return [
        {
            name: "6,000 bytes in hand, and not one more",
            run: () => {
                const b = new WriteBudget(0, 0, 10)
                equal(b.spend(6001, 10), false)
                equal(b.spend(5999, 10), true)
                equal(b.spend(2, 10), false)
                equal(b.spend(1, 10), true)
                equal(b.debt(10), ALLOWED_BYTES)
            },
        },
        {
            name: "a byte a minute comes back; seconds in between are not lost by asking",
            run: () => {
                const b = new WriteBudget(100, 0, 0)
                for (let s = 0; s <= 180; s += 7) b.debt(s)
                equal(b.debt(179), 98)
                equal(b.debt(180), 97)
                equal(b.debt(6000), 0)
                equal(b.debt(4000000), 0, "never less than none")
            },
        },
        {
            name: "when there is enough",
            run: () => {
                const b = new WriteBudget(6000, 1000, 1000)
                equal(b.readyS(10, 1000), 1600)
                equal(b.readyS(10, 1599), 1600)
                equal(b.spend(10, 1599), false)
                equal(b.spend(10, 1600), true)
                equal(b.readyS(10, 1600), 2200)
                equal(b.readyS(10, 2300), 2300)
            },
        },
        {
            name: "a restart takes off what has passed; after a chip reset only what the clock shows",
            run: () => {
                equal(new WriteBudget(500, 3600, 7200).debt(7200), 440)
                equal(new WriteBudget(500, 3600, 60).debt(60), 499)
                equal(new WriteBudget(500, 3600, 0).debt(0), 500)
            },
        },
    ]
}
