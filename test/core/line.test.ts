// Lines for any content: always strict JSON, ASCII, short, and read back; and nothing else is taken for one.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { cleanText, formatLine, Line, parseLine } from "../../src/core/line"
import { runCases } from "../node-cases"
import { cases } from "./line.cases"

runCases(cases())

const text = fc.oneof(
    fc.string({ maxLength: 100 }),
    fc.string({ unit: "binary", maxLength: 100 }),
    fc.string({ unit: fc.constantFrom('"', "\\", "\n", "x"), maxLength: 90 }),
)
const count = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const flag = fc.boolean()
const lane = fc.constantFrom("retry", "overload", "slow", "stop")
const evidence = fc.constantFrom(
    ...["refused", "silent", "stalled", "busy", "reset"],
)

/** The fields of a kind of line, and which of them may be left out. */
function kind(
    ev: Line["ev"],
    fields: Record<string, fc.Arbitrary<unknown>>,
    ...optional: string[]
) {
    const requiredKeys = Object.keys(fields).filter(k => !optional.includes(k))
    return {
        requiredKeys,
        arbitrary: fc
            .record(fields, { requiredKeys })
            .map(rest => ({ ev, ...rest }) as Line),
    }
}

/** Flags that are left out when they are false. */
const FLAGS: Partial<Record<Line["ev"], string>> = {
    link: "up",
    connected: "session",
    lost: "flap",
    retry: "proven",
}

const verdict = { lane, evidence, reason: text }
const kinds = [
    kind(
        "boot",
        {
            ...{ id: text, version: text, cause: text, upMs: count },
            ...{ starts: count, trips: count },
            verdict: fc.constantFrom("run", "held", "trial"),
        },
        ...["starts", "trips", "verdict"],
    ),
    kind("link", { up: flag, ip: text, why: text }, "up", "ip", "why"),
    kind("attempt", { n: count, host: text, port: count, proto: text }),
    kind("connected", { n: count, tookMs: count, session: flag }, "session"),
    kind("lost", { upMs: count, ...verdict, flap: flag }, "flap"),
    kind(
        "retry",
        {
            ...{ n: count, delayMs: count, ceilingMs: count },
            ...verdict,
            proven: flag,
        },
        "proven",
    ),
    kind("halt", { reason: text }),
    kind("held", { leftMs: count, reason: text, trips: count }),
    kind("reboot", { cause: text, reason: text }),
    kind(
        "drop",
        { what: text, topic: text, bytes: count, reason: text, dropped: count },
        "topic",
        "bytes",
    ),
    kind("config", { key: text, value: text, allowed: text, used: text }),
]
const anyLine = fc.oneof(...kinds.map(k => k.arbitrary))

test("any line: strict JSON, printable ASCII, at most 144 bytes, texts at most 40, read back the same", () => {
    fc.assert(
        fc.property(anyLine, count, (line, tMs) => {
            const printed = formatLine(line)
            assert.match(printed, /^[\x20-\x7e]{1,144}$/)
            assert.ok(printed.startsWith(`{"ev":"${line.ev}"`))
            const plain = JSON.parse(printed)
            for (const [key, value] of Object.entries(plain)) {
                const most = key === "allowed" ? 48 : 40
                if (typeof value === "string")
                    assert.ok(JSON.stringify(value).length <= most + 2, value)
            }
            const flag = FLAGS[line.ev]
            assert.deepEqual(parseLine(`# ${tMs} ${printed}`), {
                tMs,
                line: flag ? { [flag]: false, ...plain } : plain,
            })
        }),
        { numRuns: 3000, seed: 1 },
    )
})

test("text is what a character by character filter gives", () => {
    fc.assert(
        fc.property(text, given => {
            let expected = ""
            let room = 40
            for (const c of given) {
                const shown = /[\x20-\x7e]/.test(c) ? c : "?"
                room -= shown === '"' || shown === "\\" ? 2 : 1
                // A second half alone has no character, and no room either.
                if (/^[\udc00-\udfff]$/.test(c)) {
                    room++
                    continue
                }
                if (room < 0) break
                expected += shown
            }
            assert.equal(cleanText(given), expected)
        }),
        { numRuns: 5000, seed: 1 },
    )
})

test("a line that is cut, or has a byte changed, never throws", () => {
    fc.assert(
        fc.property(
            anyLine,
            fc.nat(165),
            fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
            (line, at, junk) => {
                const whole = `# 12 ${formatLine(line)}`
                if (at < whole.length)
                    assert.equal(parseLine(whole.slice(0, at)), undefined)
                parseLine(whole.slice(0, at) + junk + whole.slice(at + 1))
            },
        ),
        { numRuns: 3000, seed: 1 },
    )
})

test("any text is a line or undefined", () => {
    fc.assert(
        fc.property(
            fc.oneof(
                fc.string({ unit: "binary" }),
                fc.json().map(j => `# 1 ${j}`),
            ),
            given => assert.equal(parseLine(given), undefined),
        ),
        { numRuns: 2000, seed: 1 },
    )
})

test("every field that is not optional is missed, and every type is checked", () => {
    for (const { requiredKeys, arbitrary } of kinds) {
        const line = fc.sample(arbitrary, { numRuns: 1, seed: 1 })[0]
        const plain = JSON.parse(formatLine(line))
        for (const key of Object.keys(plain))
            for (const wrong of [null, [], {}, -1, 0.5, "1e9", 1e999, 7, true])
                if (typeof wrong !== typeof plain[key] || key === "ev")
                    assert.equal(
                        parseLine(
                            `# 1 ${JSON.stringify({ ...plain, [key]: wrong })}`,
                        ),
                        undefined,
                        `${line.ev}.${key} = ${JSON.stringify(wrong)}`,
                    )
        for (const key of [...requiredKeys, "ev"]) {
            const less = { ...plain }
            delete less[key]
            assert.equal(
                parseLine(`# 1 ${JSON.stringify(less)}`),
                undefined,
                `${line.ev} without ${key}`,
            )
        }
    }
    const infinite =
        '# 1 {"ev":"connected","n":1e999,"tookMs":1,"session":true}'
    assert.equal(parseLine(infinite), undefined)
})
