// One device's view, as a timeline: what was heard, and what a person then sees on a terminal.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { createColors } from "picocolors"
import { Desk, MAX_DEVICES } from "../../../host/monitor/desk"
import {
    fromJson,
    toJson,
    type MonitorEvent,
} from "../../../host/monitor/event"
import { fit, picture } from "../../../host/monitor/picture"
import { RecordingReader } from "../../../host/monitor/recording"
import { Terminal } from "../../../host/monitor/terminal"
import { VirtualClock } from "../../../host/vm/clock"
import { strip } from "../../../host/monitor/strip"
import {
    MAX_HISTORY,
    MAX_TAIL,
    newView,
    statusOf,
    take,
    type DeviceView,
} from "../../../host/monitor/view"
import { formatLine, type Line } from "../../../src/core/line"

const ID = "1122334455667788"
const BOOT: Line = {
    ev: "boot",
    id: ID,
    version: "0.1.0",
    cause: "power-on",
    upMs: 1160,
}
const ATTEMPT: Line = {
    ev: "attempt",
    n: 1,
    host: "broker",
    port: 1883,
    proto: "tcp",
}
const CONNECTED: Line = { ev: "connected", n: 1, tookMs: 21, session: false }
const LOST: Line = {
    ev: "lost",
    upMs: 10000,
    lane: "overload",
    evidence: "reset",
    reason: "connection closed",
    flap: false,
}

function retry(
    n: number,
    delayMs: number,
    more: Partial<Line & { ev: "retry" }> = {},
): Line {
    return {
        ev: "retry",
        n,
        delayMs,
        ceilingMs: delayMs,
        lane: "retry",
        evidence: "refused",
        reason: "connection refused",
        proven: false,
        ...more,
    }
}

/** A device heard of step by step. */
class Story {
    view = newView("tty")

    at(tMs: number, line: MonitorEvent["line"]) {
        this.view = take(this.view, { tMs, dev: "tty", line })
        return this
    }

    text(tMs: number, text: string, at?: string) {
        return this.at(tMs, { ev: "text", text, ...(at && { at }) })
    }

    sees(nowMs: number): string {
        return `${this.view.state}: ${statusOf(this.view, nowMs)}`
    }
}

const plainColours = createColors(false)

function draw(view: DeviceView, nowMs: number, width = 80, height = 40) {
    return picture(view, {
        nowMs,
        width,
        height,
        colours: plainColours,
        baud: 115200,
    })
}

