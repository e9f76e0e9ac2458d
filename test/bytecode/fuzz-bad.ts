// A firmware with a mistake for the fuzz to find: an empty payload ends it.
import * as ds from "@devicescript/core"
import { defaultPolicy, startMqtt, type Message } from "../../src/index"

const policy = defaultPolicy()
policy.minMs = 1
policy.capMs = 100
policy.overloadCapMs = 100
policy.stableMs = 0
const client = startMqtt({ host: "broker", policy })

async function die() {
    throw new Error("an empty payload")
}

const filter = "herdless/" + ds.deviceIdentifier("self") + "/cmd/+"
await client.subscribe(filter, (message: Message) => {
    if (message.payload.length === 0) die.start()
})
