// A relay that others switch from afar: it obeys "on" and "off" on relay/<who asks>/<key>, and answers each on the
// same topic with a status behind it, as `request(mqtt, "relay", "on")` of another device expects. A request that is
// tried again has the same key: it is answered again, and the relay is not switched twice.
import * as ds from "@devicescript/core"
import { Dedup, messageText, startMqtt, wifiLink } from "../src/index"

const relay = new ds.Relay()
const done = new Dedup(32)
const mqtt = startMqtt({ host: "broker.example", link: wifiLink })

await mqtt.subscribe("relay/+/+", async message => {
    const { topic } = message
    const text = messageText(message)
    if (text !== "on" && text !== "off") {
        await mqtt.publish(`${topic}/400`, "on or off")
        return
    }
    if (done.isFirst(topic)) await relay.enabled.write(text === "on")
    await mqtt.publish(`${topic}/200`, text)
})
