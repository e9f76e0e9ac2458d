// The lab's network: what TCP promises, and each fault by itself.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as faults from "../../host/lab/faults"
import type { Fault, Peer } from "../../host/lab/link"
import { World } from "../../host/lab/world"
import { LabClient } from "./lab-client"

const TEN = Buffer.from("0123456789")

/** A server that greets with ten bytes and records what it gets. */
function serve(world: World, greet = true) {
    const log: string[] = []
    const peers: Peer[] = []
    world.net.listen("broker", 1883, peer => {
        peers.push(peer)
        log.push(`${world.nowMs} accept`)
        peer.onData = b => log.push(`${world.nowMs} ${b.length} B`)
        peer.onEnd = how => log.push(`${world.nowMs} ${how}`)
        if (greet) peer.write(TEN)
    })
    return { log, peers }
}

/** What a client sees within 10 s under a fault. */
async function under(fault: Fault): Promise<string[]> {
    const world = new World()
    serve(world)
    world.net.fault("broker:1883", fault)
    const client = new LabClient(world)
    await world.run(10_000)
    return client.events
}

test("without a fault: SYN and back, then data, each way in order", async () => {
    const world = new World()
    const server = serve(world)
    const client = new LabClient(world)
    await world.run(10)
    client.raw("01 02 03")
    client.close()
    await world.run(10)
    assert.deepEqual(client.events, ["4 open", "4 10 B"])
    assert.deepEqual(server.log, ["2 accept", "12 3 B", "12 fin"])
})

test("an address where nobody listens refuses", async () => {
    const world = new World()
    const client = new LabClient(world)
    await world.run(10_000)
    assert.deepEqual(client.events, [
        "4 error connect ECONNREFUSED broker:1883",
    ])
})

test("each fault does what it says, and only that", async () => {
    const table: [string, Fault, string[]][] = [
        ["refuse", faults.refuse(), ["4 error connect ECONNREFUSED"]],
        [
            "unreachable",
            faults.unreachable(),
            ["3000 error connect EHOSTUNREACH"],
        ],
        [
            "noSuchHost",
            faults.noSuchHost(),
            ["50 error getaddrinfo ENOTFOUND broker"],
        ],
        ["blackHole", faults.blackHole(), []],
        ["openFails", faults.openFails(), []],
        ["latency", faults.latency(100), ["4 open", "104 10 B"]],
        [
            "trickle",
            faults.trickle(1000),
            ["4 open", ...TEN.map((_, i) => i)]
                .map((x, i) => (i ? `${4 + Number(x) * 1000} 1 B` : `${x}`))
                .slice(0, 11),
        ],
        ["coalesce", faults.coalesce(50), ["4 open", "54 10 B"]],
        ["swallow", faults.swallow(), ["4 open"]],
        ["swallowToDevice", faults.swallowToDevice(), ["4 open"]],
        ["swallowToBroker", faults.swallowToBroker(), ["4 open", "4 10 B"]],
        ["partition", faults.partition(), []],
        [
            "resetAfter",
            faults.resetAfter(500),
            ["4 open", "4 10 B", "506 error read ECONNRESET"],
        ],
        ["finAfter", faults.finAfter(500), ["4 open", "4 10 B", "506 close"]],
        [
            "resetAfterBytes",
            faults.resetAfterBytes(3),
            ["4 open", "4 3 B", "4 error read ECONNRESET"],
        ],
        ["finAfterBytes at 0", faults.finAfterBytes(0), ["4 open", "4 close"]],
    ]
    for (const [name, fault, expected] of table)
        assert.deepEqual(await under(fault), expected, name)
})

test("split cuts anywhere and loses nothing", async () => {
    const world = new World({ seed: 5 })
    serve(world)
    world.net.fault("*", faults.split(3))
    const client = new LabClient(world)
    await world.run(1000)
    assert.equal(Buffer.from(client.bytes).toString(), TEN.toString())
    assert.ok(client.events.length > 4, client.events.join())
})

test("a partition holds what is under way and gives it back in order", async () => {
    const world = new World()
    const server = serve(world, false)
    const client = new LabClient(world)
    await world.run(10)
    const cut = world.net.fault("*", faults.partition())
    server.peers[0].write(TEN.subarray(0, 4))
    server.peers[0].write(TEN.subarray(4))
    client.raw("01")
    await world.run(60_000)
    assert.deepEqual(client.what, ["open"])
    cut.off()
    await world.run(10)
    assert.deepEqual(client.what, ["open", "4 B", "6 B"])
    assert.equal(server.log.at(-1), "60012 1 B")
})

test("what a half-open connection swallowed never comes, even after healing", async () => {
    const world = new World()
    const { peers } = serve(world, false)
    const client = new LabClient(world)
    await world.run(10)
    world.net.fault("*", faults.swallowToDevice())
    peers[0].write(TEN)
    await world.run(10)
    world.net.heal()
    peers[0].write(TEN)
    await world.run(10)
    assert.deepEqual(client.what, ["open"])
})

test("a late close hits the socket that is open by then", async () => {
    const world = new World()
    const { log } = serve(world, false)
    world.net.fault("*", faults.lateClose(150))
    const first = new LabClient(world)
    await world.run(100)
    first.close()
    await world.run(100)
    const second = new LabClient(world)
    await world.run(100)
    assert.deepEqual(second.what, ["open", "close"])
    assert.equal(log.filter(l => l.endsWith("fin")).length, 1)
})

test("a device that lost power answers nothing, and resets once it is back", async () => {
    const world = new World()
    const { log, peers } = serve(world, false)
    const first = new LabClient(world)
    await world.run(10)
    first.vanish()
    await world.run(1000)
    peers[0].write(TEN)
    await world.run(1000)
    assert.deepEqual(log, ["2 accept"])
    new LabClient(world)
    await world.run(10)
    peers[0].write(TEN)
    await world.run(10)
    assert.equal(log.at(-1), "2024 reset")
})

test("write codes and a missing network are the device's own", async () => {
    const world = new World()
    serve(world)
    const client = new LabClient(world)
    await world.run(10)
    for (const code of [-1, -10, -100]) {
        const fault = world.net.fault("*", faults.writeReturns(code), "client")
        assert.equal(client.raw("00"), code)
        fault.off()
    }
    assert.equal(client.raw("00"), 0)
    world.net.fault("*", faults.noNetwork(), "client")
    assert.equal(world.net.view("client").isUp(), false)
    assert.equal(world.net.view("other").isUp(), true)
})
