// bench-lean.ts with QoS 1 in the program: "1" publishes with it.
import * as ds from "@devicescript/core"
import { defaultPolicy, messageText, qos1, startClient } from "../../src/index"

let mode = "-"
let received = 0

const policy = defaultPolicy()
policy.minMs = 100
policy.capMs = 200
policy.overloadCapMs = 200
policy.stableMs = 0

const mqtt = startClient({ host: "10.0.0.1", policy, qos1: qos1() })
await mqtt.subscribe("bench/in", () => {
    received++
})
await mqtt.subscribe("bench/go", message => {
    mode = messageText(message)
})
while (true) {
    if (mode === "1") {
        for (let i = 0; i < 4; ++i)
            await mqtt.publish(
                "bench/out",
                "01234567890123456789012345678901",
                { qos: 1 },
            )
        // Until the broker has answered all four.
        await ds.sleep(5)
    } else {
        if (mode === "?") {
            mode = "-"
            await mqtt.publish(`bench/count/${received}`, "-")
        }
        await ds.sleep(20)
    }
}
