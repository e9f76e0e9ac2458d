// devs/minimal.ts with the restart limit: what that alone costs.
import * as ds from "@devicescript/core"
import { limitRestarts, startClient } from "../../src/index"

await limitRestarts({ version: "0" })
const mqtt = startClient({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
