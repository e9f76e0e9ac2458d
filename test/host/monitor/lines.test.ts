// From bytes to events: what a serial port brings, whole, in pieces, broken, hostile, and far too much.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import fc from "fast-check"
import {
    fromJson,
    toJson,
    type MonitorEvent,
} from "../../../host/monitor/event"
import { Listener } from "../../../host/monitor/listener"
import { MAX_LINES_PER_S } from "../../../host/monitor/meter"
import { LineSplitter, MAX_LINE_BYTES } from "../../../host/monitor/splitter"
import { formatLine, type Line } from "../../../src/core/line"

const RETRY: Line = {
    ev: "retry",
    n: 3,
    delayMs: 8345,
    ceilingMs: 8012,
    lane: "overload",
    evidence: "stalled",
    reason: "no CONNACK",
    proven: true,
}

/** One of each kind. */
const LINES: Line[] = [
    {
        ev: "boot",
        id: "1122334455667788",
        version: "0.1.0",
        cause: "power-on",
        upMs: 1160,
    },
    { ev: "link", up: true, ip: "10.0.0.2" },
    { ev: "attempt", n: 1, host: "broker.example", port: 1883, proto: "tcp" },
    { ev: "connected", n: 1, tookMs: 21, session: false },
    {
        ev: "lost",
        upMs: 10000,
        lane: "overload",
        evidence: "reset",
        reason: "connection closed",
        flap: false,
    },
    RETRY,
    { ev: "halt", reason: "told to stop" },
    { ev: "held", leftMs: 60000, reason: "5 starts in 120 s", trips: 1 },
    {
        ev: "drop",
        what: "outbox entry",
        topic: "a/b",
        bytes: 40,
        reason: "full",
        dropped: 7,
    },
    { ev: "config", key: "STABLE", value: "x", allowed: "0..", used: "10000" },
]

/** What a splitter makes of these pieces. */
function split(...pieces: (Uint8Array | string)[]) {
    const lines: string[] = []
    let noise = 0
    const splitter = new LineSplitter({
        line: text => lines.push(text),
        noise: bytes => (noise += bytes),
    })
    for (const piece of pieces) splitter.push(Buffer.from(piece))
    splitter.end("…")
    return { lines, noise }
}

