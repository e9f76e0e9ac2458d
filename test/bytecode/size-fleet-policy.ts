// devs/minimal.ts and the fleet's policy from a retained message: what that alone costs.
import {
    defaultPolicy,
    followFleetPolicy,
    readFleetPolicy,
    startMqtt,
} from "../../src/index"

const fleet = await readFleetPolicy(defaultPolicy())
const mqtt = startMqtt({ host: "127.0.0.1", policy: fleet.policy() })
followFleetPolicy(mqtt, "minimal/policy", fleet)
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
