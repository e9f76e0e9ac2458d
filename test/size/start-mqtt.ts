// devs/minimal.ts as startMqtt makes it, with all of log, outbox, checks and explanations: what that alone costs.
import * as ds from "@devicescript/core"
import { startMqtt } from "../../src/index"

const mqtt = startMqtt({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
