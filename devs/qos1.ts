// devs/minimal.ts with QoS 1: the message is kept until the broker has it.
import { qos1, startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1", qos1: qos1() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello", {
    qos: 1,
    settled: outcome => {
        console.log(outcome)
    },
})
