// devs/minimal.ts and the commands of the reference firmware: what that alone costs.
import { serveCommands, startMqtt } from "../../src/index"

const mqtt = startMqtt({ host: "127.0.0.1" })
serveCommands(mqtt, "minimal")
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
