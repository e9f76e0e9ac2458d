// Each invariant of the soak can fail: a story in which all is well has no finding, and each small
// lie or misdeed in it has the one it deserves.
import assert from "node:assert/strict"
import { test } from "node:test"
import { formatLine, type Line } from "../../src/core/line"
import { defaultPolicy } from "../../src/core/policy"
import { encode, type Packet } from "../../host/lab/mqtt-wire"
import type { Part } from "../../host/soak/cast"
import { DeviceWatch } from "../../host/soak/device-watch"
import { INVARIANTS, type Invariant } from "../../host/soak/invariants"
import { UpkeepWatch } from "../../host/soak/upkeep-watch"

const PART: Part = {
    name: "d1",
    clientId: "c",
    spec: {},
    promises: { policy: defaultPolicy(), keepAliveMs: 60_000, pingMs: 10_000 },
    filters: ["in/#", "in/a"],
    isApp: true,
    inbox: "in",
    giant: "in/giant",
    topics: ["in/a"],
    outbox: "out",
    everyMs: 1000,
}

const CONNECT: Packet = {
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 4,
    clientId: "c",
    clean: true,
    keepalive: 60,
}
const SUBSCRIBE = (topic: string, messageId: number): Packet => ({
    cmd: "subscribe",
    messageId,
    subscriptions: [{ topic, qos: 0 }],
})
const CONNACK = Buffer.from([0x20, 2, 0, 0])

/** A device's life as the watch is told it; times are the device's and the world's alike. */
class Story {
    readonly findings: string[] = []
    readonly watch = new DeviceWatch(PART, (invariant, what) =>
        this.findings.push(`${invariant}: ${what}`),
    )
    private link = 0

    line(atMs: number, line: Line): this {
        this.watch.event(atMs, `# ${atMs} ${formatLine(line)}`)
        return this
    }
    event(atMs: number, what: string): this {
        this.watch.event(atMs, what)
        return this
    }
    wire(atMs: number, op: string, bytes?: Uint8Array): this {
        this.watch.wire(atMs, `#${this.link} ${op}`, bytes)
        return this
    }
    dial(atMs: number): this {
        this.link++
        return this.wire(atMs, "dial tcp broker:1883")
    }
    send(atMs: number, ...packets: Packet[]): this {
        for (const p of packets) this.wire(atMs, ">", encode(p))
        return this
    }
    look(atMs: number): this {
        this.watch.look(atMs)
        return this
    }

    // ---- chapters ----

    boot(atMs = 1000): this {
        return this.line(atMs, {
            ev: "boot",
            id: "0",
            version: "1",
            cause: "power-on",
            upMs: atMs,
        })
    }
    retry(atMs: number, more: Partial<Extract<Line, { ev: "retry" }>>): this {
        return this.line(atMs, {
            ev: "retry",
            n: 0,
            delayMs: 1500,
            ceilingMs: 1400,
            lane: "retry",
            evidence: "none",
            reason: "start",
            proven: false,
            ...more,
        })
    }
    held(atMs: number, leftMs: number): this {
        const reason = "restart burst"
        return this.line(atMs, { ev: "held", leftMs, reason, trips: 1 })
    }
    reboot(atMs: number, cause: string): this {
        this.line(atMs, { ev: "reboot", cause, reason: "" })
        return this.event(atMs, "reboot")
    }
    attempt(atMs: number, n = 1): this {
        return this.line(atMs, {
            ev: "attempt",
            n,
            host: "broker",
            port: 1883,
            proto: "tcp",
        })
    }
    /** Boots and dials at 2500. */
    dials(): this {
        return this.boot().retry(1000, {}).attempt(2500).dial(2500)
    }
    /** Is connected at 2520. */
    connects(): this {
        return this.dials()
            .wire(2510, "open")
            .send(2510, CONNECT)
            .wire(2520, "<", CONNACK)
            .says(2520)
            .send(2520, SUBSCRIBE("in/#", 1), SUBSCRIBE("in/a", 2))
    }
    says(atMs: number, n = 1): this {
        return this.line(atMs, {
            ev: "connected",
            n,
            tookMs: 20,
            session: false,
        })
    }
    lost(atMs: number, more: Partial<Extract<Line, { ev: "lost" }>>): this {
        return this.line(atMs, {
            ev: "lost",
            upMs: atMs - 2520,
            lane: "overload",
            evidence: "reset",
            reason: "connection closed",
            flap: false,
            ...more,
        })
    }
    /** The first ceiling, 1400, has become 5600. */
    silent(atMs: number, n: number, delayMs: number, ceilingMs = 5600): this {
        const reason = "connection refused"
        const evidence = "silent"
        this.wire(atMs, "error connect ECONNREFUSED")
        return this.retry(atMs, { n, delayMs, ceilingMs, evidence, reason })
    }
    refused(atMs: number, more: Partial<Extract<Line, { ev: "retry" }>>): this {
        return this.wire(atMs, "error connect ECONNREFUSED").retry(atMs, {
            n: 1,
            ceilingMs: 2800,
            delayMs: 2900,
            evidence: "refused",
            reason: "connection refused",
            ...more,
        })
    }
}

