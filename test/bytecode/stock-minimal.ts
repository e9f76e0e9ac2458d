// The stock MQTTClient doing what devs/minimal.ts does, to compare sizes with.
import { startMQTTClient } from "@devicescript/net"

const mqtt = await startMQTTClient({
    host: "127.0.0.1",
    proto: "tcp",
    port: 1883,
})
await mqtt.subscribe("minimal/in", async message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
