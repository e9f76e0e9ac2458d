// Posts a reading over HTTP while MQTT steps aside. The key stays the same through all tries, so that the server can tell.
import { fetchWithRetry, newKey, qos1, startMqtt } from "../src/index"

const mqtt = startMqtt({ host: "127.0.0.1", qos1: qos1() })
const answer = await fetchWithRetry(mqtt, "http://127.0.0.1:8080/readings", {
    method: "POST",
    body: '{"t":21}',
    idempotencyKey: newKey(),
})
console.log(answer.ok ? `stored: ${answer.status}` : answer.reason)
