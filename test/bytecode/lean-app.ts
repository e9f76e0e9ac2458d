// An application on startClient with no parts: it publishes every second, and prints what became of that when it changes.
import * as ds from "@devicescript/core"
import { defaultPolicy, startClient } from "../../src/index"

// What it has no strategy for it does not take.
const spread = defaultPolicy()
spread.spreadMs = 1000
try {
    startClient({ host: "broker", policy: spread })
} catch (e) {
    console.log((e as Error).message)
}
const mqtt = startClient({ host: "broker" })
mqtt.onState(state => {
    console.log(state)
})
await mqtt.subscribe("lean/in", message => {
    console.log(`got ${message.payload.length}`)
})
let last = ""
while (true) {
    const outcome = await mqtt.publish("lean/out", "x")
    if (outcome !== last) console.log(outcome)
    last = outcome
    await ds.sleep(1000)
}
