// Runs the table of topic.cases.ts under Node; then compares with a plain, slow reading of the spec.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { checkTopicFilter, checkTopicName, matches } from "../../src/mqtt/topic"
import { runCases } from "../node-cases"
import { cases } from "./topic.cases"
import { filter, topicName } from "./arbitrary"

runCases(cases())

/** Section 4.7 level by level. */
function plainMatch(filterText: string, topic: string): boolean {
    const wanted = filterText.split("/")
    const levels = topic.split("/")
    if (topic[0] === "$" && (wanted[0] === "+" || wanted[0] === "#"))
        return false
    for (let i = 0; i < wanted.length; ++i) {
        if (wanted[i] === "#") return true
        if (i >= levels.length) return false
        if (wanted[i] !== "+" && wanted[i] !== levels[i]) return false
    }
    return wanted.length === levels.length
}

test("matching agrees with a level by level reading of the spec", () => {
    const topic = fc
        .array(fc.constantFrom("a", "b", "", "ü", "$s", "ab"), {
            minLength: 1,
            maxLength: 5,
        })
        .map(levels => levels.join("/"))
        .filter(t => t !== "")
    let hits = 0
    fc.assert(
        fc.property(filter, topic, (f, t) => {
            const expected = plainMatch(f, t)
            if (expected) ++hits
            assert.equal(matches(f, t), expected, `"${f}" ~ "${t}"`)
        }),
        { seed: 4, numRuns: 50000 },
    )
    assert.ok(hits > 2000, `only ${hits} matches were tried`)
})

test("checks of names and filters agree with regular expressions", () => {
    const wild = fc
        .array(fc.constantFrom("a", "/", "+", "#", "\u0000"), { maxLength: 6 })
        .map(c => c.join(""))
    fc.assert(
        fc.property(wild, text => {
            const noNul = !text.includes("\u0000") && text !== ""
            assert.equal(
                checkTopicName(text) === undefined,
                noNul && /^[^+#]*$/.test(text),
                `name "${text}"`,
            )
            assert.equal(
                checkTopicFilter(text) === undefined,
                noNul && /^(\+|[^+#/]*)(\/(\+|[^+#/]*))*(\/#)?$|^#$/.test(text),
                `filter "${text}"`,
            )
        }),
        { seed: 5, numRuns: 20000 },
    )
    fc.assert(
        fc.property(topicName, t => {
            assert.equal(checkTopicName(t), undefined)
            assert.equal(checkTopicFilter(t), undefined)
            assert.equal(matches(t, t), true)
            assert.equal(matches("#", t), t[0] !== "$")
        }),
        { seed: 6, numRuns: 2000 },
    )
})

test("65,535 bytes are allowed, one more is not, counted in UTF-8", () => {
    const max = "ü".repeat(32767) + "a"
    assert.equal(checkTopicName(max), undefined)
    assert.equal(checkTopicFilter(max), undefined)
    const over = /is 65536 bytes: at most 65535 \[MQTT-4.7.3-3\]/
    assert.match(String(checkTopicName(max + "b")), over)
    assert.match(String(checkTopicFilter(max + "b")), over)
})
