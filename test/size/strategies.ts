// devs/minimal.ts with every strategy that a policy can ask for: what that alone costs.
import * as ds from "@devicescript/core"
import { allStrategies, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", strategies: allStrategies })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
