// An application with a flash-backed outbox, for test/firmware/cases/flash-outbox.test.ts: each start publishes as many
// messages as setting COUNT says, each `<key> <number>`, to two topics in turn, and prints what it is told.
import * as ds from "@devicescript/core"
import { log } from "../../src/device/log"
import { readRaw } from "../../src/device/settings"
import {
    dropNewest,
    flashOutbox,
    newKey,
    qos1,
    startMqtt,
    VERSION,
} from "../../src/index"

const id = ds.deviceIdentifier("self")
log({ ev: "boot", id, version: VERSION, cause: "test", upMs: ds.millis() })

const count = JSON.parse(await readRaw("COUNT"))
const padding = JSON.parse(await readRaw("PADDING"))
const flash = await flashOutbox()
const client = startMqtt({
    host: "broker",
    qos1: qos1({ overflow: dropNewest, flash }),
})

function say(what: any) {
    console.data(JSON.stringify(what) as any)
}

async function tell(number: number) {
    const topic = number & 1 ? "a" : "b"
    const rest = Buffer.alloc(padding).toString("hex").slice(0, padding)
    const text = `${newKey()} ${number} ${rest}`
    const settled = (outcome: string) => say({ settled: number, outcome })
    const is = await client.publish(topic, text, { qos: 1, settled })
    say({ pub: number, is })
}

for (let number = 1; number <= count; ++number) {
    await tell(number)
    // Each has a moment of its own, and so has its write.
    await ds.sleep(100)
}
while ((await readRaw("LEAVE")) === undefined) await ds.sleep(1000)
await flash.save()
say({ saved: true })
ds.reboot()
