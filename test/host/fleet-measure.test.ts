// `npm run fleet -- measure`: the capacity it finds is the capacity there is.
import assert from "node:assert/strict"
import { createServer, type AddressInfo, type Socket } from "node:net"
import { describe, test } from "node:test"
import { findCapacity } from "../../host/fleet/capacity"
import { measureTool } from "../../host/fleet/cmd-measure"
import { planTool } from "../../host/fleet/cmd-plan"
import type { Sample } from "../../host/fleet/probe"
import { FaultProxy } from "../../host/lab/fault-proxy"
import * as faults from "../../host/lab/faults"
import { EmbeddedBroker } from "../../host/start/broker"
import { isRefusal, parseFleetPolicy } from "../../src/core/fleet-policy"
import { freePort, Mosquitto, noMosquitto } from "../mosquitto"

/** Runs the tool; what it printed. */
async function measure(args: string[], stopped = () => false) {
    let out = ""
    let err = ""
    const code = await measureTool.run(args, {
        out: text => (out += text),
        err: text => (err += text),
        status() {},
        stopped,
    })
    return { code, out, err }
}

/** The same with --json; the parsed result. */
async function measured(port: number, ...args: string[]) {
    const ran = await measure(["--port", `${port}`, "--json", ...args])
    assert.equal(ran.code, 0, ran.err)
    return JSON.parse(ran.out)
}

/** The command that was printed runs, and the message it writes is one that devices follow. */
async function devicesTake(planCommand: string) {
    const args = planCommand.split(" plan ")[1].split(" ")
    let out = ""
    const code = await planTool.run([...args, "--json"], {
        out: text => (out += text),
        err: text => assert.fail(text),
        status() {},
        stopped: () => false,
    })
    assert.equal(code, 0)
    const policy = parseFleetPolicy(JSON.stringify(JSON.parse(out).policy))
    assert.ok(!isRefusal(policy), JSON.stringify(policy))
    assert.ok(policy.spreadMs > 10_000)
}

/** Runs with an aedes broker. */
async function withAedes(run: (port: number) => Promise<void>) {
    const broker = new EmbeddedBroker(() => {})
    await broker.up()
    try {
        await run(broker.port)
    } finally {
        await broker.down()
    }
}

describe("the search, with a broker that is a queue", () => {
    /** Bursts of a broker that completes `rate` a second in order and takes `failAbove` at most. */
    function queue(rate: number, dropBeyondS = Infinity) {
        return async (offered: number, count: number) => {
            const samples: Sample[] = []
            let freeMs = 0
            for (let i = 0; i < count; ++i) {
                const startMs = (i * 1000) / offered
                const queuedMs = Math.max(0, freeMs - startMs)
                const drop = queuedMs > dropBeyondS * 1000
                if (!drop) freeMs = Math.max(freeMs, startMs) + 1000 / rate
                samples.push({
                    startMs,
                    endMs: drop ? startMs + 1 : freeMs,
                    problem: drop ? "ECONNRESET" : undefined,
                })
            }
            return { samples, offeredPerSecond: offered, cut: false }
        }
    }

    const limits = { maxRate: 2000, maxConnections: 20_000 }

    for (const rate of [3, 7.5, 11, 50, 99, 640, 1100])
        for (const dropBeyondS of [Infinity, 0.3])
            test(`${rate} a second, ${dropBeyondS === Infinity ? "no limit to the queue" : "a queue of 0.3 s"}`, async () => {
                const found = await findCapacity(
                    queue(rate, dropBeyondS),
                    1000 / rate,
                    limits,
                    () => {},
                    () => false,
                )
                assert.ok(found.rate !== null, found.why)
                assert.ok(
                    Math.abs(found.rate / rate - 1) < 0.02,
                    `${found.rate}`,
                )
                assert.ok(found.low <= found.rate && found.rate <= found.high!)
            })

    test("a broker that is faster than what may be tried: at least so much, and why", async () => {
        const found = await findCapacity(
            queue(1e6),
            0.1,
            { maxRate: 100, maxConnections: 1000 },
            () => {},
            () => false,
        )
        assert.equal(found.rate, null)
        assert.equal(found.low, 100)
        assert.match(found.why!, /100 a second/)
        assert.deepEqual(
            found.steps.map(s => s.ratePerSecond),
            [10, 20, 40, 80, 100],
        )
    })

    test("never more connections than allowed in all", async () => {
        let count = 0
        const run = queue(1e6)
        await findCapacity(
            (rate, n) => {
                count += n
                return run(rate, n)
            },
            0.1,
            { maxRate: 2000, maxConnections: 200 },
            () => {},
            () => false,
        )
        assert.ok(count <= 200, `${count}`)
    })
})

