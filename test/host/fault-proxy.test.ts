// The fault proxy: what goes through it, and each fault by itself, on real sockets.
import assert from "node:assert/strict"
import { connect, createServer, type AddressInfo, type Server } from "node:net"
import { after, before, describe, test } from "node:test"
import { FaultProxy } from "../../host/lab/fault-proxy"
import * as faults from "../../host/lab/faults"
import type { Piece, WireFault } from "../../host/lab/wire"

const TEN = Buffer.from("0123456789")

/** Greets with ten bytes, echoes what it gets, and notes it. */
class EchoServer {
    readonly heard: string[] = []
    private server: Server | undefined

    async start() {
        const server = createServer({ allowHalfOpen: true }, socket => {
            socket.write(TEN)
            socket.on("data", bytes => {
                this.heard.push(bytes.toString())
                socket.write(bytes)
            })
            socket.on("end", () => {
                this.heard.push("fin")
                socket.end()
            })
            socket.on("error", () => this.heard.push("reset"))
        })
        await new Promise<void>(done => server.listen(0, "127.0.0.1", done))
        this.server = server
        return (server.address() as AddressInfo).port
    }

    close() {
        this.server?.close()
    }
}

/** Dials; what happens is in `events`, bytes that come in a row as one text. */
class Caller {
    readonly events: string[] = []
    readonly sizes: number[] = []
    private readonly socket

    constructor(port: number) {
        this.socket = connect(port, "127.0.0.1")
        this.socket.setNoDelay()
        this.socket.on("data", bytes => {
            this.sizes.push(bytes.length)
            const last = this.events.at(-1)
            if (last?.startsWith("< ")) this.events.pop()
            this.events.push(
                (last?.startsWith("< ") ? last : "< ") + `${bytes}`,
            )
        })
        this.socket.on("connect", () => this.events.push("open"))
        this.socket.on("end", () => this.events.push("fin"))
        this.socket.on("error", e =>
            this.events.push((e as NodeJS.ErrnoException).code!),
        )
    }

    get text() {
        return this.events.join(", ")
    }
    send(text: string) {
        this.socket.write(text)
    }
    end() {
        this.socket.end()
    }
    reset() {
        this.socket.resetAndDestroy()
    }
    destroy() {
        this.socket.destroy()
    }
}

/** Waits for something; the limit only bounds a failing test. */
async function until(holds: () => boolean, what: () => string) {
    const giveUpMs = Date.now() + 20_000
    while (!holds()) {
        if (Date.now() > giveUpMs) assert.fail(`waited in vain: ${what()}`)
        await new Promise(done => setTimeout(done, 5))
    }
}

const server = new EchoServer()
let serverPort = 0
before(async () => (serverPort = await server.start()))
after(() => server.close())

/** A fault that only notes what passes it. */
function listener(way: "toDevice" | "toBroker") {
    const pieces: string[] = []
    const tap: WireFault = () => ({
        [way]: (p: Piece) => {
            pieces.push(p.bytes ? Buffer.from(p.bytes).toString() : p.end!)
            return [p]
        },
    })
    return { pieces, tap }
}

/** A call through a proxy of its own. */
async function call(
    fault: WireFault | undefined,
    run: (caller: Caller, proxy: FaultProxy) => Promise<void>,
) {
    const proxy = new FaultProxy(serverPort)
    await proxy.start()
    if (fault) proxy.fault(fault)
    const caller = new Caller(proxy.port)
    try {
        await run(caller, proxy)
    } finally {
        caller.destroy()
        proxy.close()
    }
}

const says = (caller: Caller, text: string) =>
    until(
        () => caller.text === text,
        () => `${caller.text}, expected ${text}`,
    )

const ends = (caller: Caller, how: string) =>
    until(
        () => caller.events.at(-1) === how,
        () => `${caller.text}, expected ${how}`,
    )

describe("without a fault", () => {
    test("bytes go both ways, and each end of the line is passed on", () =>
        call(undefined, async caller => {
            caller.send("hello")
            await says(caller, "open, < 0123456789hello")
            caller.end()
            await says(caller, "open, < 0123456789hello, fin")
            assert.equal(server.heard.at(-1), "fin")
        }))

    test("a reset is a reset at the other end", () =>
        call(undefined, async caller => {
            await says(caller, "open, < 0123456789")
            caller.reset()
            await until(
                () => server.heard.at(-1) === "reset",
                () => `${server.heard}`,
            )
        }))

    test("a broker that is not there resets the connection", async () => {
        const gone = new EchoServer()
        const port = await gone.start()
        gone.close()
        const proxy = new FaultProxy(port)
        await proxy.start()
        const caller = new Caller(proxy.port)
        await says(caller, "open, ECONNRESET")
        proxy.close()
    })
})

