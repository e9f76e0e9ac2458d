// Verdicts are total, printable and consistent, over every input there is.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import { wordsOf } from "../../src/core/reason"
import { explainSocket } from "../../src/core/socket-text"
import {
    connackVerdict311,
    httpVerdict,
    reasonVerdict5,
    socketVerdict,
    Verdict,
} from "../../src/core/verdict"
import { runCases } from "../node-cases"
import { cases } from "./verdict.cases"

runCases(cases())

function assertSound(v: Verdict, what: string) {
    assert.match(wordsOf(v.reason), /^[\x20-\x7e]{1,40}$/, what)
    const overload = ["stalled", "busy", "reset"].includes(v.evidence)
    assert.equal(v.lane === "overload", overload, `${what}: lane and evidence`)
    assert.ok(["retry", "overload", "slow", "stop"].includes(v.lane), what)
    if (!overload) assert.ok(["refused", "silent"].includes(v.evidence), what)
}

test("nothing an MQTT broker sends leads to stop: all 256 codes, in CONNACK and DISCONNECT", () => {
    for (let code = 0; code < 256; ++code)
        for (const v of [
            connackVerdict311(code),
            reasonVerdict5(code, false),
            reasonVerdict5(code, true),
        ]) {
            assertSound(v, `code ${code}`)
            assert.notEqual(v.lane, "stop", `code ${code}`)
        }
})

test("exactly 0x88, 0x89, 0x97 and 0x9F are busy in MQTT 5, exactly 3 in 3.1.1", () => {
    const busy = (verdict: (code: number) => Verdict) => {
        const all = Array.from({ length: 256 }, (_, code) => code)
        return all.filter(code => verdict(code).evidence === "busy")
    }
    const five = [0x88, 0x89, 0x97, 0x9f]
    assert.deepEqual(
        busy(c => reasonVerdict5(c, false)),
        five,
    )
    assert.deepEqual(
        busy(c => reasonVerdict5(c, true)),
        five,
    )
    assert.deepEqual(busy(connackVerdict311), [3])
})

test("every HTTP status has a verdict, and only 429 and 503 are busy", () => {
    for (let status = -10; status < 1100; ++status) {
        const v = httpVerdict(status)
        assertSound(v, `status ${status}`)
        assert.equal(v.evidence === "busy", status === 429 || status === 503)
    }
})

test("every socket fault has a verdict whatever its text, and none is stop", () => {
    fc.assert(
        fc.property(
            fc.constantFrom("dial", "connack", "session"),
            fc.constantFrom("error", "closed", "timeout", "native"),
            fc.boolean(),
            fc.oneof(fc.string(), fc.string({ unit: "binary" })),
            (phase, what, tls, text) => {
                assertSound(socketVerdict(phase, what, tls), "the bare fact")
                const v = explainSocket(phase, what, tls, text)
                assertSound(v, `${phase} ${what}`)
                assert.notEqual(v.lane, "stop")
                if (phase !== "dial") assert.notEqual(v.lane, "slow")
            },
        ),
        { numRuns: 3000, seed: 1 },
    )
})

test("each verdict is the caller's own object", () => {
    assert.notEqual(connackVerdict311(3), connackVerdict311(3))
})
