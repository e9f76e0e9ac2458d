// The public log: the shape of each line, what is cut from it, and what the host takes for one.
import {
    cleanText,
    formatLine,
    Line,
    parseLine,
    TimedLine,
} from "../../src/core/line"
import type { Evidence, Lane } from "../../src/core/verdict"
import { Case, equal } from "../cases"

const MAX = 0x7fffffff

/** What parseLine makes of a line that it must take. */
function read(text: string): TimedLine {
    const parsed = parseLine(text)
    if (parsed === undefined) throw new Error("not parsed: " + text)
    return parsed
}

/** A line is printed so, and read back as the same. */
function line(value: Line, text: string): Case {
    return {
        name: `${value.ev}: ${text}`,
        run: () => {
            equal(formatLine(value), text)
            const parsed = read("# 61234 " + text)
            equal(parsed.tMs, 61234, "tMs")
            equal(formatLine(parsed.line), text, "read back")
        },
    }
}

function clean(name: string, text: string, expected: string): Case {
    return { name, run: () => equal(cleanText(text), expected) }
}

function rejected(name: string, text: string): Case {
    return {
        name: `not a line: ${name}`,
        run: () => equal(parseLine(text), undefined),
    }
}

function repeat(text: string, count: number): string {
    let out = ""
    for (let i = 0; i < count; ++i) out += text
    return out
}

/** The longest line of a kind: no longer than 144 bytes, and read back. */
function longest(value: Line): Case {
    return {
        name: `the longest ${value.ev} line fits in 144 bytes`,
        run: () => {
            const text = formatLine(value)
            equal(text.length > 40, true, "has content")
            equal(text.length <= 144, true, `${text.length} bytes`)
            equal(read("# 4294967295 " + text).line.ev, value.ev)
        },
    }
}

function shapes(): Case[] {
    return [
        line(
            {
                ev: "boot",
                id: "a1b2c3d4e5f60718",
                version: "1.2.3",
                cause: "crash",
                upMs: 61160,
                starts: 2,
                trips: 1,
                verdict: "trial",
            },
            '{"ev":"boot","id":"a1b2c3d4e5f60718","version":"1.2.3","cause":"crash","upMs":61160,"starts":2,"trips":1,"verdict":"trial"}',
        ),
        line(
            {
                ev: "boot",
                id: "a1b2c3d4e5f60718",
                version: "1.2.3",
                cause: "power",
                upMs: 1160,
                starts: undefined,
            },
            '{"ev":"boot","id":"a1b2c3d4e5f60718","version":"1.2.3","cause":"power","upMs":1160}',
        ),
        line(
            { ev: "link", up: true, ip: "10.0.0.9" },
            '{"ev":"link","up":true,"ip":"10.0.0.9"}',
        ),
        line(
            { ev: "link", up: false, why: "no IP" },
            '{"ev":"link","why":"no IP"}',
        ),
        line(
            {
                ev: "attempt",
                n: 3,
                host: "mqtt.example",
                port: 8883,
                proto: "mqtts",
            },
            '{"ev":"attempt","n":3,"host":"mqtt.example","port":8883,"proto":"mqtts"}',
        ),
        line(
            { ev: "connected", n: 3, tookMs: 250, session: false },
            '{"ev":"connected","n":3,"tookMs":250}',
        ),
        line(
            {
                ev: "lost",
                upMs: 0,
                lane: "overload",
                evidence: "reset",
                reason: "connection closed",
                flap: true,
            },
            '{"ev":"lost","upMs":0,"lane":"overload","evidence":"reset","reason":"connection closed","flap":true}',
        ),
        line(
            {
                ev: "retry",
                n: 3,
                delayMs: 4321,
                ceilingMs: 4000,
                lane: "retry",
                evidence: "refused",
                reason: "connection refused",
                proven: false,
            },
            '{"ev":"retry","n":3,"delayMs":4321,"ceilingMs":4000,"lane":"retry","evidence":"refused","reason":"connection refused"}',
        ),
        line(
            { ev: "halt", reason: "attempts used up" },
            '{"ev":"halt","reason":"attempts used up"}',
        ),
        line(
            {
                ev: "held",
                leftMs: 60000,
                reason: "5 starts in 120 s",
                trips: 1,
            },
            '{"ev":"held","leftMs":60000,"reason":"5 starts in 120 s","trips":1}',
        ),
        line(
            {
                ev: "drop",
                what: "message in",
                topic: "a/b",
                bytes: 20480,
                reason: "packet too large",
                dropped: 7,
            },
            '{"ev":"drop","what":"message in","topic":"a/b","bytes":20480,"reason":"packet too large","dropped":7}',
        ),
        line(
            { ev: "drop", what: "outbox", reason: "full", dropped: 1 },
            '{"ev":"drop","what":"outbox","reason":"full","dropped":1}',
        ),
        line(
            {
                ev: "config",
                key: "cap_ms",
                value: "abc",
                allowed: "1000..3600000",
                used: "60000",
            },
            '{"ev":"config","key":"cap_ms","value":"abc","allowed":"1000..3600000","used":"60000"}',
        ),
        line(
            {
                ev: "retry",
                n: 12,
                delayMs: 21600000,
                ceilingMs: 21600000,
                lane: "overload",
                evidence: "stalled",
                reason: "no CONNACK from anybody here at all",
                proven: true,
            },
            '{"ev":"retry","n":12,"delayMs":21600000,"ceilingMs":21600000,"lane":"overload","evidence":"stalled","reason":"no CONNACK from an","proven":true}',
        ),
        {
            name: "what does not fit is cut from the longest text first",
            run: () =>
                equal(
                    formatLine({
                        ev: "config",
                        key: "FLEET_POLICY",
                        value: repeat("v", 40),
                        allowed: repeat("a", 48),
                        used: "issue 12",
                    }),
                    `{"ev":"config","key":"FLEET_POLICY","value":"${repeat("v", 40)}","allowed":"${repeat("a", 26)}","used":"issue 12"}`,
                ),
        },
        {
            name: "ev comes first, whatever the order of the fields",
            run: () =>
                equal(
                    formatLine({ reason: "x", ev: "halt" }),
                    '{"ev":"halt","reason":"x"}',
                ),
        },
    ]
}