describe("a serial port's bytes", () => {
    test("become lines, however they are cut into pieces", () => {
        const text = '# 12 {"a":1}\r\n> Grad °C 21\n\n* warn 日本\n'
        const whole = ['# 12 {"a":1}', "> Grad °C 21", "* warn 日本"]
        const bytes = Buffer.from(text)
        fc.assert(
            fc.property(
                fc.array(fc.nat(bytes.length), { maxLength: 6 }),
                cuts => {
                    const at = [0, ...cuts, bytes.length].sort((a, b) => a - b)
                    const pieces = at
                        .slice(1)
                        .map((to, i) => bytes.subarray(at[i], to))
                    assert.deepEqual(split(...pieces).lines, whole)
                },
            ),
            { seed: 1, numRuns: 200 },
        )
    })

    test("lose Jacdac frames that the runtime mixes into them", () => {
        const frame = [0xfe, 0xfc, 1, 0x0a, 0x41, 0xfe, 0xf8, 3, 0xfe, 0xfd]
        const bytes = Buffer.concat([
            Buffer.from("> he"),
            Buffer.from(frame),
            Buffer.from("llo\n"),
            Buffer.from([0xfe, 0xfb]),
            Buffer.from("> two\n"),
        ])
        assert.deepEqual(split(bytes).lines, ["> hello", "> two"])
        const single = [...bytes].map(byte => Uint8Array.of(byte))
        assert.deepEqual(split(...single).lines, ["> hello", "> two"])
    })

    test("a frame that never ends is noise, and lines come again after it", () => {
        const { lines, noise } = split(
            Uint8Array.of(0xfe, 0xfc),
            Buffer.alloc(301, 0x41),
            "\n> again\n",
        )
        assert.deepEqual(lines, ["> again"])
        assert.ok(noise > 250)
    })

    test("half a line at the end is shown as half a line", () => {
        assert.deepEqual(split('> whole\n# 12 {"ev":').lines, [
            "> whole",
            '# 12 {"ev":…',
        ])
    })

    test("a line that is too long is cut, and says by how much", () => {
        const { lines } = split("> " + "x".repeat(5000) + "\n> next\n")
        assert.equal(lines[0].slice(0, MAX_LINE_BYTES).length, MAX_LINE_BYTES)
        assert.match(lines[0], /x … 4002 bytes more$/)
        assert.equal(lines[1], "> next")
    })

    test("random bytes are noise, all of them, with or without line ends", () => {
        let seed = 7
        const random = () =>
            (seed = (seed * 1103515245 + 12345) % 2147483648) >> 16
        // No byte that begins a frame.
        const bytes = Buffer.alloc(20000).map(() => random() % 0xf0)
        const { lines, noise } = split(bytes)
        const shown = lines.reduce((sum, line) => sum + line.length, 0)
        assert.ok(noise > 18000, `${noise} of 20000`)
        assert.ok(shown < 500, `${shown} bytes shown as text`)
        const endless = bytes.map(byte => (byte === 10 ? 11 : byte))
        assert.equal(split(endless).noise, 20000)
    })

    test("nothing in a line can drive a terminal", () => {
        const hostile =
            "> \x1b[2J\x1b]0;title\x07\x9b31mred\x1b[0m a\u202eb\u2066c\u200bd\x00\x08e\tf\r\n"
        const { lines } = split(hostile)
        assert.equal(lines.length, 1)
        assert.doesNotMatch(lines[0], /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        assert.match(lines[0], /red.* abcde f$/)
    })
})

describe("what a listener tells", () => {
    function listen() {
        const events: MonitorEvent[] = []
        const listener = new Listener({ dev: "tty", tell: e => events.push(e) })
        return { events, listener }
    }

    test("every kind of line of the log, with the device's clock", () => {
        const { events, listener } = listen()
        for (const line of LINES)
            listener.line(`# 61234 ${formatLine(line)}`, 5)
        assert.deepEqual(
            events.map(e => e.line),
            LINES,
        )
        assert.ok(events.every(e => e.clockMs === 61234 && e.tMs === 5))
    })

    test("10 MB in a second are survived, cut and named", () => {
        const { events, listener } = listen()
        const line = `# 61234 ${formatLine(RETRY)}\n`
        const chunk = Buffer.from(line.repeat(400))
        const startMs = performance.now()
        let sent = 0
        for (let ms = 0; sent < 10_000_000; ms++, sent += chunk.length)
            listener.bytes(chunk, 1000 + ms)
        listener.tick(2001)
        const tookMs = performance.now() - startMs
        const flood = events.find(e => e.line.ev === "flood")!.line
        assert.ok(flood.ev === "flood")
        assert.equal(events.length, MAX_LINES_PER_S + 1)
        assert.equal(flood.bytes, sent)
        assert.equal(flood.dropped, sent / line.length - MAX_LINES_PER_S)
        assert.ok(tookMs < 5000, `${tookMs} ms for 10 MB`)
    })

    test("noise is told at once, then at most once a second, and all of it", () => {
        const { events, listener } = listen()
        for (let ms = 0; ms < 2500; ms += 10)
            listener.bytes(Buffer.from([0x80, 0, 0x90, 10]), ms)
        listener.closed("unplugged", 2500)
        const noise = events.flatMap(({ tMs, line }) =>
            line.ev === "noise" ? [{ tMs, bytes: line.bytes }] : [],
        )
        assert.deepEqual(
            noise.map(n => n.tMs),
            [0, 1000, 2000, 2500],
        )
        assert.equal(
            noise.reduce((sum, n) => sum + n.bytes, 0),
            750,
        )
    })
})

describe("the JSON form of an event", () => {
    const events: MonitorEvent[] = [
        ...LINES.map(line => ({ tMs: 1500, dev: "tty", clockMs: 61234, line })),
        { tMs: 1, dev: "tty", line: { ev: "port", open: true, reason: "x" } },
        {
            tMs: 1,
            dev: "tty",
            line: { ev: "text", text: '> "\\', at: "src/a.ts:1:2" },
        },
        { tMs: 1, dev: "tty", line: { ev: "noise", bytes: 3 } },
        { tMs: 1, dev: "tty", line: { ev: "flood", bytes: 3, dropped: 1 } },
    ]
    for (const event of events)
        test(`${event.line.ev} is read back as it was`, () => {
            assert.deepEqual(fromJson(toJson(event)), event)
        })

    test("a device can't say that it is another one, or that its port is gone", () => {
        const line = JSON.parse(
            '{"ev":"halt","reason":"x","t":9,"dev":"other","clock":7}',
        )
        const { tMs, dev, clockMs } = fromJson(
            toJson({ tMs: 1, dev: "tty", clockMs: 2, line }),
        )!
        assert.deepEqual([tMs, dev, clockMs], [1, "tty", 2])
        const { events, listener } = (() => {
            const events: MonitorEvent[] = []
            return {
                events,
                listener: new Listener({
                    dev: "tty",
                    tell: e => events.push(e),
                }),
            }
        })()
        listener.line('# 1 {"ev":"port","open":false,"reason":"x"}', 1)
        assert.equal(events[0].line.ev, "text")
    })

    test("anything else is none", () => {
        for (const text of [
            "",
            "x",
            "{",
            "null",
            "[1]",
            '{"t":-1,"dev":"a","ev":"halt","reason":"x"}',
            '{"t":1,"ev":"halt","reason":"x"}',
            '{"t":1,"dev":"a","ev":"halt"}',
            '{"t":1,"dev":"a","ev":"noise","bytes":1e400}',
            '{"t":1,"dev":"a","ev":"toString"}',
        ])
            assert.equal(fromJson(text), undefined, text)
    })
})
