// Requests over MQTT, on the bytecode: answers, errors that waiting can cure and that it can't, silence, outages, deadlines
// and the retry budget.
import assert from "node:assert/strict"
import { test } from "node:test"
import type { Conn, Play } from "../../../host/lab/scripted-broker"
import { withApp, type AppBench, type AppSpec } from "./app"

const asking = (count: number, options: object = {}): AppSpec => ({
    scene: ["requests", count, options],
})

/** A responder: what it says to the n-th message of a request; undefined is nothing. */
function responder(
    say: (n: number, payload: string) => number | undefined,
    delayMs = 10,
): Play {
    const seen = new Map<string, number>()
    return {
        publish(c: Conn, p) {
            const m =
                /^svc\/[0-9a-f]{16}\/([0-9a-f]{16}-[0-9a-f]{16}-\d+)$/.exec(
                    p.topic,
                )
            assert.ok(m, p.topic)
            const n = (seen.get(m[1]) ?? 0) + 1
            seen.set(m[1], n)
            const status = say(n, p.payload.toString())
            if (status !== undefined)
                c.after(delayMs, () =>
                    c.publish(`${p.topic}/${status}`, `a${n}`),
                )
        },
    }
}

/** The first answers, without their times. */
async function answers({ prints, untilPrint }: AppBench, count: number) {
    await untilPrint("answer", count, 600_000)
    return prints("answer").map(
        ({ ok, status, attempts, reason, text }) =>
            `${ok ? "ok" : "failed"} ${status} ${attempts} ${reason || text}`,
    )
}

test("an answer at the first try; keys of their own; one subscription for all", async () => {
    await withApp(asking(3), async bench => {
        bench.broker.always(responder(() => 200))
        assert.deepEqual(await answers(bench, 3), Array(3).fill("ok 200 1 a1"))
        const { broker } = bench
        assert.equal(broker.sent("subscribe").length, 2)
        const topics = broker.sent("publish").map(r => r.packet.topic)
        assert.equal(new Set(topics).size, 3)
    })
})

test("503 twice, then 200: the same key at each try, and waits between", async () => {
    await withApp(asking(1), async bench => {
        bench.broker.always(responder(n => (n < 3 ? 503 : 201)))
        assert.deepEqual(await answers(bench, 1), ["ok 201 3 a3"])
        const sent = bench.broker.sent("publish")
        assert.equal(new Set(sent.map(r => r.packet.topic)).size, 1)
        assert.ok(sent[1].atMs - sent[0].atMs >= 1000)
        assert.ok(sent[2].atMs - sent[1].atMs >= 2000)
    })
})

test("404 is not tried again; a status that is none counts as a failure to retry", async () => {
    await withApp(asking(2, { attempts: 2 }), async bench => {
        bench.broker.always(responder((_, q) => (q === "q0" ? 404 : 7)))
        assert.deepEqual(await answers(bench, 2), [
            "failed 404 1 404 request rejected, not retried",
            "failed 0 2 0 not an HTTP status, given up",
        ])
    })
})

test("silence: five tries of 5 s and no more, then why and how often", async () => {
    await withApp(asking(1, { deadlineMs: 600_000 }), async bench => {
        bench.broker.always(responder(() => undefined))
        assert.deepEqual(await answers(bench, 1), [
            "failed 0 5 no answer in time, given up",
        ])
        await bench.world.run(120_000)
        assert.equal(bench.broker.sent("publish").length, 5)
    })
})

test("an answer that comes during the wait after its try counts", async () => {
    await withApp(asking(1, { timeoutMs: 1000 }), async bench => {
        bench.broker.always(responder(() => 200, 1400))
        assert.deepEqual(await answers(bench, 1), ["ok 200 1 a1"])
    })
})

test("the deadline ends it, connected or not; nothing asked in an outage is sent afterwards", async () => {
    await withApp(asking(2, { deadlineMs: 12_000 }), async bench => {
        const { broker, prints, world } = bench
        broker.always(responder(() => undefined))
        const [first] = await answers(bench, 1)
        assert.match(first, /^failed 0 [12] no answer in time, no time left$/)
        const asked = broker.sent("publish").length
        broker.down()
        await answers(bench, 2)
        const [one, two] = prints("answer")
        assert.ok(one.tookMs >= 12_000 && one.tookMs < 12_500, `${one.tookMs}`)
        assert.ok(two.tookMs >= 12_000 && two.tookMs < 12_500, `${two.tookMs}`)
        assert.match(two.reason, /^no (connection|answer)/)
        broker.up()
        await world.run(120_000)
        assert.ok(broker.sent("publish").length <= asked + 1)
    })
})

test("the retry budget: a service that is down for 20 requests gets ten retries and one for each five requests", async () => {
    const options = { timeoutMs: 100, deadlineMs: 60_000 }
    await withApp(asking(20, options), async bench => {
        bench.broker.always(responder(() => undefined))
        const all = await answers(bench, 20)
        assert.equal(bench.broker.sent("publish").length, 20 + 10 + 3)
        assert.match(all[19], /retry budget used up$/)
    })
})

test("within a handler it fails at once, for its answer's handler could never run", async () => {
    await withApp(asking(0), async bench => {
        const { broker, untilPrint, world } = bench
        await world.until("connected", 10_000)
        await world.run(1000)
        broker.latest.publish("do/ask", "")
        const { reason } = await untilPrint("answer", 1, 1000)
        assert.equal(reason, "refused: called from a handler")
    })
})
