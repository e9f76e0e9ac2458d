// devs/minimal.ts with every part that startMqtt brings: what a program costs before it names any feature.
import { startMqtt } from "../../src/index"

const mqtt = startMqtt({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
