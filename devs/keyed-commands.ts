// Commands that must run once and only once: the sender puts a key into each, the receiver remembers the keys.
// The sender publishes "<key> <what>" to "pump/cmd" with QoS 1, and the same text again if it is not sure.
import { Dedup, messageText, newKey, qos1, startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1", qos1: qos1() })
const done = new Dedup(32)

await mqtt.subscribe(
    "pump/cmd",
    async message => {
        const text = messageText(message)
        const space = text ? text.indexOf(" ") : -1
        if (space < 0) return
        const key = text.slice(0, space)
        if (!done.isFirst(key)) {
            console.log(`again: ${key}`)
            return
        }
        console.log(`run: ${text.slice(space + 1)}`)
        // What goes out has a key of its own: whoever counts these can leave out what comes twice.
        await mqtt.publish("pump/done", `${newKey()} ${key}`, { qos: 1 })
    },
    1,
)
