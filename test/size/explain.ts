// devs/minimal.ts that tells one failure of a socket from another: what that alone costs.
import * as ds from "@devicescript/core"
import { explainSocket, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", explain: explainSocket })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
