// Scripts that make sense in the lab and before a real broker alike: a timeline each, what the device has
// to say of it, and what the broker and other clients have to see of it. scripts.test.ts plays them on both stages.
//
// Nothing here measures how long something took, but for what may not come too early: a busy machine is
// late, not wrong.
import assert from "node:assert/strict"
import * as faults from "../../host/lab/faults"
import type { WireFault } from "../../host/lab/wire"
import type { Actor, Stage, StageSpec } from "./stages"

/** A play in one act. */
export interface Script extends Partial<StageSpec> {
    name: string
    run(stage: Stage, device: Actor): Promise<void>
}

/** Short waits; the last wait for CONNACK is for a busy machine. */
export const QUICK = {
    RETRY_MIN: 200,
    RETRY_CAP: 800,
    OVERLOAD_CAP: 800,
    STABLE: 300,
    TELEMETRY: 86400,
}

/** Half-open connections are noticed within these. */
const ALERT = { KEEP_ALIVE: 1, PING_WAIT: 1500 }

const NO_PINGRESP = "no PINGRESP in time"

// ---- what scripts are made of ----

const fails = (device: Actor) => device.said("retry").slice(1)

const untilFailed = (s: Stage, d: Actor, count: number) =>
    s.until(`${count} failures`, () => fails(d).length >= count)

const untilConnected = (s: Stage, d: Actor, count = 1) =>
    s.until(`connection ${count}`, () => d.said("connected").length >= count)

/** What the device's status topic has said. */
const statuses = (s: Stage) =>
    s.heard.filter(h => h.topic.endsWith("/status")).map(h => h.text)

const untilStatus = (s: Stage, text: string) =>
    s.until(`status ${text}`, () => statuses(s).at(-1) === text)

/** Its answers to one command. */
const answers = (s: Stage, command: string) =>
    s.heard
        .filter(h => h.topic.endsWith("/res"))
        .map(h => JSON.parse(h.text) as { cmd: string; ok: boolean })
        .filter(a => a.cmd === command)

/** Connected, and commands reach it: its SUBSCRIBE has got there too. */
async function untilServing(s: Stage, d: Actor, connections = 1) {
    await untilConnected(s, d, connections)
    const before = answers(s, "status").length
    let nextMs = 0
    await s.until("an answer", () => {
        if (s.nowMs() >= nextMs) {
            s.send(d, "status")
            nextMs = s.nowMs() + 500
        }
        return answers(s, "status").length > before
    })
}

/** Sends ten commands at once. @returns waits until each was answered, once */
function sendPings(s: Stage, d: Actor, qos: 0 | 1) {
    const before = answers(s, "ping").length
    for (let i = 0; i < 10; ++i) s.send(d, "ping", `${i}`, { qos })
    return async () => {
        const all = () => answers(s, "ping").slice(before)
        await s.until("ten answers", () => all().length >= 10)
        const answer = { cmd: "ping", ok: true }
        assert.deepEqual(all(), new Array(10).fill(answer))
    }
}

const tenPings = (s: Stage, d: Actor, qos: 0 | 1) => sendPings(s, d, qos)()

/** Ceilings double until they reach the cap. */
function assertDoubles(ceilings: number[], capMs: number) {
    for (let i = 1; i < ceilings.length; ++i) {
        const doubled = 2 * ceilings[i - 1]
        if (doubled <= 0.9 * capMs) assert.equal(ceilings[i], doubled)
        else assert.ok(ceilings[i] >= ceilings[i - 1], `${ceilings}`)
        assert.ok(ceilings[i] <= capMs, `${ceilings}`)
    }
}

// ---- the kinds ----

/** CONNACK does not come in time, once. */
const stalls = (name: string, fault: WireFault): Script => ({
    name,
    settings: { CONNACK_WAIT: 500 },
    async run(s, d) {
        const on = s.fault(fault)
        d.powerOn()
        await untilFailed(s, d, 1)
        on.off()
        await untilConnected(s, d)
        const [failed] = fails(d)
        assert.equal(failed.reason, "no CONNACK in time")
        assert.equal(failed.evidence, "stalled")
        assert.ok(failed.proven)
        // The broker had taken the first for a session: it dies with its will.
        await untilStatus(s, "online")
        assert.deepEqual(statuses(s), ["offline", "online"])
        assert.equal(s.accepted(), d.said("attempt").length)
    },
})

