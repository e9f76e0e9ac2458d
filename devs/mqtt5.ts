// The smallest program with MQTT 5: as minimal.ts, and when the broker refuses or ends the connection the log says
// why in its own words. `mqttAuto()` in place of `mqtt5()` falls back to MQTT 3.1.1 where there is no more.
import { mqtt5, startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1", codec: mqtt5() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
