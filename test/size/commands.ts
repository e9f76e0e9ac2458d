// devs/minimal.ts with the commands of the reference firmware: what that alone costs.
import * as ds from "@devicescript/core"
import { serveCommands, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1" })
serveCommands(mqtt, "minimal")
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
