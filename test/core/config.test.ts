// Runs the table of config.cases.ts under Node; then any text as a setting: never a throw, always a
// value that is allowed or the default, and a complaint that the host can read.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { choiceSetting, intSetting, textSetting } from "../../src/core/config"
import { formatLine, LINE_MAX_BYTES, parseLine } from "../../src/core/line"
import { runCases } from "../node-cases"
import { cases, Store } from "./config.cases"

runCases(cases())

const stored = fc.oneof(
    fc.string({ maxLength: 200 }),
    fc.json(),
    fc.string({ unit: "binary" }).map(s => JSON.stringify(s)),
    fc.double().map(String),
    fc.integer().map(n => JSON.stringify(String(n))),
)

/** Reads `raw` with one of the three functions; its complaint, if any, must be a line the host can read. */
function read<T>(raw: string, setting: (store: Store) => T): T {
    const store = new Store(raw)
    const value = setting(store)
    if (store.line) {
        const line = formatLine(store.line)
        assert.ok(line.length <= LINE_MAX_BYTES)
        assert.equal(parseLine(`# 1 ${line}`)?.line.ev, "config")
    }
    return value
}

test("any text under any key: an allowed value, or the default and a line the host can read", () => {
    fc.assert(
        fc.property(stored, raw => {
            const int = read(raw, s => intSetting(s, "K", 0, 65535, -1))
            assert.ok(Number.isInteger(int) && int >= -1 && int <= 65535)
            const text = read(raw, s => textSetting(s, "K", 1, 20, undefined))
            assert.ok(
                text === undefined || (text.length >= 1 && text.length <= 20),
            )
            const word = read(raw, s => choiceSetting(s, "K", ["a", "b"], "b"))
            assert.ok(word === "a" || word === "b")
        }),
        { numRuns: 2000 },
    )
})