describe("what is known of a device", () => {
    test("an outage: lost, counting down, an attempt, back", () => {
        const story = new Story()
            .at(1000, BOOT)
            .at(1300, retry(0, 1200, { evidence: "none", reason: "start" }))
        assert.equal(story.sees(1300), "waiting: attempt 1 in 1.2 s")
        assert.equal(story.sees(2400), "waiting: attempt 1 in 100 ms")
        story.at(2500, ATTEMPT)
        assert.equal(story.sees(2600), "connecting: attempt 1, for 100 ms")
        story.at(2521, CONNECTED)
        assert.equal(story.sees(62521), "connected: for 1 min")
        story
            .at(70000, LOST)
            .at(
                70001,
                retry(0, 1400, { evidence: "reset", reason: LOST.reason }),
            )
        assert.equal(story.sees(70001), "waiting: attempt 1 in 1.4 s")
        story.at(71401, ATTEMPT).at(71403, retry(1, 2800))
        assert.equal(story.sees(72203), "waiting: attempt 2 in 2 s")
        assert.deepEqual(story.view.counters, {
            attempts: 2,
            connects: 1,
            losses: 1,
            flaps: 0,
            drops: 0,
            crashes: 0,
            starts: 1,
        })
        const rows = draw(story.view, 72203).join("\n")
        assert.match(rows, /1122334455667788 {2}on tty, program 0\.1\.0/)
        assert.match(rows, /because: connection refused \(1 failure in a row\)/)
        assert.match(rows, /█{9}░{21} of 2\.8 s/)
        assert.match(rows, /ceiling 2\.8 s/)
        assert.match(rows, /broker {6}tcp:\/\/broker:1883/)
        assert.match(
            rows,
            /last error {2}800 ms ago: attempt 1 failed: connection refused/,
        )
    })

    test("a device that says nothing when its wait is over is overdue", () => {
        const story = new Story().at(0, retry(1, 5000))
        assert.equal(story.sees(6500), "waiting: attempt 2 in 0 ms")
        assert.equal(story.sees(17000), "waiting: attempt 2 is overdue by 12 s")
    })

    test("overload, the slow lane, the restart limit and a stop say so", () => {
        const proven = new Story().at(
            0,
            retry(4, 90000, {
                lane: "overload",
                evidence: "stalled",
                proven: true,
            }),
        )
        assert.match(draw(proven.view, 0).join("\n"), /overload proven/)
        const slow = new Story().at(
            0,
            retry(1, 300000, { lane: "slow", reason: "not authorised" }),
        )
        assert.match(
            draw(slow.view, 0).join("\n"),
            /slow lane: a person or time/,
        )
        const held = new Story().at(0, {
            ev: "held",
            leftMs: 60000,
            reason: "5 starts",
            trips: 2,
        })
        assert.equal(held.sees(1000), "held: trial start in 59 s")
        const halted = new Story().at(0, { ev: "halt", reason: "stopped" })
        assert.match(halted.sees(1), /no more attempts/)
    })

    test("a crash shows its exception, its frames, and when the program starts again", () => {
        const story = new Story()
            .at(0, BOOT)
            .at(1, CONNECTED)
            .text(100, "* Exception: Error")
            .text(100, "*  message: too much")
            .text(100, "*  at inner_F2 (pc:19)", "src/app.ts:3:9")
            .text(100, "*  at main_F0 (pc:24)")
            .text(101, "! Unhandled exception")
            .text(102, "! Unhandled exception")
        assert.equal(story.sees(1101), "crashed: starts again in 4 s")
        assert.equal(story.view.counters.crashes, 1)
        assert.deepEqual(story.view.crash, {
            atMs: 100,
            reason: "Error: too much",
            frames: ["inner  src/app.ts:3:9", "main_F0 (pc:24)"],
        })
        assert.match(draw(story.view, 1101).join("\n"), /no build here fits/)
        story.at(5100, { ...BOOT, cause: "restart" })
        assert.equal(story.view.state, "starting")
        assert.equal(story.view.counters.starts, 2)
    })

    test("an exception that was caught and printed is no crash", () => {
        const story = new Story()
            .at(0, CONNECTED)
            .text(1, "* Exception: RangeError")
            .text(1, "*  at main_F0 (pc:19)")
        assert.equal(story.view.state, "connected")
        assert.equal(story.view.counters.crashes, 0)
    })

    test("unplugged and plugged in again; another board on the same port begins anew", () => {
        const story = new Story().at(0, BOOT).at(1, CONNECTED)
        story.at(5000, { ev: "port", open: false, reason: "unplugged" })
        assert.equal(story.sees(6000), "away: for 1 s: unplugged")
        story.at(7000, { ev: "port", open: true, reason: "tty at 115200 baud" })
        assert.equal(story.view.state, "unknown")
        story.at(8000, BOOT)
        assert.equal(story.view.counters.starts, 2)
        story.at(9000, { ...BOOT, id: "99" })
        assert.equal(story.view.counters.starts, 1)
        assert.equal(story.view.counters.connects, 0)
    })

    test("noise that goes on is called a wrong baud rate, until the log can be read", () => {
        const story = new Story().at(0, { ev: "noise", bytes: 300 })
        assert.doesNotMatch(draw(story.view, 0).join("\n"), /wrong baud/)
        story
            .at(1000, { ev: "noise", bytes: 300 })
            .at(2000, { ev: "noise", bytes: 300 })
        assert.match(
            draw(story.view, 0).join("\n"),
            /wrong baud rate\? 300 bytes that are no text, read at 115200 baud/,
        )
        story.at(3000, CONNECTED)
        assert.equal(story.view.trouble, undefined)
    })

    test("drops are summed over kinds, of which there may be any number", () => {
        const story = new Story()
        for (let i = 0; i < 50; ++i)
            story.at(i, {
                ev: "drop",
                what: `kind ${i}`,
                reason: "full",
                dropped: 1,
            })
        assert.ok(Object.keys(story.view.drops).length <= 9)
        story.at(60, { ev: "drop", what: "kind 0", reason: "full", dropped: 5 })
        assert.equal(story.view.drops["kind 0"], 5)
    })
})

describe("the history strip", () => {
    test("shows every attempt, and what lasted between them", () => {
        const { view } = new Story()
            .at(0, BOOT)
            .at(10_000, CONNECTED)
            .at(40_000, retry(1, 9000))
            .at(50_500, ATTEMPT)
            .at(50_510, retry(2, 9000))
        const cells = strip(view, 60_000, 6, 60_000)
        assert.deepEqual(cells, [
            "starting",
            "connected",
            "connected",
            "connected",
            "waiting",
            "connecting",
        ])
    })

    test("what is older than the window or the history is unknown", () => {
        const { view } = new Story().at(50_000, CONNECTED)
        assert.deepEqual(strip(view, 60_000, 3, 30_000), [
            "unknown",
            "unknown",
            "connected",
        ])
        assert.deepEqual(strip(view, 600_000, 2, 30_000), [
            "connected",
            "connected",
        ])
    })
})

