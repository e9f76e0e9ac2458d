// Asks a service for the time of day, and gives up with dignity. A responder answers a message on
// time/<device id>/<key> with one on time/<device id>/<key>/200.
import * as ds from "@devicescript/core"
import { messageText, request, startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1" })
while (true) {
    const answer = await request(mqtt, "time", "?", { attempts: 3 })
    if (answer.ok) console.log(`it is ${messageText(answer.message)}`)
    else console.log(`${answer.reason}, after ${answer.attempts} tries`)
    await ds.sleep(60000)
}