function longests(): Case[] {
    // Quotes are the worst text there is: two bytes each.
    const worst = repeat('"', 300)
    const plain = repeat("x", 300)
    const n = MAX
    const verdict = {
        lane: "overload" as Lane,
        evidence: "refused" as Evidence,
    }
    const all: Case[] = []
    for (const t of [worst, plain]) {
        const lines: Line[] = [
            {
                ev: "boot",
                id: t,
                version: t,
                cause: t,
                upMs: n,
                starts: n,
                trips: n,
                verdict: "trial",
            },
            { ev: "link", up: false, ip: t, why: t },
            { ev: "attempt", n, host: t, port: 65535, proto: t },
            { ev: "connected", n, tookMs: n, session: false },
            { ev: "lost", upMs: n, ...verdict, reason: t, flap: false },
            {
                ev: "retry",
                n,
                delayMs: n,
                ceilingMs: n,
                ...verdict,
                reason: t,
                proven: false,
            },
            { ev: "halt", reason: t },
            { ev: "held", leftMs: n, reason: t, trips: n },
            { ev: "reboot", cause: t, reason: t },
            { ev: "drop", what: t, topic: t, bytes: n, reason: t, dropped: n },
            { ev: "config", key: t, value: t, allowed: t, used: t },
        ]
        for (const one of lines) all.push(longest(one))
    }
    return all
}

