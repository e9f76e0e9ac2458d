// devs/minimal.ts that asks another device before it says something: what that alone costs.
import * as ds from "@devicescript/core"
import { request, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await request(mqtt, "minimal/ask", "?", { attempts: 1 })
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
