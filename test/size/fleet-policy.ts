// devs/minimal.ts with the fleet's policy from a retained message: what that alone costs.
import * as ds from "@devicescript/core"
import {
    allStrategies,
    defaultPolicy,
    followFleetPolicy,
    readFleetPolicy,
    startClient,
} from "../../src/index"

const fleet = await readFleetPolicy(defaultPolicy())
const mqtt = startClient({
    host: "127.0.0.1",
    policy: fleet.policy(),
    strategies: allStrategies,
})
followFleetPolicy(mqtt, "minimal/policy", fleet)
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
