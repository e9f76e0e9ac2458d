// Publishes in a loop, to time what a publish costs; api-perf-stock.ts does the same with the stock client.
import * as ds from "@devicescript/core"
import { startMqtt } from "../../src/index"

const mqtt = startMqtt({ host: "10.0.0.1" })
while (mqtt.state() !== "connected") await ds.sleep(10)
await ds.sleep(1000)
console.log("go")
await ds.sleep(1000)
for (let i = 0; i < 2000; ++i) {
    await mqtt.publish("perf/topic", "01234567890123456789012345678901")
    if ((i & 7) === 7) await ds.sleep(1)
}
console.log("done")
