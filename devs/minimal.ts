// The smallest useful program: connect, listen to one topic, say one thing.
// Replace the host by your broker's.
import { startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
