// devs/minimal.ts whose publish and subscribe say what is wrong with what they are given: what that alone costs.
import * as ds from "@devicescript/core"
import { argumentChecks, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", checks: argumentChecks() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
