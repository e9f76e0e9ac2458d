// Prints every message under `t/`, in the order the handlers get them; test/firmware/cases compares
// what it says when the same bytes come whole and in pieces.
import { messageText, startMqtt } from "../../src/index"

const client = startMqtt({ host: "broker" })
let count = 0
await client.subscribe(
    "t/#",
    message => {
        const { topic, qos, retain, dup } = message
        const text = messageText(message)
        console.log(
            `got ${++count} ${topic} ${qos} ${retain} ${dup} ${text.length} ${text.slice(0, 40)}`,
        )
    },
    1,
)
