// devs/minimal.ts with MQTT 5: what that alone costs.
import * as ds from "@devicescript/core"
import { mqtt5, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", codec: mqtt5() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
