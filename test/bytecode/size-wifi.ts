// devs/minimal.ts following Wi-Fi: what that alone costs.
import { startMqtt, wifiLink } from "../../src/index"

const mqtt = startMqtt({ host: "127.0.0.1", link: wifiLink })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
