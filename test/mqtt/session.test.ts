// Runs the table of session.cases.ts under Node; then a random broker, whose packets mqtt-packet makes,
// cut anywhere, in any order, at any time; mqtt-packet also reads what the session says.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import mqttPacket from "mqtt-packet"
import type { Reason } from "../../src/core/reason"
import type { Subscription } from "../../src/mqtt/session"
import { runCases } from "../node-cases"
import { filter, topicName } from "./arbitrary"
import { cases, defaultOptions, World } from "./session.cases"

runCases(cases())

/** A SUBSCRIBE or UNSUBSCRIBE that the broker has and has not answered. */
interface Request {
    cmd: "subscribe" | "unsubscribe"
    id: number
    filter: string
    sentMs: number
}

function bytesOf(packet: object): Buffer {
    return mqttPacket.generate(packet as mqttPacket.Packet)
}

/** A world whose session is checked at each packet and each news. */
class StrictWorld extends World {
    /** What the broker has to answer on this connection. */
    requests: Request[] = []
    /** Filters this connection was asked for, by subscription. */
    asked = new Map<string, number>()
    /** Subscriptions that were settled on this connection. */
    settledNow = new Set<Subscription>()
    /** Unsubscribe calls that were not answered yet. */
    leaving: Subscription[] = []
    private reader = mqttPacket.parser()
    private isFirst = true
    /** The broker has sent bytes that mean anything, so what follows them may too. */
    isGarbled = false

    constructor() {
        super({
            ...defaultOptions(),
            birth: { topic: "s", payload: "on", retain: true },
        })
        this.reader.on("packet", packet => this.reads(packet))
    }

    override send(packet: Buffer) {
        this.reader.parse(packet)
        return super.send(packet)
    }

    private reads(p: mqttPacket.Packet) {
        assert.equal(p.cmd === "connect", this.isFirst, "CONNECT comes first")
        this.isFirst = false
        if (p.cmd !== "subscribe" && p.cmd !== "unsubscribe") return
        this.forget()
        const id = p.messageId as number
        assert.ok(id >= 1 && id <= 65535)
        assert.ok(!this.requests.some(r => r.id === id), `id ${id} is in use`)
        const filter =
            p.cmd === "subscribe"
                ? p.subscriptions[0].topic
                : p.unsubscriptions[0]
        this.requests.push({ cmd: p.cmd, id, filter, sentMs: this.nowMs })
        if (p.cmd === "unsubscribe") {
            assert.ok(!wanted(this).some(s => s.topicFilter === filter))
            return
        }
        this.asked.set(filter, (this.asked.get(filter) ?? 0) + 1)
        // Not one that was dropped since: what is waited for is its UNSUBACK, which a broker may send first.
        const { subscriptions } = this.session
        const waiting = this.requests.filter(
            r =>
                r.cmd === "subscribe" &&
                subscriptions.some(s => s.packetId === r.id),
        )
        assert.ok(waiting.length <= 4, "the window")
    }

    override settled(s: Subscription) {
        super.settled(s)
        assert.ok(!this.settledNow.has(s), `${s.topicFilter} settled twice`)
        this.settledNow.add(s)
    }

    override unsubscribed(s: Subscription) {
        super.unsubscribed(s)
        const at = this.leaving.indexOf(s)
        assert.ok(at >= 0, `${s.topicFilter} told twice`)
        this.leaving.splice(at, 1)
    }

    override deliver(s: Subscription, m: Parameters<World["deliver"]>[1]) {
        super.deliver(s, m)
        assert.ok(this.session.subscriptions.includes(s), "dropped")
        assert.notEqual(s.state, "refused")
    }

    override violation(reason: Reason) {
        super.violation(reason)
        this.begin()
    }
    override silent() {
        super.silent()
        this.begin()
    }

    override unsubscribe(s: Subscription) {
        this.leaving.push(s)
        super.unsubscribe(s)
    }

    /** A new connection. */
    begin() {
        this.session.close()
        this.watch()
        assert.deepEqual(this.leaving, [], "told when the connection is gone")
        this.requests = []
        this.asked.clear()
        this.settledNow.clear()
        this.reader = mqttPacket.parser()
        this.reader.on("packet", packet => this.reads(packet))
        this.isFirst = true
        this.isGarbled = false
        for (const s of this.session.subscriptions) assert.equal(s.state, "new")
        this.session.open(this.nowMs)
    }

    /** The broker's answer to one of its requests, which then has none any more. */
    answer(which: number, code: number): Buffer {
        if (this.requests.length === 0) return bytesOf({ cmd: "pingresp" })
        const [r] = this.requests.splice(which % this.requests.length, 1)
        return r.cmd === "subscribe"
            ? bytesOf({ cmd: "suback", messageId: r.id, granted: [code] })
            : bytesOf({ cmd: "unsuback", messageId: r.id, granted: [] })
    }

    override runTo(untilMs: number) {
        super.runTo(untilMs)
        this.forget()
    }

    /** What the session has given up, the broker does not answer any more: its identifier is free. */
    private forget() {
        const { pingMs } = defaultOptions()
        const { requests, nowMs } = this
        this.requests = requests.filter(r => r.sentMs + pingMs > nowMs)
    }

    /** Bytes from the broker, cut at `cut`, and the second part a little later. */
    hearsCut(bytes: Buffer, cut: number) {
        const at = cut % (bytes.length + 1)
        this.hears(bytes.subarray(0, at))
        this.nowMs += 3
        this.hears(bytes.subarray(at))
    }
}

