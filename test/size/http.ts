// devs/minimal.ts that posts something over HTTP before it says something over MQTT: what that alone costs.
import * as ds from "@devicescript/core"
import { fetchWithRetry, qos1, startClient } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", qos1: qos1() })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await fetchWithRetry(mqtt, "http://127.0.0.1:8080/", {
    method: "POST",
    body: "?",
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
