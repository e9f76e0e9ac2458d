// devs/minimal.ts that prints what it decides: what that alone costs.
import * as ds from "@devicescript/core"
import { lineLog, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", log: lineLog() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