type Step =
    | { do: "answer"; which: number; code: number; cut: number }
    | { do: "subscribe"; filter: string }
    | { do: "unsubscribe"; which: number }
    | { do: "publish"; topic: string; id: number; cut: number }
    | { do: "large"; id: number; cut: number }
    | { do: "pass"; ms: number }
    | { do: "rude"; bytes: Buffer }
    | { do: "garbage"; bytes: Buffer }
    | { do: "lost" }

const cut = fc.nat(40)
const step: fc.Arbitrary<Step> = fc.oneof(
    {
        weight: 6,
        arbitrary: fc.record({
            do: fc.constant("answer" as const),
            which: fc.nat(9),
            code: fc.constantFrom(0, 1, 0x80),
            cut,
        }),
    },
    {
        weight: 4,
        arbitrary: fc.record({ do: fc.constant("subscribe" as const), filter }),
    },
    {
        weight: 3,
        arbitrary: fc.record({
            do: fc.constant("unsubscribe" as const),
            which: fc.nat(9),
        }),
    },
    {
        weight: 3,
        arbitrary: fc.record({
            do: fc.constant("publish" as const),
            topic: topicName,
            id: fc.nat(65535),
            cut,
        }),
    },
    {
        weight: 1,
        arbitrary: fc.record({
            do: fc.constant("large" as const),
            id: fc.nat(65535),
            cut: fc.nat(400),
        }),
    },
    {
        weight: 2,
        arbitrary: fc.record({
            do: fc.constant("pass" as const),
            ms: fc.oneof(fc.nat(500), fc.nat(30_000)),
        }),
    },
    {
        weight: 1,
        arbitrary: fc.record({
            do: fc.constant("rude" as const),
            bytes: fc.oneof(
                fc.constant(bytesOf({ cmd: "pingresp" })),
                fc.constant(bytesOf({ cmd: "puback", messageId: 7 })),
                fc
                    .integer({ min: 60_000, max: 65_535 })
                    .map(id =>
                        bytesOf({ cmd: "suback", messageId: id, granted: [0] }),
                    ),
                fc.constant(
                    bytesOf({
                        cmd: "connack",
                        returnCode: 0,
                        sessionPresent: false,
                    }),
                ),
            ),
        }),
    },
    {
        weight: 1,
        arbitrary: fc.record({
            do: fc.constant("garbage" as const),
            bytes: fc.uint8Array({ maxLength: 20 }).map(b => Buffer.from(b)),
        }),
    },
    { weight: 1, arbitrary: fc.constant<Step>({ do: "lost" }) },
)

/** Subscriptions that were not dropped. */
function wanted(w: World): Subscription[] {
    return w.session.subscriptions.filter(s => s.state !== "dropped")
}

function perform(w: StrictWorld, s: Step) {
    const subscriptions = wanted(w)
    switch (s.do) {
        case "answer":
            return w.hearsCut(w.answer(s.which, s.code), s.cut)
        case "subscribe":
            w.subscribe(s.filter)
            return
        case "unsubscribe":
            if (subscriptions.length > 0)
                w.unsubscribe(subscriptions[s.which % subscriptions.length])
            return
        case "publish":
        case "large": {
            const topic = s.do === "large" ? "a/large" : s.topic
            const qos = s.id > 0 ? 1 : 0
            const payload = "x".repeat(s.do === "large" ? 300 : 3)
            w.did()
            w.hearsCut(
                bytesOf({
                    cmd: "publish",
                    topic,
                    payload,
                    qos,
                    messageId: s.id,
                    dup: false,
                    retain: false,
                }),
                s.cut,
            )
            // Where the session is up, a QoS 1 message is acked whatever else happens to it.
            if (qos === 1 && w.session.up && !w.isGarbled)
                assert.ok(w.did().startsWith(`PUBACK ${s.id}`))
            return
        }
        case "pass":
            return w.runTo(w.nowMs + s.ms)
        case "garbage":
            w.isGarbled = true
            return w.hears(s.bytes)
        case "rude":
            return w.hears(s.bytes)
        case "lost":
            return w.begin()
    }
}

test("a random broker: no throw, no identifier used twice, everyone is told once", () => {
    fc.assert(
        fc.property(
            fc.array(step, { maxLength: 60 }),
            fc.integer({ min: 65_500, max: 65_535 }),
            (steps, lastPacketId) => {
                const w = new StrictWorld()
                Object.assign(w.session, { lastPacketId })
                w.begin()
                for (const s of steps) {
                    if (!w.session.up)
                        w.hears(
                            bytesOf({
                                cmd: "connack",
                                returnCode: 0,
                                sessionPresent: false,
                            }),
                        )
                    perform(w, s)
                }

                // A fresh connection with a broker that answers everything: all is as it was asked for.
                w.begin()
                w.hearsHex("20020000")
                w.did()
                while (w.requests.length > 0) w.hears(w.answer(0, 0))
                const { subscriptions } = w.session
                for (const s of subscriptions) assert.equal(s.state, "live")
                assert.equal(w.settledNow.size, subscriptions.length)
                const filters = new Map<string, number>()
                for (const s of subscriptions)
                    filters.set(
                        s.topicFilter,
                        (filters.get(s.topicFilter) ?? 0) + 1,
                    )
                assert.deepEqual(w.asked, filters, "each asked for once")
                assert.deepEqual(w.leaving, [])
            },
        ),
        { numRuns: 1000 },
    )
})