/** A day of a device whose broker comes and goes, from a seed. */
function* aDay(): Generator<MonitorEvent> {
    let seed = 3
    const below = (n: number) =>
        (seed = (seed * 1103515245 + 12345) % 2147483648) % n
    const dev = "tty"
    let tMs = 0
    const DAY_MS = 86_400_000
    for (let n = 1; tMs < DAY_MS; ++n) {
        tMs += 1000 + below(3000)
        yield { tMs, dev, clockMs: tMs, line: { ...ATTEMPT, n } as Line }
        tMs += 20
        if (below(4))
            yield { tMs, dev, clockMs: tMs, line: retry(n, 1000 + below(3000)) }
        else {
            yield { tMs, dev, clockMs: tMs, line: CONNECTED }
            tMs += below(20_000)
            yield { tMs, dev, clockMs: tMs, line: LOST }
        }
        if (!below(50))
            yield {
                tMs,
                dev,
                clockMs: tMs,
                line: { ...BOOT, cause: `c${n}` } as Line,
            }
        if (!below(20))
            yield {
                tMs,
                dev,
                line: { ev: "text", text: `> ${"y".repeat(below(900))}` },
            }
        if (!below(40))
            yield {
                tMs,
                dev,
                clockMs: tMs,
                line: { ev: "drop", what: `w${n}`, reason: "full", dropped: n },
            }
    }
}

describe("a day of log", () => {
    test("is read in seconds, and the view does not grow", () => {
        let view = newView("tty")
        let count = 0
        const sizes: number[] = []
        const startMs = performance.now()
        for (const event of aDay()) {
            view = take(view, event)
            if (++count % 5000 === 0) sizes.push(JSON.stringify(view).length)
        }
        const tookMs = performance.now() - startMs
        assert.ok(count > 20_000, `${count} events`)
        assert.ok(tookMs < 5000, `${tookMs} ms`)
        assert.equal(view.history.length, MAX_HISTORY)
        assert.equal(view.tail.length, MAX_TAIL)
        assert.ok(Math.max(...sizes) < 30_000, `${Math.max(...sizes)} B`)
        assert.ok(Math.max(...sizes.slice(-3)) < 2 * sizes[0], `${sizes}`)
    })

    test("replays from its recording to the same picture", () => {
        const live = new Desk()
        const replayed = new Desk()
        const reader = new RecordingReader({
            dev: "file",
            tell: e => replayed.take(e),
        })
        let lastMs = 0
        for (const event of aDay()) {
            live.take(event)
            reader.push(Buffer.from(toJson(event) + "\n"))
            lastMs = event.tMs
            if (lastMs > 7_200_000) break
        }
        reader.end()
        const pictures = [live, replayed].map(desk =>
            draw(desk.views.get("tty")!, lastMs + 500).join("\n"),
        )
        assert.equal(pictures[1], pictures[0])
        assert.deepEqual(replayed.views.get("tty"), live.views.get("tty"))
    })

    test("a recording is known behind what npm says first, wherever the pieces end", () => {
        const events = [1, 2].map(tMs => ({ tMs, dev: "d1", line: CONNECTED }))
        const banner =
            "\n> devicescript-herdless@0.1.0 start\n> tsx host/start.ts --json\n\n"
        const bytes = Buffer.from(
            banner + events.map(e => toJson(e) + "\n").join(""),
        )
        for (const size of [1, banner.length, bytes.length]) {
            const heard: MonitorEvent[] = []
            const reader = new RecordingReader({
                dev: "stdin",
                nowMs: () => 0,
                tell: e => heard.push(e),
            })
            for (let at = 0; at < bytes.length; at += size)
                reader.push(bytes.subarray(at, at + size))
            reader.end()
            assert.deepEqual(heard, events, `in pieces of ${size} B`)
        }
    })

    test("a program's own `> ` lines are no banner; what looked like one is told at the end", () => {
        for (const [text, before] of [
            ["> hello\n", 1],
            ["> a@1 start\n", 0],
        ] as [string, number][]) {
            const heard: MonitorEvent[] = []
            const reader = new RecordingReader({
                dev: "stdin",
                nowMs: () => 0,
                tell: e => heard.push(e),
            })
            reader.push(Buffer.from(text))
            assert.equal(heard.length, before, text)
            reader.end()
            assert.deepEqual(
                heard.map(e => e.line),
                [{ ev: "text", text: text.trim() }],
            )
        }
    })

    test("raw text has the device's own time, over resets too", () => {
        const heard: MonitorEvent[] = []
        const reader = new RecordingReader({
            dev: "log.txt",
            tell: e => heard.push(e),
        })
        for (const [clockMs, line] of [
            [1200, BOOT],
            [9000, CONNECTED],
            [1300, BOOT],
            [5000, CONNECTED],
        ] as [number, Line][])
            reader.push(Buffer.from(`# ${clockMs} ${formatLine(line)}\n`))
        reader.end()
        assert.deepEqual(
            heard.map(e => e.tMs),
            [1200, 9000, 10300, 14000],
        )
    })

    test("a recording of more devices than are kept says how many events were left out", () => {
        const desk = new Desk()
        for (let i = 0; i < MAX_DEVICES + 3; ++i)
            desk.take({ tMs: 1, dev: `d${i}`, line: CONNECTED })
        assert.equal(desk.views.size, MAX_DEVICES)
        assert.equal(desk.ignored, 3)
    })
})