describe("on real sockets", { concurrency: true }, () => {
    test("a broker behind a proxy that admits 30 a second: C within 5 %, and the next command", () =>
        withAedes(async port => {
            const proxy = new FaultProxy(port)
            await proxy.start()
            proxy.fault(faults.admitPerSecond(30))
            try {
                const found = await measured(proxy.port, "--devices", "300")
                assert.ok(Math.abs(found.rate / 30 - 1) < 0.05, `${found.rate}`)
                assert.ok(found.errorPercent <= 10)
                assert.match(
                    found.plan,
                    /^npm run fleet -- plan --devices 300 --rate \d+(\.\d)? --margin 1\.\d+$/,
                )
                await devicesTake(found.plan)
            } finally {
                proxy.close()
            }
        }))

    test(
        "mosquitto keeps up with 40 a second",
        { skip: noMosquitto },
        async () => {
            const broker = new Mosquitto(await freePort())
            await broker.start()
            try {
                const found = await measured(broker.port, "--max-rate", "40")
                assert.equal(found.rate, null)
                assert.ok(found.low > 25 && found.low <= 41, `${found.low}`)
            } finally {
                await broker.dispose()
            }
        },
    )

    test(
        "mosquitto that wants a password: says so",
        { skip: noMosquitto },
        async () => {
            const broker = new Mosquitto(await freePort(), [
                "allow_anonymous false",
            ])
            await broker.start()
            try {
                const { code, err } = await measure([
                    "--port",
                    `${broker.port}`,
                ])
                assert.equal(code, 1)
                assert.match(
                    err,
                    /not authorised \(CONNACK 5\); see --username/,
                )
            } finally {
                await broker.dispose()
            }
        },
    )

    test("no broker: exit code 1 and where", async () => {
        const port = await freePort()
        const { code, err } = await measure(["--port", `${port}`])
        assert.equal(code, 1)
        assert.match(err, new RegExp(`127.0.0.1:${port}: nobody listens there`))
    })

    test("something else than a broker: exit code 1", async () => {
        const server = createServer(s => {
            s.on("error", () => {})
            s.end("HTTP/1.1 400 Bad Request\r\n\r\n")
        })
        await new Promise<void>(done => server.listen(0, "127.0.0.1", done))
        const { port } = server.address() as AddressInfo
        const { code, err } = await measure(["--port", `${port}`])
        server.close()
        assert.equal(code, 1)
        assert.match(err, /does not speak MQTT/)
    })

    test("Ctrl-C in the middle: what is known, and no connection stays open", async () => {
        const open = new Set<Socket>()
        let seen = 0
        const server = createServer(socket => {
            open.add(socket)
            socket.on("close", () => open.delete(socket))
            socket.on("error", () => {})
            socket.resume()
            // The first answers are quick, then it is silent.
            if (++seen <= 25)
                socket.once("data", () =>
                    socket.write(Buffer.from([32, 2, 0, 0])),
                )
        })
        await new Promise<void>(done => server.listen(0, "127.0.0.1", done))
        const { port } = server.address() as AddressInfo
        const { code, out } = await measure(
            ["--port", `${port}`],
            () => seen > 30,
        )
        await new Promise<void>(done => server.close(() => done()))
        assert.equal(code, 130)
        assert.match(out, /10\/s: 10 connections/)
        assert.match(out, /interrupted/)
        // The server is told before its sockets are.
        await new Promise(done => setImmediate(done))
        assert.equal(open.size, 0)
    })
})

test("another computer's broker only with --i-own-this-broker; bad flags name what is allowed", async () => {
    const other = await measure(["--host", "broker.example"])
    assert.equal(other.code, 2)
    assert.match(other.err, /--i-own-this-broker/)
    const rate = await measure(["--max-rate", "0"])
    assert.equal(rate.code, 2)
    assert.match(rate.err, /--max-rate.*'0'.*1 to 20000/s)
    assert.equal((await measure(["--password", "x"])).code, 2)
    assert.equal((await measure(["--help"])).code, 0)
})
