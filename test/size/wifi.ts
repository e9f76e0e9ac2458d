// devs/minimal.ts following Wi-Fi: what that alone costs.
import * as ds from "@devicescript/core"
import { followLink, startClient, wifiLink } from "../../src/index"

const mqtt = startClient({ host: "127.0.0.1", link: followLink(wifiLink) })
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
while ((await mqtt.publish("minimal/out", "hello")) !== "sent")
    await ds.sleep(1000)
