// HTTP beside MQTT on the one socket, on the bytecode: MQTT says goodbye, waits, and comes back; what is tried again and what not.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as faults from "../../../host/lab/faults"
import type { Peer } from "../../../host/lab/link"
import { printsOf, type Print } from "./app"
import { onBench, type Bench } from "./bench"

/** What the web server does with the n-th request; text is the answer, undefined silence. */
type Serve = (n: number, head: string, peer: Peer) => string | undefined

const answer = (status: string, body = "", more = "") =>
    `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`

interface Web extends Bench {
    /** The head of each request, and when it came. */
    requests: { atMs: number; head: string }[]
    /** The outcome of the n-th call, from 1. */
    outcome(n: number): Promise<Print>
}

async function withWeb(
    calls: object[],
    serve: Serve,
    run: (web: Web) => Promise<void>,
    spreadMs = 0,
) {
    await onBench(
        {
            program: "test/bytecode/api-http.ts",
            settings: { SCENE: JSON.stringify(calls), SPREAD: spreadMs },
        },
        async bench => {
            const { world, device } = bench
            const requests: Web["requests"] = []
            world.net.listen("web", 80, peer => {
                let head = ""
                peer.onData = bytes => {
                    head += Buffer.from(bytes).toString()
                    if (!head.includes("\r\n\r\n")) return
                    requests.push({ atMs: world.nowMs, head })
                    const said = serve(requests.length, head, peer)
                    head = ""
                    if (said !== undefined) peer.write(Buffer.from(said))
                }
            })
            await run({
                ...bench,
                requests,
                async outcome(n) {
                    const prints = () => printsOf(device, "http")
                    await world.until(() => prints().length >= n, 3_600_000)
                    return prints()[n - 1]
                },
            })
        },
    )
}

test("MQTT leaves with DISCONNECT, waits, and comes back; what was published meanwhile arrives; the state says so", async () => {
    await withWeb(
        [{}],
        () => answer("200 OK", "hello"),
        async ({ world, broker, device, outcome }) => {
            const { ok, body, attempts } = await outcome(1)
            assert.deepEqual([ok, body, attempts], [true, "hello", 1])
            assert.equal(broker.sent("disconnect").length, 1)
            await world.until("connected", 10_000)
            await world.run(1000)
            assert.equal(broker.conns.length, 2)
            const payloads = broker
                .sent("publish")
                .map(r => `${r.packet.payload}`)
            assert.deepEqual(payloads, ["meanwhile"])
            const states = printsOf(device, "state").map(p => p.state)
            assert.ok(states.includes("parked"), states.join())
            assert.equal(
                device.said("halt")[0].reason,
                "the socket is lent out",
            )
            const back = device.said("retry").at(-1)!
            assert.equal(back.reason, "socket is back")
            assert.ok(back.delayMs >= 1000 && back.delayMs <= 2200, "no ramp")
            assert.equal(device.said("lost").length, 0)
        },
    )
})

test("with a spread it comes back through it; urgent, at once", async () => {
    const calls = [{ pauseMs: 200_000 }, { urgent: true }]
    await withWeb(
        calls,
        () => answer("200 OK", "x"),
        async ({ device, outcome, world }) => {
            await outcome(1)
            await world.run(100)
            assert.ok(device.last("retry").delayMs > 1000)
            assert.ok(device.last("retry").delayMs <= 101_000)
            await world.until("connected", 200_000)
            await outcome(2)
            await world.run(100)
            assert.equal(device.last("retry").reason, "socket is back")
            assert.ok(device.last("retry").delayMs <= 100)
        },
        100_000,
    )
})

test("a request every half minute does not keep a device from backing off from its broker", async () => {
    await withWeb(
        Array.from({ length: 50 }, () => ({})),
        () => answer("200 OK", "x"),
        async ({ world, broker, outcome }) => {
            broker.next(1, {}).always({ connect: c => c.fin() })
            await outcome(50)
            assert.ok(world.nowMs > 24 * 60_000)
            // 1, 2, 4 ... 1,024 s; a dial after each request would be 50.
            const dials = broker.conns.length
            assert.ok(dials >= 8 && dials <= 12, `${dials} dials`)
        },
    )
})

