// The lab's brokers against clients made by hand: the strict one keeps the standard and sees who
// does not, the scripted one does what it is told.
import assert from "node:assert/strict"
import { test } from "node:test"
import type { Packet } from "../../host/lab/mqtt-wire"
import * as plays from "../../host/lab/plays"
import { World } from "../../host/lab/world"
import { LabClient } from "./lab-client"

const subscribe = (topic: string, messageId = 1, qos = 1): Packet => ({
    cmd: "subscribe",
    messageId,
    subscriptions: [{ topic, qos: qos as 0 | 1 }],
})
const publish = (topic: string, more: object = {}): Packet => ({
    cmd: "publish",
    topic,
    payload: Buffer.from("x"),
    qos: 0,
    dup: false,
    retain: false,
    ...more,
})

/** A world with a strict broker and a client that is through CONNACK. */
async function connected(more: object = {}) {
    const world = new World()
    const broker = world.broker()
    const client = new LabClient(world)
    await world.run(10)
    client.connect(more)
    await world.run(10)
    return { world, broker, client }
}

const kinds = (client: LabClient) => client.packets.map(p => p.cmd)

test("strict: every breach is seen, with its clause", async () => {
    const table: [string, string, (c: LabClient) => void][] = [
        ["second CONNECT", "MQTT-3.1.0-2", c => c.connect()],
        [
            "packet identifier 0",
            "MQTT-2.3.1-1",
            c => c.raw("82 06 00 00 00 01 61 00"),
        ],
        [
            "identifier in use",
            "MQTT-2.3.1-2",
            c => c.send(subscribe("a", 7), subscribe("b", 7)),
        ],
        ["DUP with QoS 0", "MQTT-3.3.1-2", c => c.raw("38 04 00 01 61 78")],
        [
            "DUP in a new session",
            "MQTT-3.3.1-1",
            c => c.send(publish("a", { qos: 1, messageId: 1, dup: true })),
        ],
        [
            "wildcard in a topic name",
            "MQTT-3.3.2-2",
            c => c.raw("30 04 00 01 2b 78"),
        ],
        [
            "# not last",
            "MQTT-4.7.1-2",
            c => c.raw("82 08 00 01 00 03 23 2f 61 00"),
        ],
        [
            "PUBACK for nothing",
            "MQTT-4.3.2-2",
            c => c.send({ cmd: "puback", messageId: 9 }),
        ],
        ["a server's packet", "MQTT-2.2.1", c => c.send({ cmd: "pingresp" })],
        ["garbage", "MQTT-4.8.0-1", c => c.raw("ff ff ff ff")],
        [
            "data after DISCONNECT",
            "MQTT-3.14.4-2",
            c => c.send({ cmd: "disconnect" }, { cmd: "pingreq" }),
        ],
    ]
    for (const [what, clause, run] of table) {
        const { world, broker, client } = await connected()
        assert.equal(broker.violations.length, 0, what)
        run(client)
        await world.run(10)
        assert.deepEqual(
            broker.violations.map(v => v.clause),
            [clause],
            what,
        )
    }
})

test("strict: something before CONNECT is a breach and ends the connection", async () => {
    const world = new World()
    const broker = world.broker()
    const client = new LabClient(world)
    await world.run(10)
    client.send({ cmd: "pingreq" })
    await world.run(10)
    assert.equal(broker.violations[0].clause, "MQTT-3.1.0-1")
    assert.deepEqual(client.what, ["open", "close"])
})

test("strict: silence for one and a half keep alives ends it, and the will is sent", async () => {
    const will = { topic: "w", payload: Buffer.from("gone"), qos: 0 }
    const { world, broker, client } = await connected({ keepalive: 10, will })
    await world.run(14_900)
    assert.deepEqual(broker.connected, ["hand"])
    await world.run(200)
    assert.deepEqual(broker.connected, [])
    assert.equal(broker.keepAliveTimeouts, 1)
    assert.equal(broker.wills.length, 1)
    assert.equal(client.what.at(-1), "close")
})

test("strict: DISCONNECT sends no will, a lost connection does", async () => {
    const will = { topic: "w", payload: Buffer.from("gone"), qos: 0 }
    for (const clean of [true, false]) {
        const { world, broker, client } = await connected({ will })
        if (clean) client.send({ cmd: "disconnect" })
        client.close()
        await world.run(2000)
        assert.equal(broker.wills.length, clean ? 0 : 1)
    }
})

