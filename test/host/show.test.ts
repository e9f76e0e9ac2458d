// Every line of the log in words, and text that tries to drive the terminal.
import assert from "node:assert/strict"
import { describe as suite, test } from "node:test"
import fc from "fast-check"
import type { Line, RetryLine } from "../../src/core/line"
import { describe, plain, span } from "../../host/show"

const retry: RetryLine = {
    ev: "retry",
    n: 2,
    delayMs: 3210,
    ceilingMs: 3000,
    lane: "retry",
    evidence: "refused",
    reason: "connection refused",
    proven: false,
}

const table: [Line, string][] = [
    [
        {
            ev: "boot",
            id: "1122334455667788",
            version: "0.1.0",
            cause: "power-on",
            upMs: 1162,
            starts: 0,
            trips: 0,
            verdict: "run",
        },
        "program 0.1.0 started on 1122334455667788 after power-on, clock at 1.2 s",
    ],
    [
        {
            ev: "boot",
            id: "1122334455667788",
            version: "0.1.0",
            cause: "crash",
            upMs: 61000,
            starts: 3,
            trips: 1,
            verdict: "trial",
        },
        "program 0.1.0 started on 1122334455667788 after crash, clock at 1 min 1 s, 3 starts of its own doing lately, on trial after a hold",
    ],
    [{ ev: "link", up: true, ip: "10.0.0.2" }, "Wi-Fi up, address 10.0.0.2"],
    [{ ev: "link", up: false, why: "no address" }, "Wi-Fi down: no address"],
    [
        { ev: "attempt", n: 1, host: "broker", port: 1883, proto: "tcp" },
        "attempt 1: dialling tcp://broker:1883",
    ],
    [
        { ev: "connected", n: 3, tookMs: 27, session: false },
        "connected in 27 ms (attempt 3), new session",
    ],
    [
        { ev: "connected", n: 1, tookMs: 1000, session: true },
        "connected in 1 s (attempt 1), session resumed",
    ],
    [
        {
            ev: "lost",
            upMs: 12345,
            lane: "overload",
            evidence: "reset",
            reason: "connection closed",
            flap: false,
        },
        "connection lost after 12.3 s: connection closed",
    ],
    [
        {
            ev: "lost",
            upMs: 900,
            lane: "overload",
            evidence: "reset",
            reason: "connection closed",
            flap: true,
        },
        "connection lost after 900 ms: connection closed; too short to be stable, counts as a failed attempt",
    ],
    [
        retry,
        "retrying in 3.2 s after 2 failures: connection refused (nobody listens), ceiling 3 s",
    ],
    [
        {
            ...retry,
            n: 1,
            evidence: "silent",
            reason: "no TCP connection in time",
        },
        "retrying in 3.2 s after 1 failure: no TCP connection in time (nobody answers), ceiling 3 s",
    ],
    [
        {
            ...retry,
            evidence: "stalled",
            reason: "no CONNACK in time",
            proven: true,
        },
        "retrying in 3.2 s after 2 failures: no CONNACK in time (somebody is there but does not answer), ceiling 3 s, overload proven",
    ],
    [
        { ...retry, evidence: "busy", reason: "server unavailable" },
        "retrying in 3.2 s after 2 failures: server unavailable (the broker has too much to do), ceiling 3 s",
    ],
    [
        { ...retry, evidence: "reset", reason: "closed before CONNACK" },
        "retrying in 3.2 s after 2 failures: closed before CONNACK (the broker closes connections), ceiling 3 s",
    ],
    [
        { ...retry, lane: "slow", delayMs: 300000, reason: "not authorised" },
        "retrying in 5 min after 2 failures: not authorised, ceiling 3 s, slow lane: a person or time must cure it",
    ],
    [
        { ...retry, n: 0, evidence: "none", reason: "start" },
        "first attempt in 3.2 s: start, ceiling 3 s",
    ],
    [
        { ...retry, n: 0, evidence: "reset", reason: "connection closed" },
        "reconnecting in 3.2 s: connection closed, ceiling 3 s",
    ],
    [
        { ev: "halt", reason: "stopped" },
        "stopped, no more attempts until told to start: stopped",
    ],
    [
        { ev: "held", leftMs: 300000, reason: "5 crashes in 120 s", trips: 1 },
        "held off the network for 5 min more by the restart limit (trip 1): 5 crashes in 120 s",
    ],
    [
        { ev: "held", leftMs: 0, reason: "cleared by the button", trips: 1 },
        "the hold is over: cleared by the button",
    ],
    [
        { ev: "reboot", cause: "planned", reason: "the clock ends soon" },
        "reboots on purpose (planned): the clock ends soon",
    ],
    [
        {
            ev: "drop",
            what: "message in",
            topic: "a/b",
            bytes: 1,
            reason: "full",
            dropped: 7,
        },
        "dropped message in on a/b, 1 byte: full; 7 dropped so far",
    ],
    [
        { ev: "drop", what: "outbox entry", reason: "full", dropped: 1 },
        "dropped outbox entry: full; 1 dropped so far",
    ],
    [
        {
            ev: "config",
            key: "MQTT_PORT",
            value: "0",
            allowed: "1..65535",
            used: "1883",
        },
        "setting MQTT_PORT is 0, allowed 1..65535; using 1883",
    ],
]

suite("a line in words", () => {
    for (const [line, words] of table)
        test(words.slice(0, 70), () => assert.equal(describe(line), words))

    test("every kind of line is in the table", () => {
        const kinds = new Set(table.map(([line]) => line.ev))
        assert.equal(kinds.size, 11)
    })

    test("a reason with ESC, newline and bidi controls stays one harmless line", () => {
        const reason = "\x1b]0;owned\x07a\nb\r\x9b2Jc\u202ed\u2028e"
        assert.equal(
            describe({ ev: "halt", reason }),
            "stopped, no more attempts until told to start: ]0;owneda" +
                "b2Jcde",
        )
    })

    test("no text leaves a control character behind", () => {
        fc.assert(
            fc.property(fc.string({ unit: "binary" }), text => {
                for (const c of plain(text)) {
                    const code = c.codePointAt(0)!
                    assert.ok(code >= 0x20 && !(code >= 0x7f && code < 0xa0))
                }
            }),
        )
    })
})

suite("a time span in words", () => {
    const spans: [number, string][] = [
        [0, "0 ms"],
        [999, "999 ms"],
        [1000, "1 s"],
        [3249, "3.2 s"],
        [59949, "59.9 s"],
        [59950, "1 min"],
        [125000, "2 min 5 s"],
        [3599499, "59 min 59 s"],
        [3599500, "1 h"],
        [11040000, "3 h 4 min"],
        [86399999, "1 d"],
        [198000000, "2 d 7 h"],
    ]
    for (const [ms, words] of spans)
        test(`${ms} ms is ${words}`, () => assert.equal(span(ms), words))
})