test("a dial cut off by a long request is not taken for a native that never came back", async () => {
    const long = { timeoutMs: 600_000, attempts: 2, deadlineMs: 3_000_000 }
    await withWeb(
        [{ pauseMs: 5000 }, long],
        n => (n === 1 ? answer("200 OK", "x") : undefined),
        async ({ world, device, outcome }) => {
            await outcome(1)
            const hole = world.net.fault("broker:1883", faults.blackHole())
            await world.until(
                () => printsOf(device, "state").at(-1)?.state === "connecting",
                10_000,
            )
            const { attempts, tookMs } = await outcome(2)
            assert.equal(attempts, 2)
            assert.ok(tookMs > 1_200_000, `${tookMs} ms`)
            hole.off()
            await world.until("connected", 600_000)
            assert.deepEqual(
                device.said("link").filter(l => l.why),
                [],
            )
        },
    )
})

test("503 with Retry-After, 500, a reset, then 200: the same key each time, and the wait that was asked for", async () => {
    const idempotencyKey = "dev-1-1"
    await withWeb(
        [{ method: "POST", body: "b", idempotencyKey }],
        (n, _head, peer) => {
            if (n === 1) return answer("503 Busy", "", "Retry-After: 7\r\n")
            if (n === 2) return answer("500 Oops")
            if (n === 3) peer.reset()
            return n === 4 ? answer("201 Created", "ok") : undefined
        },
        async ({ requests, outcome }) => {
            const { ok, http, attempts } = await outcome(1)
            assert.deepEqual([ok, http, attempts], [true, 201, 4])
            for (const { head } of requests) {
                assert.match(head, /^POST \/x HTTP\/1\.1\r\n/)
                assert.match(head, /idempotency-key: dev-1-1\r\n/)
            }
            const [a, b] = requests
            const waitMs = b.atMs - a.atMs
            assert.ok(waitMs >= 7000 && waitMs <= 8600, `${waitMs} ms`)
        },
    )
})

test("404 is not tried again, nor a POST without a key", async () => {
    await withWeb(
        [{}, { method: "POST", body: "b" }],
        (_, head) =>
            answer(head.startsWith("POST") ? "503 Busy" : "404 Not Found"),
        async ({ outcome, requests }) => {
            const first = await outcome(1)
            assert.equal(first.reason, "404 request rejected, not retried")
            const second = await outcome(2)
            assert.equal(second.reason, "503 service unavailable, given up")
            assert.deepEqual([first.attempts, second.attempts], [1, 1])
            assert.equal(requests.length, 2)
        },
    )
})

test("a server that is silent, closes early, sends garbage or too much, or is not there: given up in time, MQTT is back", async () => {
    const all = { attempts: 2, timeoutMs: 2000 }
    const what = ["silent", "early", "garbage", "much", "short"]
    await withWeb(
        what.map(() => all),
        (n, _head, peer) => {
            switch (what[Math.floor((n - 1) / 2)]) {
                case "early":
                    peer.end()
                    return undefined
                case "garbage":
                    peer.write(Buffer.from("\x00\x01\r\n\r\n"))
                    peer.end()
                    return undefined
                case "much":
                    return "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"
                case "short":
                    peer.write(
                        Buffer.from(
                            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
                        ),
                    )
                    peer.end()
            }
            return undefined
        },
        async ({ world, outcome, broker }) => {
            const reasons: string[] = []
            for (let i = 1; i <= what.length; ++i) {
                const { reason, ok, tookMs } = await outcome(i)
                assert.equal(ok, false)
                assert.ok(tookMs < 21_000)
                reasons.push(reason)
                if (what[i - 1] === "much") break
            }
            assert.equal(reasons[0], "no answer in time, given up")
            assert.equal(reasons[1], "no connection, or it broke, given up")
            assert.equal(reasons[3], "200 body too large, not retried")
            await world.until("connected", 60_000)
            await world.run(1000)
            const { length } = broker.sent("publish")
            assert.ok(length >= reasons.length, `${length} messages`)
        },
    )
})
