// devs/minimal.ts with an outbox for messages while there is no connection: what that alone costs.
import * as ds from "@devicescript/core"
import { outbox, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", outbox: outbox() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
