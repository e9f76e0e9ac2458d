// Publishes in a loop with the stock MQTTClient; api-perf.ts does the same with ours.
import * as ds from "@devicescript/core"
import { startMQTTClient } from "@devicescript/net"

const mqtt = await startMQTTClient({
    host: "10.0.0.1",
    proto: "tcp",
    port: 1883,
})
await ds.sleep(1000)
console.log("go")
await ds.sleep(1000)
for (let i = 0; i < 2000; ++i) {
    await mqtt.publish("perf/topic", "01234567890123456789012345678901")
    if ((i & 7) === 7) await ds.sleep(1)
}
console.log("done")
