// An alarm that arrives, even if the power goes while the broker is away: QoS 1 with a flash-backed outbox.
// The receiver leaves out what comes twice by the key in front (`new Dedup(32).isFirst(key)`).
import * as ds from "@devicescript/core"
import { flashOutbox, newKey, qos1, startMqtt, wifiLink } from "../src/index"

const flash = await flashOutbox()
const mqtt = startMqtt({
    host: "broker.example",
    link: wifiLink,
    qos1: qos1({ flash }),
})
const button = new ds.Button()

button.down.subscribe(async () => {
    const is = await mqtt.publish("alarm", `${newKey()} pressed`, { qos: 1 })
    console.log(is)
})
