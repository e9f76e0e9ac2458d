// bench-lean.ts with the client that startMqtt makes, which has everything. The host says on bench/go what to do: "0" publishes until told otherwise, "-" rests, "?" publishes on bench/count/<how many messages came>.
import * as ds from "@devicescript/core"
import { defaultPolicy, messageText, startMqtt } from "../../src/index"

let mode = "-"
let received = 0

// Back at once: the host takes the connection away again and again, to see what a connect costs.
const policy = defaultPolicy()
policy.minMs = 100
policy.capMs = 200
policy.overloadCapMs = 200
policy.stableMs = 0

const mqtt = startMqtt({ host: "10.0.0.1", policy })
await mqtt.subscribe("bench/in", () => {
    received++
})
await mqtt.subscribe("bench/go", message => {
    mode = messageText(message)
})
while (true) {
    if (mode === "0") {
        for (let i = 0; i < 8; ++i)
            await mqtt.publish("bench/out", "01234567890123456789012345678901")
        await ds.sleep(1)
    } else {
        if (mode === "?") {
            mode = "-"
            await mqtt.publish(`bench/count/${received}`, "-")
        }
        await ds.sleep(20)
    }
}