test("strict: a second connection with the same client id takes over", async () => {
    const { world, broker, client } = await connected()
    const second = new LabClient(world, "second")
    await world.run(10)
    second.connect()
    await world.run(10)
    assert.equal(client.what.at(-1), "close")
    assert.deepEqual(broker.connected, ["hand"])
    assert.deepEqual(kinds(second), ["connack"])
})

test("strict: QoS 1 without a PUBACK comes again with DUP, in a session that was kept", async () => {
    const { world, broker, client } = await connected({ clean: false })
    client.send(subscribe("a/#"))
    await world.run(10)
    broker.publish("a/b", "one", { qos: 1 })
    await world.run(10)
    client.close()
    await world.run(10)
    broker.publish("a/b", "two", { qos: 1 })
    broker.crash({ keep: true })
    broker.start()
    const again = new LabClient(world)
    await world.run(10)
    again.connect({ clean: false })
    await world.run(10)
    const seen = again.packets.map(p =>
        p.cmd === "publish" ? `${p.payload} ${p.dup}` : p.cmd,
    )
    assert.deepEqual(seen, ["connack", "one true", "two false"])
    assert.equal(
        (again.packets[0] as { sessionPresent: boolean }).sessionPresent,
        true,
    )
})

test("strict: retained messages come with SUBSCRIBE, and survive a crash only on disk", async () => {
    for (const keep of [true, false]) {
        const { world, broker, client } = await connected()
        client.send(publish("a", { retain: true }))
        await world.run(10)
        broker.crash({ keep })
        broker.start()
        const again = new LabClient(world)
        await world.run(10)
        again.connect()
        again.send(subscribe("+"))
        await world.run(10)
        assert.deepEqual(
            kinds(again),
            keep ? ["connack", "suback", "publish"] : ["connack", "suback"],
        )
    }
})

test("scripted: plays are used up in order, then it is polite", async () => {
    const world = new World()
    const broker = world.scripted()
    broker
        .next(1, plays.mute())
        .next(1, plays.refuse(5))
        .next(1, plays.lateConnack(3000))
        .next(1, plays.endAfterAccept(0, "rst"))
    const seen: string[] = []
    for (let i = 0; i < 5; ++i) {
        const client = new LabClient(world)
        await world.run(10)
        client.connect()
        await world.run(5000)
        seen.push(client.events.join(", "))
        client.close()
        await world.run(10)
    }
    assert.deepEqual(seen, [
        "4 open",
        "4 open, 14 4 B, 14 close",
        "4 open, 3014 4 B",
        "4 open, 4 error read ECONNRESET",
        "4 open, 14 4 B",
    ])
    assert.equal(broker.maxOpen, 1)
    assert.equal(broker.sent("connect").length, 4)
})

test("scripted: bytes leave split anywhere or as one segment", async () => {
    const world = new World()
    const broker = world.scripted()
    broker.always({
        connect: c =>
            c.connack(0, false, { pieces: [1, 1, 2] }).after(100, () =>
                c.oneSegment(() => {
                    for (let i = 0; i < 200; ++i) c.pingresp()
                }),
            ),
    })
    const client = new LabClient(world)
    await world.run(10)
    client.connect()
    await world.run(1000)
    assert.deepEqual(client.what, ["open", "1 B", "1 B", "2 B", "400 B"])
})

test("scripted: an overloaded broker serves at its rate, in vain for those who left", async () => {
    const world = new World()
    const broker = world.scripted()
    const overload = new plays.Overload(world, 1, 3, "busy")
    broker.always(overload.play)
    const clients = Array.from({ length: 6 }, (_, i) => {
        const client = new LabClient(world, `c${i}`)
        world.after(10, () => client.connect({ clientId: `c${i}` }))
        return client
    })
    world.after(500, () => clients[1].close())
    await world.run(10_000)
    const { served, wasted, turnedAway } = overload
    assert.deepEqual(
        { served, wasted, turnedAway },
        {
            served: 3,
            wasted: 1,
            turnedAway: 2,
        },
    )
})
