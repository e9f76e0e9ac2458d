// The fleet's policy as a table: which messages are taken, which are refused and why, and when flash is written.
import { defaultPolicy, type Policy } from "../../src/core/policy"
import {
    FLEET_POLICY_MAX_BYTES,
    FleetPolicyState,
    formatFleetPolicy,
    isRefusal,
    parseFleetPolicy,
    STORE_EVERY_MS,
} from "../../src/core/fleet-policy"
import type { ConfigLine } from "../../src/core/line"
import { hash31 } from "../../src/core/record"
import { type Case, equal } from "../cases"

const HOUR_MS = STORE_EVERY_MS

/** A message in bounds, with some of its text replaced. */
function message(issue: number, from = "", to = ""): string {
    const text = `{"issue":${issue},"minMs":2000,"capMs":30000,"spreadMs":0,"overloadCapMs":600000,"jitter":"full"}`
    return from ? text.split(from).join(to) : text
}

/** What a text is: its canonical form, or "value | allowed" of the refusal. */
function read(text: string | undefined): string {
    const policy = parseFleetPolicy(text)
    if (isRefusal(policy)) return `${policy.value} | ${policy.allowed}`
    return formatFleetPolicy(policy)
}

/** A line in short. */
function said(line: ConfigLine | undefined): string {
    if (line === undefined) return "nothing"
    return `${line.value} | ${line.allowed} | ${line.used}`
}

function numbers(p: Policy): string {
    return `${p.minMs} ${p.capMs} ${p.spreadMs} ${p.overloadCapMs} ${p.jitter}`
}

const OWN = "1000 60000 0 3600000 proportional"

function state(): FleetPolicyState {
    return new FleetPolicyState(defaultPolicy())
}

function stored(body: string): string {
    return `[${hash31(body)},${body}]`
}

/** What is to be written now; "nothing" for nothing, "" for a removal. */
function toStore(s: FleetPolicyState, nowMs: number): string {
    const text = s.toStore(nowMs)
    return text === undefined ? "nothing" : text
}

