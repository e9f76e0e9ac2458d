// The smallest useful program: connect, listen to one topic, say one thing. It names none of the
// parts that `startMqtt` brings (log, outbox, checks), and so carries none.
// Replace the host by your broker's.
import * as ds from "@devicescript/core"
import { startClient } from "../src/index"

const mqtt = startClient({ host: "127.0.0.1" })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