/** The connection ends before CONNACK is whole, four times; what the broker has accepted of that, if sure. */
const ends = (
    name: string,
    fault: WireFault,
    accepted?: "all" | "none",
): Script => ({
    name,
    async run(s, d) {
        const on = s.fault(fault)
        d.powerOn()
        await untilFailed(s, d, 4)
        const before = s.accepted()
        on.off()
        await untilServing(s, d)
        const failed = fails(d)
        for (const f of failed) {
            assert.equal(f.reason, "closed before CONNACK")
            assert.equal(f.evidence, "reset")
            assert.ok(f.proven)
        }
        assertDoubles(
            failed.map(f => f.ceilingMs),
            QUICK.OVERLOAD_CAP,
        )
        assert.equal(d.said("lost").length, 0)
        if (accepted === "none") assert.equal(before, 0)
        if (accepted === "all") assert.ok(before >= 4, `${before}`)
    },
})

/** The same session, however its bytes travel. */
const whole = (name: string, fault: WireFault): Script => ({
    name,
    async run(s, d) {
        s.fault(fault)
        d.powerOn()
        await untilServing(s, d)
        await tenPings(s, d, 0)
        await tenPings(s, d, 1)
        assert.equal(d.said("attempt").length, 1)
        assert.deepEqual(statuses(s), ["online"])
    },
})

/** For what MQTT 5 does otherwise; cases/mqtt5.test.ts has that. */
const MQTT_3 = { MQTT_VERSION: 3 }

/** Half-open in the middle of a session. */
const halfOpen = (
    name: string,
    fault: WireFault,
    settings: Record<string, number>,
    reason: string,
): Script => ({
    name,
    settings: { ...MQTT_3, ...settings },
    async run(s, d) {
        d.powerOn()
        await untilServing(s, d)
        const on = s.fault(fault)
        await s.until("loss", () => d.said("lost").length > 0)
        on.off()
        await untilServing(s, d, 2)
        const [lost] = d.said("lost")
        assert.equal(lost.reason, reason)
        assert.equal(statuses(s).at(-1), "online")
        await tenPings(s, d, 1)
    },
})