export function cases(): Case[] {
    return [
        {
            name: "a message is read, whatever the order of its keys and the blanks",
            run: () => {
                equal(read(message(7)), message(7))
                equal(
                    read(
                        ' {"jitter" : "none",\n\t"overloadCapMs":21600000,"capMs":21600000,"spreadMs":0,"minMs":21600000,"issue":1073741824} ',
                    ),
                    '{"issue":1073741824,"minMs":21600000,"capMs":21600000,"spreadMs":0,"overloadCapMs":21600000,"jitter":"none"}',
                )
                equal(
                    read(
                        '{"issue":1,"minMs":500,"capMs":500,"spreadMs":500,"overloadCapMs":500,"jitter":"equal"}',
                    ),
                    '{"issue":1,"minMs":500,"capMs":500,"spreadMs":500,"overloadCapMs":500,"jitter":"equal"}',
                )
            },
        },
        {
            name: "each number one beyond its bound is refused, with the bound",
            run: () => {
                equal(read(message(0)), "issue 0 | 1..1073741824")
                equal(read(message(-1)), "issue -1 | 1..1073741824")
                equal(
                    read(message(1073741825)),
                    "issue 1073741825 | 1..1073741824",
                )
                const said = (from: string, to: string) =>
                    read(message(1, from, to))
                equal(said("2000,", "499,"), "minMs 499 | 500..30000")
                equal(said("2000,", "30001,"), "minMs 30001 | 500..30000")
                equal(said("30000", "600001"), "capMs 600001 | 500..600000")
                equal(
                    said("600000", "21600001"),
                    "overloadCapMs 21600001 | 500..21600000",
                )
                equal(said(":0,", ":600001,"), "spreadMs 600001 | 0..600000")
                equal(said(":0,", ":-1,"), "spreadMs -1 | 0..600000")
            },
        },
        {
            name: "what is not a whole number is refused",
            run: () => {
                for (const v of ['"2000"', "null", "true", "2000.5", "1e300"]) {
                    const text = message(1, "2000,", v + ",")
                    equal(read(text).indexOf("minMs "), 0, read(text))
                }
                equal(
                    read(message(1, '"minMs":2000,')),
                    "minMs missing | 500..30000",
                )
            },
        },
        {
            name: "jitter is one of five words, and none goes with no spread",
            run: () => {
                for (const jitter of [
                    "proportional",
                    "equal",
                    "full",
                    "decorrelated",
                    "none",
                ]) {
                    const text = message(1, "full", jitter)
                    equal(read(text), text)
                }
                const allowed = "proportional|equal|full|decorrelated|none"
                equal(read(message(1, "full", "")), `jitter  | ${allowed}`)
                equal(
                    read(message(1, "full", "Full")),
                    `jitter Full | ${allowed}`,
                )
                equal(read(message(1, '"full"', "3")), `jitter 3 | ${allowed}`)
                equal(
                    read(message(1, "full", "none").split(":0,").join(":1,")),
                    "spreadMs 1 | 0..0",
                )
            },
        },
        {
            name: "a key too many or misspelt is refused by name",
            run: () => {
                const keys = "issue minMs capMs spreadMs overloadCapMs jitter"
                for (const key of [
                    "spreadMS",
                    "x",
                    "",
                    "constructor",
                    "__proto__",
                ])
                    equal(
                        read(message(1, '"spreadMs"', `"${key}"`)),
                        `key ${key} | ${keys}`,
                    )
            },
        },
        {
            name: "what is no flat JSON object is refused, and quickly",
            run: () => {
                const flat = "one flat JSON object"
                equal(read(undefined), "not text | a policy")
                equal(read(""), "empty | a policy")
                for (const text of ["7", "null", '"a"', "x", " ", "\\u007b"])
                    equal(read(text), `${text} | ${flat}`)
                equal(read("[{}]"), "[{}] | " + flat)
                equal(read('{"issue":{}}'), '{"issue":{}} | ' + flat)
                equal(read('{"issue":[]}'), '{"issue":[]} | ' + flat)
                equal(read("{"), "{ | JSON")
                equal(read(message(1) + ","), message(1) + ", | JSON")
                equal(
                    read(message(1, "}", "")),
                    message(1, "}", "") + " | JSON",
                )
                let deep = "{"
                while (deep.length < 400) deep += "{"
                equal(read(deep), `${deep} | ${flat}`)
                equal(read(deep + "{"), "401 characters | at most 400")
            },
        },
        {
            name: "a newer policy is in force at once; the device keeps what a message does not set",
            run: () => {
                const own = defaultPolicy()
                own.stableMs = 5000
                own.maxAttempts = 9
                const s = new FleetPolicyState(own)
                equal(numbers(s.policy()), OWN)
                equal(
                    said(s.offer(message(3))),
                    "issue 3 | 1..1073741824 | issue 3",
                )
                equal(numbers(s.policy()), "2000 30000 0 600000 full")
                equal(s.policy().stableMs, 5000)
                equal(s.policy().maxAttempts, 9)
                equal(
                    said(s.offer(message(4, "2000", "700"))),
                    "issue 4 | above 3 | issue 4",
                )
                equal(numbers(s.policy()), "700 30000 0 600000 full")
            },
        },
        {
            name: "the one in force again says nothing; an older one, and another of the same number, is refused",
            run: () => {
                const s = state()
                s.offer(message(3))
                equal(said(s.offer(message(3))), "nothing")
                equal(said(s.offer(" " + message(3))), "nothing")
                equal(said(s.offer(message(2))), "issue 2 | above 3 | issue 3")
                equal(
                    said(s.offer(message(3, "2000", "700"))),
                    "issue 3 | above 3 | issue 3",
                )
                equal(numbers(s.policy()), "2000 30000 0 600000 full")
            },
        },
        {
            name: "a bad one changes nothing and says what is in force",
            run: () => {
                const s = state()
                equal(
                    said(s.offer(message(9, "2000,", "1,"))),
                    "minMs 1 | 500..30000 | settings",
                )
                s.offer(message(3))
                equal(said(s.offer("")), "empty | a policy | issue 3")
                equal(numbers(s.policy()), "2000 30000 0 600000 full")
                equal(said(s.offer(message(4))), "issue 4 | above 3 | issue 4")
            },
        },
        {
            name: "the last number may be used again: nobody can use the numbers up",
            run: () => {
                const s = state()
                const last = 1073741824
                s.offer(message(last))
                equal(said(s.offer(message(last))), "nothing")
                equal(
                    said(s.offer(message(last, "2000", "700"))),
                    "issue 1073741824 | above 1073741824 | issue 1073741824",
                )
                equal(s.policy().minMs, 700)
                equal(
                    said(s.offer(message(last - 1))).indexOf(
                        "issue 1073741823 |",
                    ),
                    0,
                )
                equal(s.policy().minMs, 700)
            },
        },
        {
            name: "reset: settings again, and any number is new",
            run: () => {
                const s = state()
                s.offer(message(1073741824))
                equal(said(s.reset()), "reset | reset | settings")
                equal(numbers(s.policy()), OWN)
                equal(
                    said(s.offer(message(1))),
                    "issue 1 | 1..1073741824 | issue 1",
                )
            },
        },
        {
            name: "after an hour kept out by overload the waits may climb to 6 h, but not for a policy from settings",
            run: () => {
                const s = state()
                equal(numbers(s.policy(true)), OWN)
                s.offer(message(3))
                equal(numbers(s.policy(true)), "2000 30000 0 21600000 full")
                equal(numbers(s.policy()), "2000 30000 0 600000 full")
            },
        },
        {
            name: "flash: the first at once, then the newest only, an hour after the last write",
            run: () => {
                const s = state()
                equal(toStore(s, 0), "nothing", "nothing to write")
                s.offer(message(1))
                const first = toStore(s, 5)
                equal(first, stored(message(1)))
                s.wasStored(first, 5)
                equal(toStore(s, 5), "nothing")
                for (let i = 2; i < 10; ++i) {
                    s.offer(message(i))
                    equal(toStore(s, 4 + HOUR_MS), "nothing")
                }
                equal(toStore(s, 5 + HOUR_MS), stored(message(9)))
                equal(s.policy().minMs, 2000)
            },
        },
        {
            name: "flash: a reset removes it by the same rule; reset and taken again is no write at all",
            run: () => {
                const s = state()
                s.offer(message(1))
                s.wasStored(toStore(s, 0), 0)
                s.reset()
                equal(toStore(s, HOUR_MS - 1), "nothing")
                equal(toStore(s, HOUR_MS), "")
                s.offer(message(1))
                equal(toStore(s, HOUR_MS), "nothing")
            },
        },
        {
            name: "flash: a write or a removal that failed is tried again an hour later",
            run: () => {
                const s = state()
                s.offer(message(1))
                s.wasStored(undefined, 0)
                equal(toStore(s, HOUR_MS - 1), "nothing")
                equal(toStore(s, HOUR_MS), stored(message(1)))
                s.wasStored(stored(message(1)), HOUR_MS)
                s.reset()
                equal(toStore(s, 2 * HOUR_MS), "")
                s.wasStored(undefined, 2 * HOUR_MS)
                equal(toStore(s, 3 * HOUR_MS - 1), "nothing")
                equal(toStore(s, 3 * HOUR_MS), "")
                s.wasStored("", 3 * HOUR_MS)
                equal(toStore(s, 9 * HOUR_MS), "nothing")
            },
        },
        {
            name: "flash: no answer at the start is left alone, but a reset removes what may be there",
            run: () => {
                const s = state()
                equal(said(s.restore("")), "nothing")
                equal(toStore(s, 0), "nothing")
                s.reset()
                equal(toStore(s, 0), "")
                s.wasStored("", 0)
                s.reset()
                equal(toStore(s, HOUR_MS), "nothing")
                const other = state()
                other.restore("")
                other.offer(message(1))
                equal(toStore(other, 0), stored(message(1)))
                other.reset()
                equal(toStore(other, 0), "")
            },
        },
        {
            name: "flash: what was stored is in force after the next start, and is not written again",
            run: () => {
                const s = state()
                equal(said(s.restore(stored(message(7)))), "nothing")
                equal(numbers(s.policy()), "2000 30000 0 600000 full")
                equal(toStore(s, 0), "nothing")
                equal(said(s.offer(message(6))), "issue 6 | above 7 | issue 7")
                equal(said(state().restore(undefined)), "nothing")
            },
        },
        {
            name: "flash: a torn text is reported, ignored, and removed or replaced",
            run: () => {
                const whole = stored(message(7))
                for (let i = 1; i < whole.length; i += 11) {
                    const s = state()
                    equal(
                        said(s.restore(whole.slice(0, i))),
                        "stored policy | a whole one | settings",
                    )
                    equal(numbers(s.policy()), OWN)
                    equal(toStore(s, 0), "")
                }
                const s = state()
                s.restore(whole.split("2000").join("2001"))
                equal(numbers(s.policy()), OWN)
                s.offer(message(7))
                equal(toStore(s, 0), whole)
            },
        },
        {
            name: "flash: a sound checksum over a policy out of bounds is no policy",
            run: () => {
                for (const body of [
                    message(1, "2000,", "1,"),
                    message(0),
                    "{}",
                    "",
                    "7",
                ]) {
                    const s = state()
                    s.restore(stored(body))
                    equal(numbers(s.policy()), OWN, body)
                }
            },
        },
        {
            name: "flash: the longest text fits",
            run: () => {
                const s = state()
                const most = "21600000"
                s.offer(
                    `{"issue":1073741824,"minMs":${most},"capMs":${most},"spreadMs":${most},"overloadCapMs":${most},"jitter":"proportional"}`,
                )
                const text = toStore(s, 0)
                equal(text.length <= FLEET_POLICY_MAX_BYTES, true, text)
                equal(text.length > 123, true, text)
            },
        },
    ]
}
