// devs/minimal.ts, the restart limit and the watchdog on top of it: what that alone costs.
import { limitRestarts, startMqtt, startWatchdog } from "../../src/index"

const limit = await limitRestarts({ version: "0" })
const mqtt = startMqtt({ host: "127.0.0.1" })
startWatchdog(mqtt, limit)
await mqtt.subscribe("minimal/in", message => {
    console.log(message.topic)
})
await mqtt.publish("minimal/out", "hello")
