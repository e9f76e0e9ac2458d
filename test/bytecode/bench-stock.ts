// The bench's load with the stock MQTTClient; bench-lean.ts does the same with ours. The host says on bench/go what
// to do: "0" and "1" publish with that QoS until told otherwise, "-" rests, "?" publishes on bench/count/<how many messages came>.
import * as ds from "@devicescript/core"
import { startMQTTClient } from "@devicescript/net"

let mode = "-"
let received = 0

const mqtt = await startMQTTClient({
    host: "10.0.0.1",
    proto: "tcp",
    port: 1883,
    // Its only way to try again; 50 s as it comes.
    watchdogInterval: 1000,
})
await mqtt.subscribe("bench/in", async () => {
    received++
})
await mqtt.subscribe("bench/go", async message => {
    mode = message.content.toString()
})
while (true) {
    if (mode === "0") {
        for (let i = 0; i < 8; ++i)
            await mqtt.publish("bench/out", "01234567890123456789012345678901")
        await ds.sleep(1)
    } else if (mode === "1") {
        for (let i = 0; i < 4; ++i)
            await mqtt.publish(
                "bench/out",
                "01234567890123456789012345678901",
                1,
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