export const SCRIPTS: Script[] = [
    stalls("T1: CONNACK is withheld", faults.swallowToDevice()),
    stalls("T1: CONNACK trickles in too slowly", faults.trickle(400)),
    ends("T3: RST at once", faults.resetAfter(0)),
    ends("T3: FIN at once", faults.finAfter(0)),
    ends(
        "RST in the middle of CONNECT",
        faults.resetAfterBytesToBroker(9),
        "none",
    ),
    ends("RST in the middle of CONNACK", faults.resetAfterBytes(2), "all"),
    ends("FIN before the last byte of CONNACK", faults.finAfterBytes(3), "all"),
    whole("T5: every byte by itself, both ways", faults.split(1)),
    whole("T5: pieces of up to 40 bytes", faults.split(40)),
    whole(
        "T5: all that comes within 60 ms in one segment",
        faults.coalesce(60),
    ),
    whole("a slow and unsteady way", faults.latency(20, 80)),
    halfOpen("K1: silence both ways", faults.swallow(), ALERT, NO_PINGRESP),
    halfOpen(
        "K1: silence from the broker",
        faults.swallowToDevice(),
        ALERT,
        NO_PINGRESP,
    ),
    halfOpen(
        "K1: silence to the broker, who is the first to notice",
        faults.swallowToBroker(),
        { KEEP_ALIVE: 1 },
        "connection closed",
    ),
    {
        name: "T6: nobody listens, then somebody does",
        async run(s, d) {
            const on = s.fault(faults.refuse())
            d.powerOn()
            await untilFailed(s, d, 5)
            on.off()
            await untilServing(s, d)
            for (const f of fails(d)) {
                assert.equal(f.reason, "connection refused")
                assert.equal(f.proven, false)
                assert.ok(f.delayMs <= QUICK.RETRY_CAP)
            }
        },
    },
    {
        name: "B1: CONNACK 0 and then FIN, four times",
        async run(s, d) {
            const on = s.fault(faults.finAfterBytes(4))
            d.powerOn()
            await untilFailed(s, d, 4)
            on.off()
            await untilServing(s, d, d.said("connected").length + 1)
            const failed = fails(d)
            assert.deepEqual(
                failed.map(f => f.n),
                failed.map((_, i) => i + 1),
            )
            assertDoubles(
                failed.map(f => f.ceilingMs),
                QUICK.OVERLOAD_CAP,
            )
            for (const l of d.said("lost")) assert.ok(l.flap)
            assert.equal(s.accepted(), d.said("attempt").length)
        },
    },
    {
        name: "a partition too short to be noticed: nothing is lost",
        async run(s, d) {
            d.powerOn()
            await untilServing(s, d)
            const on = s.fault(faults.partition())
            const fromMs = s.nowMs()
            const answered = sendPings(s, d, 1)
            await s.until("a while", () => s.nowMs() > fromMs + 300)
            assert.equal(answers(s, "ping").length, 0)
            on.off()
            await answered()
            assert.equal(d.said("attempt").length, 1)
        },
    },
    {
        name: "a partition that both ends notice",
        settings: ALERT,
        async run(s, d) {
            d.powerOn()
            await untilServing(s, d)
            const on = s.fault(faults.partition())
            await s.until("loss", () => d.said("lost").length > 0)
            // One and a half keep alives, by the broker's own clock.
            await untilStatus(s, "offline")
            on.off()
            await untilServing(s, d, 2)
            assert.equal(d.said("lost")[0].reason, NO_PINGRESP)
            await untilStatus(s, "online")
            await tenPings(s, d, 1)
        },
    },
    {
        name: "H1: no password",
        closed: true,
        async run(s, d) {
            d.powerOn()
            await untilFailed(s, d, 1)
            const [failed] = fails(d)
            // Brokers choose between 4 and 5.
            assert.match(failed.reason, /not authorised|bad user name/)
            assert.equal(failed.lane, "slow")
            assert.equal(failed.proven, false)
            assert.ok(failed.delayMs >= 300_000)
            assert.equal(s.accepted(), 0)
        },
    },
    {
        name: "S5: retained messages of 20 and 200 kB, QoS 1, are skipped (an MQTT 5 broker does not send them)",
        settings: MQTT_3,
        async run(s, d) {
            const flags = { qos: 1, retain: true } as const
            s.send(d, "big", "x".repeat(20_000), flags)
            s.send(d, "huge", "x".repeat(200_000), flags)
            d.powerOn()
            await untilServing(s, d)
            await s.until("drop line", () => d.said("drop").length > 0)
            await tenPings(s, d, 1)
            const [drop] = d.said("drop")
            assert.equal(drop.reason, "larger than packet limit")
            assert.ok(drop.bytes! > 20_000)
            assert.equal(d.said("lost").length, 0)
        },
    },
    {
        name: "S7: another client takes the id, and the device takes it back (MQTT 5: only after minutes)",
        settings: MQTT_3,
        async run(s, d) {
            d.powerOn()
            await untilServing(s, d)
            await s.takeOver(`herdless-${d.id}`)
            await untilServing(s, d, 2)
            const [lost] = d.said("lost")
            assert.equal(lost.reason, "connection closed")
            await untilStatus(s, "online")
            assert.deepEqual(statuses(s), ["online", "offline", "online"])
        },
    },
    {
        name: "overload: four admissions a second for six devices",
        devices: 6,
        settings: { CONNACK_WAIT: 500 },
        async run(s) {
            const PER_SECOND = 4
            s.fault(faults.admitPerSecond(PER_SECOND))
            const startMs = s.nowMs()
            for (const d of s.devices) d.powerOn()
            await s.until("all connected", () => {
                const count = s.devices.filter(
                    d => d.said("connected").length,
                ).length
                const most = (PER_SECOND * (s.nowMs() - startMs)) / 1000 + 1
                assert.ok(count <= most, `${count} of ${most} admissions`)
                return count === s.devices.length
            })
            const failed = s.devices.flatMap(fails)
            assert.ok(failed.length > 0)
            for (const f of failed) {
                assert.equal(f.evidence, "stalled")
                assert.ok(f.proven)
            }
        },
    },
]
