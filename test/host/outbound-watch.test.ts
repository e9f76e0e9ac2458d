// The soak's watch over QoS 1 out: it finds what it is for.
import assert from "node:assert/strict"
import { test } from "node:test"
import type { Packet } from "../../host/lab/mqtt-wire"
import { OutboundWatch } from "../../host/soak/outbound-watch"

function watched(run: (w: OutboundWatch, flash: string[]) => void): string[] {
    const found: string[] = []
    const flash: string[] = []
    const watch = new OutboundWatch(
        (invariant, what) => found.push(`${invariant}: ${what}`),
        () => flash,
    )
    run(watch, flash)
    return found
}

const publish = (
    messageId: number,
    text: string,
    { dup = false, topic = "t" } = {},
) =>
    ({
        cmd: "publish",
        qos: 1,
        retain: false,
        topic,
        payload: Buffer.from(text),
        messageId,
        dup,
    }) as Packet
const puback = (messageId: number) => ({ cmd: "puback", messageId }) as Packet

test("a message accepted, sent, sent again with DUP, acknowledged: nothing to report", () => {
    const found = watched(w => {
        w.heard("> tx 1")
        w.sent(publish(1, "k1 1"))
        w.dialled()
        w.sent(publish(1, "k1 1", { dup: true }))
        w.received(puback(1))
        w.heard("> fx 1 acknowledged")
        w.settledAll()
    })
    assert.deepEqual(found, [])
})

test("a message that was in flash at a start, sent first and acknowledged, or closed on three times and gone: nothing to report", () => {
    const found = watched((w, flash) => {
        w.heard("> tx 1")
        w.sent(publish(1, "k1 1"))
        flash.push("k1 1", "k2 2")
        w.restarted()
        assert.equal(w.restored, 2)
        w.sent(publish(1, "k1 1"))
        w.sent(publish(2, "k2 2"))
        w.heard("> tx 1")
        w.sent(publish(3, "k3 1"))
        w.received(puback(1))
        w.received(puback(3))
        w.heard("> fx 1 acknowledged")
        for (let id = 4; id < 6; ++id) {
            w.dialled()
            w.sent(publish(id, "k2 2", { dup: true }))
        }
        flash.length = 0
        w.settledAll()
        assert.equal(w.dropped, 1)
    })
    assert.deepEqual(found, [])
})

test("what it finds", () => {
    const rows: [string, (w: OutboundWatch, flash: string[]) => void][] = [
        [
            "flash outbox: in flash at a start and never acknowledged: k1",
            (w, flash) => {
                flash.push("k1 7")
                w.restarted()
                w.sent(publish(1, "k1 7"))
                w.settledAll()
            },
        ],
        [
            "flash outbox: in flash at a start and never acknowledged: k1",
            (w, flash) => {
                flash.push("k1 7")
                w.restarted()
                // Gone without having been sent.
                flash.length = 0
                w.restarted()
                w.settledAll()
            },
        ],
        [
            "order: 2 on t after a later one",
            (w, flash) => {
                flash.push("k1 1", "k2 2", "k3 3")
                w.restarted()
                w.sent(publish(1, "k3 3"))
                w.sent(publish(2, "k2 2"))
            },
        ],
        [
            "order: 7 on t after a later one",
            (w, flash) => {
                flash.push("k1 7")
                w.restarted()
                w.sent(publish(1, "k2 1"))
                w.sent(publish(2, "k1 7"))
            },
        ],
        [
            "once: k1 again, on another topic",
            w => {
                w.sent(publish(1, "k1 1"))
                w.sent(publish(1, "k1 1", { topic: "u" }))
            },
        ],
        [
            "once: accepted and never acknowledged: 1",
            w => {
                w.heard("> tx 1")
                w.settledAll()
            },
        ],
        [
            "once: 1 acknowledged by nobody",
            w => {
                w.heard("> tx 1")
                w.sent(publish(1, "k1 1"))
                w.received(puback(2))
                w.heard("> fx 1 acknowledged")
            },
        ],
        [
            "once: message 1: dropped: outbox full",
            w => w.heard("> fx 1 dropped: outbox full"),
        ],
        [
            "once: 1 again, with another key",
            w => {
                w.sent(publish(1, "k1 1"))
                w.sent(publish(2, "k2 1"))
            },
        ],
        [
            "once: 1 is new and has DUP",
            w => w.sent(publish(1, "k1 1", { dup: true })),
        ],
        [
            "order: 1 on t after a later one",
            w => {
                w.sent(publish(1, "k2 2"))
                w.sent(publish(2, "k1 1"))
            },
        ],
        [
            "once: k1 passed the receiver's Dedup twice",
            w => {
                const arrive = (key: string) =>
                    w.published({
                        topic: "t",
                        payload: Buffer.from(`${key} 1`),
                        qos: 1,
                        retain: false,
                        atMs: 0,
                        clientId: "c",
                        dup: true,
                    })
                arrive("k1")
                // So late that the receiver has forgotten it.
                for (let i = 0; i < 64; ++i) arrive(`other${i}`)
                arrive("k1")
            },
        ],
    ]
    for (const [what, run] of rows) assert.deepEqual(watched(run), [what])
})