describe("each fault does what it says", () => {
    const table: [string, WireFault, string][] = [
        ["refuse", faults.refuse(), "ECONNREFUSED"],
        ["latency", faults.latency(30, 30), "open, < 0123456789"],
        ["split", faults.split(3), "open, < 0123456789"],
        ["trickle", faults.trickle(5), "open, < 0123456789"],
        ["coalesce", faults.coalesce(30), "open, < 0123456789"],
        ["swallowToBroker", faults.swallowToBroker(), "open, < 0123456789"],
        ["finAfterBytes at 0", faults.finAfterBytes(0), "open, fin"],
        ["finAfterBytes", faults.finAfterBytes(3), "open, < 012, fin"],
        ["resetAfterBytes", faults.resetAfterBytes(0), "open, ECONNRESET"],
    ]
    for (const [name, fault, expected] of table)
        test(name, () => call(fault, caller => says(caller, expected)))

    // The greeting may come first, or not; and where it is still unread when the reset comes, the system hands
    // it out and then an end, as after a FIN. So the other side is asked, too: to that one nothing was said.
    test("resetAfter", () =>
        call(faults.resetAfter(0), async caller => {
            server.heard.length = 0
            await until(
                () =>
                    /(ECONNRESET|< \d+, fin)$/.test(caller.text) &&
                    server.heard.join() === "reset",
                () => `${caller.text}; server: ${server.heard.join()}`,
            )
        }))

    test("finAfter", () =>
        call(faults.finAfter(0), caller => ends(caller, "fin")))

    test("trickle: a byte at a time", () =>
        call(faults.trickle(5), async (caller, proxy) => {
            const { pieces, tap } = listener("toDevice")
            proxy.fault(tap)
            await says(caller, "open, < 0123456789")
            assert.deepEqual(pieces, [..."0123456789"])
        }))

    test("coalesce: one segment", () =>
        call(faults.coalesce(100), async caller => {
            await until(
                () => caller.sizes.length > 0,
                () => caller.text,
            )
            assert.deepEqual(caller.sizes, [10])
        }))

    test("swallow: silence, and what follows stays lost", () =>
        call(undefined, async (caller, proxy) => {
            const { pieces, tap } = listener("toBroker")
            proxy.fault(tap)
            await says(caller, "open, < 0123456789")
            const on = proxy.fault(faults.swallow())
            caller.send("lost")
            await until(
                () => pieces.includes("lost"),
                () => `${pieces}`,
            )
            on.off()
            caller.send("too")
            const other = new Caller(proxy.port)
            other.send("heard")
            await says(other, "open, < 0123456789heard")
            assert.equal(caller.text, "open, < 0123456789")
            assert.doesNotMatch(server.heard.join(), /lost|too/)
            other.destroy()
        }))

    test("partition: held, a new connection too, and given back in order", () =>
        call(undefined, async (caller, proxy) => {
            await says(caller, "open, < 0123456789")
            const on = proxy.fault(faults.partition())
            const late = new Caller(proxy.port)
            for (const text of ["a", "b", "c"]) caller.send(text)
            late.send("late")
            await says(late, "open")
            assert.equal(caller.text, "open, < 0123456789")
            on.off()
            await says(caller, "open, < 0123456789abc")
            await says(late, "open, < 0123456789late")
            late.destroy()
        }))

    test("refuse: open connections stay, and the same port opens again", () =>
        call(undefined, async (caller, proxy) => {
            await says(caller, "open, < 0123456789")
            const { port } = proxy
            const on = proxy.fault(faults.refuse())
            await says(new Caller(port), "ECONNREFUSED")
            caller.send("still")
            await says(caller, "open, < 0123456789still")
            on.off()
            assert.equal(proxy.port, port)
            const next = new Caller(port)
            await says(next, "open, < 0123456789")
            next.destroy()
        }))
})

describe("admitPerSecond", () => {
    test("never faster than its rate, first come first served, those who left included", async () => {
        const PER_SECOND = 20
        const proxy = new FaultProxy(serverPort)
        await proxy.start()
        proxy.fault(faults.admitPerSecond(PER_SECOND))
        const startMs = performance.now()
        const callers = Array.from({ length: 10 }, () => new Caller(proxy.port))
        for (const c of callers) c.send("x")
        const served = () => callers.filter(c => c.text.endsWith("x")).length
        await until(
            () => callers.every(c => c.events[0] === "open"),
            () => callers.map(c => c.text).join("; "),
        )
        callers[4].destroy()
        await until(
            () => {
                const count = served()
                const seconds = (performance.now() - startMs) / 1000
                const most = PER_SECOND * seconds + 0.1
                assert.ok(count <= most, `${count} in ${seconds} s`)
                return count === 9
            },
            () => callers.map(c => c.text).join("; "),
        )
        // The slot of the one that left was used up.
        const seconds = (performance.now() - startMs) / 1000
        assert.ok(seconds >= 10 / PER_SECOND - 0.01, `${seconds} s`)
        for (const c of callers) c.destroy()
        proxy.close()
    })

    for (const overflow of ["reset", "silence"] as const)
        test(`a backlog of 2, then ${overflow}`, async () => {
            const proxy = new FaultProxy(serverPort)
            await proxy.start()
            proxy.fault(faults.admitPerSecond(5, 2, overflow))
            const callers: Caller[] = []
            for (let i = 0; i < 3; ++i) {
                callers.push(new Caller(proxy.port))
                callers[i].send("x")
                await until(
                    () => proxy.accepted > i,
                    () => callers[i].text,
                )
            }
            const [first, second, third] = callers
            if (overflow === "reset")
                await until(
                    () => third.text.endsWith("ECONNRESET"),
                    () => third.text,
                )
            await says(first, "open, < 0123456789x")
            await says(second, "open, < 0123456789x")
            if (overflow === "silence")
                assert.equal(third.text, "open, < 0123456789")
            for (const c of callers) c.destroy()
            proxy.close()
        })
})

test("the same seed cuts alike, another one differently", async () => {
    const cuts = async (seed: number) => {
        const proxy = new FaultProxy(serverPort, seed)
        const drawn: number[] = []
        await proxy.start()
        proxy.fault(wire => {
            const hooks = faults.split(5)(wire)
            return {
                toDevice: p => {
                    const out = hooks.toDevice!(p)
                    for (const { bytes } of out) drawn.push(bytes?.length ?? 0)
                    return out
                },
            }
        })
        const caller = new Caller(proxy.port)
        await says(caller, "open, < 0123456789")
        caller.destroy()
        proxy.close()
        return drawn.join()
    }
    assert.equal(await cuts(7), await cuts(7))
    assert.notEqual(await cuts(7), await cuts(8))
})