describe("a picture", () => {
    const hostile =
        "\x1b[2J\u202e\u0000‮日本語🐑e\u0301\u0301\u0301" + "x".repeat(400)
    const story = new Story()
        .at(0, { ...BOOT, id: hostile, version: hostile, cause: hostile })
        .at(1, { ev: "link", up: true, ip: hostile })
        .at(2, { ...ATTEMPT, host: hostile } as Line)
        .at(3, retry(1e15, 1e300, { reason: hostile, ceilingMs: 1e300 }))
        .at(4, {
            ev: "config",
            key: hostile,
            value: hostile,
            allowed: hostile,
            used: hostile,
        })
        .at(5, {
            ev: "drop",
            what: hostile,
            topic: hostile,
            reason: hostile,
            dropped: 1e300,
        })
        .text(6, `! Exception: ${hostile}`)
        .text(7, `!  at ${hostile}_F1 (pc:1)`, hostile)
        .text(8, `> ${hostile}`)

    for (const width of [20, 40, 80, 200])
        test(`of ${width} columns is never wider, and can't drive the terminal`, () => {
            for (const height of [1, 5, 24, 60]) {
                const rows = draw(story.view, 100, width, height)
                assert.ok(rows.length <= height)
                for (const row of rows) {
                    assert.doesNotMatch(row, /[\p{Cc}\p{Cf}\p{M}]/u)
                    let columns = 0
                    for (const c of row)
                        columns += /[日本語🐑]/u.test(c) ? 2 : 1
                    assert.ok(columns <= width, `${columns}: ${row}`)
                }
            }
        })

    test("has a screen of its own, waits for a slow terminal, and stays when it ends", () => {
        const clock = new VirtualClock()
        let wrote = ""
        const out = {
            columns: 40,
            rows: 10,
            writableNeedDrain: false,
            write: (text: string) => (wrote += text),
        }
        const heights = new Set<number>()
        const terminal = new Terminal(out, clock, (_width, height) => {
            heights.add(height)
            return [`now ${clock.nowMs()}`]
        })
        terminal.open()
        assert.ok(wrote.startsWith("\x1b[?1049h"))
        out.writableNeedDrain = true
        clock.runForSync(500)
        assert.doesNotMatch(wrote, /now [1-5]00/)
        out.writableNeedDrain = false
        clock.runForSync(100)
        assert.match(wrote, /now 600/)
        clock.runForSync(50)
        terminal.close()
        assert.match(wrote, /\x1b\[\?1049lnow 650\n$/)
        // The last picture leaves a row for the prompt, or its first would be gone.
        assert.deepEqual([...heights], [10, 9])
        const ended = wrote
        clock.runForSync(1000)
        assert.equal(wrote, ended)
    })

    test("wide characters count twice", () => {
        assert.equal(fit("日本語", 5), "日本")
        assert.equal(fit("abcdef", 4), "abc…")
    })

    test("the JSON form carries hostile text whole, and gives the same view", () => {
        const event: MonitorEvent = {
            tMs: 1,
            dev: "tty",
            line: { ev: "text", text: `> ${hostile}` },
        }
        const back = fromJson(toJson(event))!
        assert.deepEqual(
            take(newView("tty"), back),
            take(newView("tty"), event),
        )
    })
})
