// The soak's watch over QoS 1 out: it finds what it is for.
import assert from "node:assert/strict"
import { test } from "node:test"
import type { Packet } from "../../host/lab/mqtt-wire"
import { OutboundWatch } from "../../host/soak/outbound-watch"

function watched(run: (w: OutboundWatch) => void): string[] {
    const found: string[] = []
    run(
        new OutboundWatch((invariant, what) =>
            found.push(`${invariant}: ${what}`),
        ),
    )
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

test("what it finds", () => {
    const rows: [string, (w: OutboundWatch) => void][] = [
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
