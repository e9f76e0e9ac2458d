// Publishes and subscribes from its first line on, and again while CONNACK is awaited; prints what
// became of each. test/firmware/cases/handshake.test.ts watches the wire.
import { startMqtt } from "../../src/index"

const client = startMqtt({ host: "broker" })
const subscribe = async (filter: string) => {
    const outcome = await client.subscribe(filter, m =>
        console.log(`got ${m.topic}`),
    )
    console.log(`subscribe ${filter} ${outcome}`)
}
let waited = false
client.onState(async state => {
    if (waited || state !== "awaitingConnack") return
    waited = true
    third.start()
    console.log(`publish 4 ${await client.publish("early/4", "four")}`)
})
const first = async () => await subscribe("early/a")
const second = async () => await subscribe("early/b")
const third = async () => await subscribe("early/c")
console.log(`publish 1 ${await client.publish("early/1", "one")}`)
first.start()
console.log(`publish 2 ${await client.publish("early/2", "two")}`)
second.start()
console.log(`publish 3 ${await client.publish("early/3", "three")}`)
