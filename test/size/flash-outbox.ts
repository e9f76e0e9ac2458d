// devs/minimal.ts with QoS 1 whose messages are kept in flash: what that alone costs.
import * as ds from "@devicescript/core"
import { flashOutbox, qos1, startClient } from "../../src/index"

const flash = await flashOutbox()
const mqtt = startClient({ host: "127.0.0.1", qos1: qos1({ flash }) })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello", { qos: 1 })) !== "accepted")
    await ds.sleep(1000)
