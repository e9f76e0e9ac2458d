// Idempotency keys and who receives them: keys, Dedup, and the budget that retries come from.
import { Dedup } from "../../src/core/dedup"
import { KEY_MAX_CHARS, Keys } from "../../src/core/key"
import { RetryBudget } from "../../src/core/retry-budget"
import { type Case, equal, throws } from "../cases"

const ID = "1122334455667788"

function entropy(hex: string): Buffer {
    return Buffer.from(hex, "hex")
}

export function cases(): Case[] {
    return [
        {
            name: "a key is device, start and number; no two are alike",
            run: () => {
                const k = new Keys(ID, entropy("00aabbccddeeff01"))
                equal(k.next(), ID + "-00aabbccddeeff01-1", "first")
                equal(k.next(), ID + "-00aabbccddeeff01-2", "second")
                const again = new Keys(ID, entropy("00aabbccddeeff02"))
                equal(again.next(), ID + "-00aabbccddeeff02-1", "next start")
                ;(k as any).count = 2147483646
                equal(k.next().length <= KEY_MAX_CHARS, true, "length")
            },
        },
        {
            name: "entropy that is missing or all zeros makes no keys",
            run: () => {
                throws(
                    () => new Keys(ID, entropy("0000000000000000")),
                    "8 random",
                )
                throws(() => new Keys(ID, entropy("11")), "8 random bytes")
                throws(() => new Keys(ID, Buffer.alloc(0)), "8 random bytes")
            },
        },
        {
            name: "Dedup: first, then not; the oldest is forgotten for one more than fit",
            run: () => {
                const d = new Dedup(3)
                for (const key of ["a", "b", "c"])
                    equal(d.isFirst(key), true, key)
                for (const key of ["c", "a", "b"])
                    equal(d.isFirst(key), false, key)
                equal(d.repeats, 3, "repeats")
                equal(d.isFirst("d"), true, "d")
                equal(d.isFirst("b"), false, "b is remembered")
                equal(d.isFirst("a"), true, "a is forgotten")
                equal(d.isFirst("b"), true, "and now b")
            },
        },
        {
            name: "Dedup: what failed may come again",
            run: () => {
                const d = new Dedup(2)
                d.isFirst("a")
                d.forget("a")
                d.forget("never seen")
                equal(d.isFirst("a"), true, "again")
                equal(d.isFirst("a"), false, "and only once")
            },
        },
        {
            name: "Dedup: texts that are no keys do not fill the memory",
            run: () => {
                const d = new Dedup(2)
                d.isFirst("a")
                let long = "0123456789abcdef"
                long += long
                long += long + "x"
                equal(d.isFirst(long), true, "65 characters")
                equal(d.isFirst(long), true, "never remembered")
                equal(d.isFirst(long.slice(1)), true, "64 characters")
                equal(d.isFirst(long.slice(1)), false, "remembered")
                equal(d.isFirst("a"), false, "a")
            },
        },
        {
            name: "Dedup: sizes that can't be",
            run: () => {
                const range = "must be 1..100000"
                throws(() => new Dedup(0), range)
                throws(() => new Dedup(1.5), range)
                throws(() => new Dedup(100001), range)
            },
        },
        {
            name: "retry budget: ten retries, then one for five requests",
            run: () => {
                const b = new RetryBudget()
                for (let i = 0; i < 10; ++i) equal(b.retry(), true, `${i}`)
                equal(b.retry(), false, "empty")
                for (let i = 0; i < 4; ++i) b.request()
                equal(b.retry(), false, "four fifths")
                b.request()
                equal(b.retry(), true, "one")
                equal(b.retry(), false, "and no more")
                for (let i = 0; i < 99; ++i) b.request()
                let retries = 0
                while (b.retry()) retries++
                equal(retries, 10, "full again, not fuller")
            },
        },
        {
            name: "retry budget: a service that is down is asked at most 1.2 times as often",
            run: () => {
                const b = new RetryBudget()
                let sent = 0
                for (let i = 0; i < 500; ++i) {
                    b.request()
                    sent++
                    for (let k = 1; k < 5 && b.retry(); ++k) sent++
                }
                equal(sent, 500 + 100 + 9, "requests and retries")
            },
        },
    ]
}