function texts(): Case[] {
    const forty = repeat("0123456789", 4)
    return [
        clean("text of 40 bytes stays", forty, forty),
        clean("text of 41 bytes is cut", forty + "x", forty),
        clean("an empty text stays", "", ""),
        clean("a line break cannot split a line", 'a\nb\r"', 'a?b?"'),
        clean(
            "ESC and DEL are no commands to a terminal",
            "\u001b[31mred\u007f",
            "?[31mred?",
        ),
        clean(
            "a letter with an accent is one question mark",
            "caf\u00e9!",
            "caf?!",
        ),
        clean(
            "an emoji is one question mark, in Node and on the device",
            "a\ud83d\ude00b",
            "a?b",
        ),
        clean("20 quotes fill a text", repeat('"', 21), repeat('"', 20)),
        clean(
            "a quote that would be cut in half is left out",
            repeat("x", 39) + '"',
            repeat("x", 39),
        ),
        clean(
            "a backslash takes two as well",
            repeat("\\", 30),
            repeat("\\", 20),
        ),
        clean("only what is bad is replaced", "\u0001ok\u0002", "?ok?"),
        {
            name: "a forged line in a reason stays text",
            run: () => {
                const text = formatLine({
                    ev: "halt",
                    reason: '"}\n# 1 {"ev":"halt"}',
                })
                equal(text.indexOf("\n"), -1, "line break")
                const parsed = read("# 5 " + text)
                equal(parsed.line.ev, "halt")
                equal((parsed.line as any).reason, '"}?# 1 {"ev":"halt"}')
            },
        },
    ]
}

function parsing(): Case[] {
    const halt = '{"ev":"halt","reason":"x"}'
    const retry =
        '{"ev":"retry","n":3,"delayMs":4321,"ceilingMs":4000,"lane":"retry","evidence":"refused","reason":"x","proven":false'
    return [
        {
            name: "the clock may be past 2^31, and 15 digits long",
            run: () => {
                equal(read("# 4294967295 " + halt).tMs, 4294967295)
                equal(read("# 999999999999999 " + halt).tMs, 999999999999999)
                equal(read("# 0 " + halt).tMs, 0)
            },
        },
        {
            name: "a line of a newer device may have more fields, and end in CR",
            run: () => {
                const parsed = read("# 7 " + retry + ',"colour":{"a":[1]}}\r')
                equal(parsed.line.ev, "retry")
                equal((parsed.line as any).delayMs, 4321)
            },
        },
        rejected("nothing", ""),
        rejected("a hash", "#"),
        rejected("a time alone", "# 12"),
        rejected("a time and a space", "# 12 "),
        rejected("no time", "#  " + halt),
        rejected("no hash", "12 " + halt),
        rejected("another prefix", "> 12 " + halt),
        rejected("two spaces", "#  12 " + halt),
        rejected("a negative time", "# -12 " + halt),
        rejected("a time with a fraction", "# 1.5 " + halt),
        rejected("a time of 16 digits", "# 1000000000000000 " + halt),
        rejected("JSON5, as console.data prints objects", '# 18 {a:1,s:"x",}'),
        rejected("JSON that is cut", "# 12 " + retry),
        rejected("JSON with a tail", "# 12 " + halt + " x"),
        rejected("an array", '# 12 ["halt"]'),
        rejected("null", "# 12 null"),
        rejected("no ev", "# 12 {}"),
        rejected("an ev that is not known", '# 12 {"ev":"nap","reason":"x"}'),
        rejected("an ev that is no text", '# 12 {"ev":3}'),
        rejected("a reason that is a number", '# 12 {"ev":"halt","reason":3}'),
        rejected("a reason that is missing", '# 12 {"ev":"halt"}'),
        rejected(
            "a count with a fraction",
            '# 12 {"ev":"connected","n":1.5,"tookMs":1,"session":true}',
        ),
        rejected(
            "a negative count",
            '# 12 {"ev":"connected","n":-1,"tookMs":1,"session":true}',
        ),
        rejected(
            "a count that is text",
            '# 12 {"ev":"connected","n":"1","tookMs":1,"session":true}',
        ),
        rejected(
            "a flag that is a number",
            '# 12 {"ev":"connected","n":1,"tookMs":1,"session":1}',
        ),
        rejected(
            "an optional field of another type",
            '# 12 {"ev":"link","up":true,"ip":5}',
        ),
        rejected(
            "a lane that is not known",
            '# 12 {"ev":"lost","upMs":1,"lane":"fast","evidence":"reset","reason":"x","flap":true}',
        ),
        rejected(
            "an evidence that is not known",
            '# 12 {"ev":"lost","upMs":1,"lane":"slow","evidence":"odd","reason":"x","flap":true}',
        ),
    ]
}

export function cases(): Case[] {
    return [...shapes(), ...longests(), ...texts(), ...parsing()]
}
