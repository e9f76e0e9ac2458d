// A small application for the soak: handlers with overlapping filters that print what they are given,
// one that throws, one that blocks, and telemetry. host/soak/delivery-watch.ts reads what it prints.
import * as ds from "@devicescript/core"
import { log } from "../../src/device/log"
import {
    dropNewest,
    flashOutbox,
    messageText,
    newKey,
    qos1,
    startMqtt,
    VERSION,
    type Message,
} from "../../src/index"

const id = ds.deviceIdentifier("self")
const upMs = ds.millis()
log({ ev: "boot", id, version: VERSION, cause: "soak", upMs })

const client = startMqtt({
    host: "broker",
    keepAliveSeconds: 30,
    // What was accepted stays, so that all of it has to arrive.
    qos1: qos1({ overflow: dropNewest, flash: await flashOutbox() }),
})
const base = "soak/" + id

function print(handler: number, message: Message) {
    const { dup, retain, qos, payload, topic } = message
    const flags = (dup ? "d" : "-") + (retain ? "r" : "-") + qos
    const text = messageText(message)
    const head = text === undefined ? "?" : text.slice(0, 12)
    console.log(`rx ${handler} ${flags} ${payload.length} ${topic} ${head}`)
}

/** Subscribes, again and again while the broker refuses. */
function listen(filter: string, qos: 0 | 1, on: (m: Message) => ds.AsyncVoid) {
    const ask = async () => {
        while (
            (await client.subscribe(filter, on, qos)).slice(0, 7) === "refused"
        )
            await ds.sleep(30000)
    }
    ask.start()
}

// The filters and their numbers are in host/soak/cast.ts, too.
listen(base + "/#", 0, m => print(0, m))
listen(base + "/a/+", 1, m => print(1, m))
listen(base + "/a/b", 1, m => print(2, m))
listen(base + "/throw", 0, m => {
    print(3, m)
    throw new Error("an application's own mistake")
})
listen(base + "/block", 0, async m => {
    print(4, m)
    await ds.sleep(3000)
})
listen("other/+/x", 1, m => print(5, m))

/** Publishes with QoS 1, and says what it is told; host/soak/outbound-watch.ts reads it. */
async function tell(topic: string, number: number) {
    const settled = (outcome: string) => {
        console.log(`fx ${number} ${outcome}`)
    }
    const text = `${newKey()} ${number}`
    const is = await client.publish(topic, text, { qos: 1, settled })
    if (is === "accepted") console.log(`tx ${number}`)
}

let n = 0
while (true) {
    await client.publish("up/" + id, `{"n":${++n}}`)
    // Two at once, so that there is something in flight when there is trouble.
    await tell("once/" + id + "/a", n + n)
    await tell("once/" + id + "/b", n + n + 1)
    await ds.sleep(10000)
}