/** What a story is told, and which finding it must lead to; undefined: none. */
type Row = [
    name: string,
    invariant: Invariant | undefined,
    tell: (s: Story) => unknown,
]

/** A message to the application, printed by it. */
const rx = (s: Story, atMs: number, text: string) =>
    s.event(atMs, `> rx ${text}`)
const sent = { topic: "in/a", bytes: 10, qos: 0, retain: false }

const ROWS: Row[] = [
    ["a session that lasts", undefined, s => s.connects().look(30_000)],
    [
        "a loss, and back",
        undefined,
        s =>
            s
                .connects()
                .wire(30_000, "closed by peer")
                .lost(30_000, {})
                .retry(30_000, { evidence: "reset", reason: "closed" })
                .attempt(31_500)
                .dial(31_500),
    ],
    [
        "refused, then doubled",
        undefined,
        s => s.dials().refused(2510, {}).attempt(5410, 2).dial(5410),
    ],
    [
        "silence of 5 s: the wait counts from the start, and the ceiling stays for two more",
        undefined,
        s =>
            s
                .dials()
                .silent(7500, 1, 1100)
                .attempt(8600, 2)
                .dial(8600)
                .silent(13_600, 2, 1300)
                .attempt(14_900, 3)
                .dial(14_900)
                .silent(19_900, 3, 1000),
    ],
    [
        "silence of 5 s, and a wait that counts from its end",
        "gap",
        s => s.dials().silent(7500, 1, 5700),
    ],
    [
        "silence of 5 s twice, and the ceiling doubled",
        "ceiling",
        s =>
            s
                .dials()
                .silent(7500, 1, 1100)
                .attempt(8600, 2)
                .dial(8600)
                .silent(13_600, 2, 6300, 11_200),
    ],
    [
        "the soak's own crash",
        undefined,
        s => {
            s.connects().watch.upkeep.mayPanic()
            s.event(4000, "crash").event(4100, "panic 60102")
        },
    ],
    ["a panic", "no panic", s => s.connects().event(4000, "panic 60004")],
    [
        "two deaths of one crash",
        "no panic",
        s => {
            s.connects().watch.upkeep.mayPanic()
            s.event(4000, "panic 60102").event(9000, "panic 60102")
        },
    ],
    [
        "a reboot nobody asked for",
        "no reset",
        s => s.boot().event(4000, "reboot"),
    ],
    ["a restart", "no reset", s => s.boot().event(4000, "panic 0")],
    ["a VM that aborts", "no reset", s => s.boot().event(4000, "abort x")],
    [
        "a second dial while one is open",
        "one socket",
        s =>
            s
                .dials()
                .wire(2510, "open")
                .retry(2600, {
                    n: 1,
                    lane: "overload",
                    evidence: "reset",
                    delayMs: 2800,
                    ceilingMs: 2800,
                    proven: true,
                })
                .attempt(5400, 2)
                .dial(5400),
    ],
    [
        "a dial right after a close",
        "one socket",
        s =>
            s
                .dials()
                .wire(2510, "open")
                .wire(5390, "close")
                .retry(5390, {
                    n: 1,
                    lane: "overload",
                    evidence: "reset",
                    delayMs: 2900,
                    ceilingMs: 2800,
                    proven: true,
                })
                .dial(5400),
    ],
    [
        "SUBSCRIBE before CONNACK",
        "CONNECT first",
        s =>
            s
                .dials()
                .wire(2510, "open")
                .send(2510, CONNECT, SUBSCRIBE("in/a", 1)),
    ],
    [
        "no CONNECT at all",
        "CONNECT first",
        s => s.dials().wire(2510, "open").send(2510, { cmd: "pingreq" }),
    ],
    ["CONNECT twice", "CONNECT first", s => s.connects().send(3000, CONNECT)],
    [
        "a ping after DISCONNECT",
        "DISCONNECT last",
        s => s.connects().send(3000, { cmd: "disconnect" }, { cmd: "pingreq" }),
    ],
    [
        "bytes that are no MQTT",
        "standard",
        s => s.connects().wire(3000, ">", Buffer.from("ffffffffffff", "hex")),
    ],
    [
        "an attempt too early",
        "gap",
        s => s.boot().retry(1000, {}).attempt(2400),
    ],
    ["an attempt too late", "gap", s => s.boot().retry(1000, {}).attempt(3100)],
    ["no attempt at all", "gap", s => s.boot().retry(1000, {}).look(4000)],
    [
        "a wait above the ceiling and its tenth",
        "gap",
        s => s.boot().retry(1000, { delayMs: 1600 }),
    ],
    ["a wait of nothing", "gap", s => s.boot().retry(1000, { delayMs: 0 })],
    [
        "a slow lane that is not slow",
        "gap",
        s =>
            s.dials().refused(2510, {
                lane: "slow",
                ceilingMs: 400_000,
                delayMs: 2900,
                reason: "not authorised",
            }),
    ],
    [
        "a first ceiling beyond twice min",
        "ceiling",
        s => s.boot().retry(1000, { ceilingMs: 2100, delayMs: 2200 }),
    ],
    [
        "a ceiling that does not grow",
        "ceiling",
        s => s.dials().refused(2510, { ceilingMs: 1400, delayMs: 1500 }),
    ],
    [
        "overload proven by a refusal",
        "ceiling",
        s => s.dials().refused(2510, { proven: true }),
    ],
    [
        "the schedule's ceiling in the slow lane",
        "ceiling",
        s => s.dials().refused(2510, { lane: "slow", delayMs: 300_000 }),
    ],
    [
        "a flap that starts anew",
        "ceiling",
        s =>
            s
                .connects()
                .wire(5000, "closed by peer")
                .lost(5000, { flap: true })
                .retry(5000, { evidence: "reset" }),
    ],
    [
        "a flap that is called stable",
        "ceiling",
        s => s.connects().wire(5000, "closed by peer").lost(5000, {}),
    ],
    [
        "a stable session that goes on climbing",
        "ceiling",
        s =>
            s
                .connects()
                .wire(30_000, "closed by peer")
                .lost(30_000, {})
                .retry(30_000, {
                    n: 1,
                    evidence: "reset",
                    ceilingMs: 2800,
                    delayMs: 2900,
                    proven: true,
                }),
    ],
    [
        "two starts with the same waits",
        "apart",
        s => {
            for (const bootMs of [1000, 100_000]) {
                s.event(bootMs - 1, "power off").boot(bootMs)
                let atMs = bootMs
                for (let n = 0; n < 4; ++n) {
                    const ceilingMs = 1400 << n
                    const delayMs = ceilingMs + 100
                    const first = n === 0
                    s.retry(atMs, {
                        n,
                        ceilingMs,
                        delayMs,
                        evidence: first ? "none" : "refused",
                    })
                    atMs += delayMs
                    s.attempt(atMs, n + 1)
                        .dial(atMs)
                        .wire(atMs, "error x")
                }
            }
        },
    ],
    [
        "CONNACK waited for too briefly",
        "patience",
        s =>
            s
                .dials()
                .wire(2510, "open")
                .send(2510, CONNECT)
                .wire(7510, "close")
                .retry(7510, {
                    n: 1,
                    lane: "overload",
                    evidence: "stalled",
                    reason: "no CONNACK in time",
                    ceilingMs: 2800,
                    delayMs: 2900,
                    proven: true,
                }),
    ],
    [
        "CONNACK waited for without end",
        "patience",
        s => s.dials().wire(2510, "open").send(2510, CONNECT).look(13_000),
    ],
    ["TCP waited for without end", "patience", s => s.dials().look(33_000)],
    ["a silent peer that is kept", "silence", s => s.connects().look(73_000)],
    [
        "a peer left while it speaks",
        "silence",
        s =>
            s
                .connects()
                .wire(29_000, "<", Buffer.from([0xd0, 0]))
                .wire(30_000, "close")
                .lost(30_000, {
                    evidence: "silent",
                    reason: "no PINGRESP in time",
                }),
    ],
    [
        "it stops for good",
        "gives up",
        s => s.connects().line(3000, { ev: "halt", reason: "gave up" }),
    ],
    [
        "a hold, a trial, and a first wait",
        undefined,
        s =>
            s
                .boot()
                .held(1000, 300_000)
                .held(61_000, 240_000)
                .held(301_000, 0)
                .retry(301_000, {})
                .attempt(302_500)
                .dial(302_500),
    ],
    [
        "a hold that gets longer",
        "held",
        s => s.boot().held(1000, 300_000).held(61_000, 300_000),
    ],
    ["a hold without a start", "held", s => s.connects().held(3000, 300_000)],
    [
        "a dial during a hold",
        "line",
        s => s.boot().held(1000, 300_000).attempt(5000),
    ],
    [
        "a watchdog's reboot with no native stuck",
        "no reset",
        s => s.connects().reboot(13_000, "watchdog"),
    ],
    [
        "a watchdog's reboot because natives are stuck",
        undefined,
        s => {
            s.connects().watch.upkeep.mayStick(10_000)
            s.reboot(13_000, "watchdog")
        },
    ],
    ["a dial that no line announced", "line", s => s.boot().dial(2000)],
    [
        "a connection that ends without a line",
        "line",
        s => s.connects().wire(5000, "closed by peer").look(7000),
    ],
    ["connected without CONNACK", "line", s => s.dials().says(2600)],
    ["a loss of nothing", "line", s => s.dials().lost(2600, { upMs: 80 })],
    [
        "an attempt with the wrong number",
        "line",
        s => s.boot().retry(1000, {}).attempt(2500, 2),
    ],
    [
        "a line that is no JSON",
        "line",
        s => s.boot().event(1000, '# 1000 {"ev":"retry","n":1,'),
    ],
    [
        "a message for each handler that wants it",
        undefined,
        s => {
            s.connects().watch.sends(7, sent)
            rx(s, 3000, "0 --0 10 in/a m7")
            rx(s, 3000, "1 --0 10 in/a m7")
        },
    ],
    [
        "a message at a handler that does not want it",
        "delivery",
        s => {
            s.connects().watch.sends(7, { ...sent, topic: "in/b" })
            rx(s, 3000, "1 --0 10 in/b m7")
        },
    ],
    [
        "a message that was never sent",
        "delivery",
        s => rx(s.connects(), 3000, "0 --0 10 in/a m8"),
    ],
    [
        "a message that lost some bytes",
        "delivery",
        s => {
            s.connects().watch.sends(7, sent)
            rx(s, 3000, "0 --0 9 in/a m7")
        },
    ],
    [
        "a message twice at QoS 0",
        "twice",
        s => {
            s.connects().watch.sends(7, sent)
            rx(s, 3000, "0 --0 10 in/a m7")
            rx(s, 3001, "0 --0 10 in/a m7")
        },
    ],
    [
        "a message twice at QoS 1, with DUP",
        undefined,
        s => {
            s.connects().watch.sends(7, { ...sent, qos: 1 })
            rx(s, 3000, "0 --1 10 in/a m7")
            rx(s, 3001, "0 d-1 10 in/a m7")
        },
    ],
    [
        "a subscription made twice",
        "subscriptions",
        s => s.connects().send(3000, SUBSCRIBE("in/a", 3)),
    ],
    [
        "a subscription left out",
        "subscriptions",
        s =>
            s
                .dials()
                .wire(2510, "open")
                .send(2510, CONNECT)
                .wire(2520, "<", CONNACK)
                .says(2520)
                .send(2520, SUBSCRIBE("in/a", 2))
                .look(30_000),
    ],
    [
        "a heap that does not grow",
        undefined,
        s => {
            for (let ms = 0; ms < 10_000_000; ms += 10_000)
                s.watch.upkeep.look(ms, 20_000 + (ms % 7) * 1000, 8)
        },
    ],
    [
        "a heap that grows",
        "heap",
        s => {
            for (let ms = 0; ms < 10_000_000; ms += 10_000)
                s.watch.upkeep.look(ms, 20_000 + ms / 500, 8)
        },
    ],
    ["time that stands still", "no hang", s => s.watch.hangs("x")],
    ["fibers that pile up", "fibers", s => s.watch.upkeep.look(0, 1, 40)],
    [
        "a flash write every minute",
        "flash",
        s => {
            const upkeep = new UpkeepWatch((invariant, what) =>
                s.findings.push(`${invariant}: ${what}`),
            )
            upkeep.event(1000, "power on")
            for (let i = 0; i < 20; ++i) upkeep.event(60_000 * i, "flash")
        },
    ],
    [
        "a flash-backed outbox that writes every ten seconds",
        "flash",
        s => {
            s.boot()
            for (let i = 0; i < 150; ++i) s.event(10_000 * i, "flash")
        },
    ],
    [
        "a flash-backed outbox that writes 125 times in an outage, and then for years within its budget",
        undefined,
        s => {
            for (let i = 0; i < 125; ++i) s.event(10_000 * i, "flash")
            for (let i = 125; i < 1000; ++i) s.event(2_880_000 * i, "flash")
        },
    ],
    [
        "an attempt that fails in a healed world",
        "convergence",
        s => {
            s.boot().watch.healedMs = 2000
            s.retry(1000, {}).attempt(2500).dial(2500).refused(2510, {})
        },
    ],
]

for (const [name, invariant, tell] of ROWS)
    test(`${invariant ?? "fine"}: ${name}`, () => {
        const story = new Story()
        tell(story)
        if (invariant === undefined) assert.deepEqual(story.findings, [])
        else
            assert.match(
                story.findings[0] ?? "nothing found",
                new RegExp(`^${invariant}: `),
            )
    })

test("every invariant has a story in which it fails", () => {
    const told = new Set(ROWS.map(([, invariant]) => invariant))
    // outbound-watch.test.ts
    for (const i of ["once", "order", "flash outbox"] as const) told.add(i)
    const untold = Object.keys(INVARIANTS).filter(
        i => !told.has(i as Invariant),
    )
    assert.deepEqual(untold, [])
})
