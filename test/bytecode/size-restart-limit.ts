// devs/minimal.ts and the restart limit: what that alone costs.
import { limitRestarts, startMqtt } from "../../src/index"

await limitRestarts({ version: "0" })
const mqtt = startMqtt({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
