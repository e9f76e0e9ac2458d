// An application that makes HTTP requests between its messages, for test/firmware/cases/http.test.ts; what it sees and is told
// it prints, one JSON object a line.
import * as ds from "@devicescript/core"
import { readRaw } from "../../src/device/settings"
import {
    defaultPolicy,
    fetchWithRetry,
    limitRestarts,
    qos1,
    startMqtt,
    startWatchdog,
} from "../../src/index"

function say(what: any) {
    console.data(JSON.stringify(what) as any)
}

const limit = await limitRestarts({ version: "1" })
const list: any[] = JSON.parse(await readRaw("SCENE"))
const policy = defaultPolicy()
policy.spreadMs = JSON.parse(await readRaw("SPREAD"))
const mqtt = startMqtt({ host: "broker", qos1: qos1(), policy })
startWatchdog(mqtt, limit)
mqtt.onState(state => {
    say({ state })
})
while (mqtt.state() !== "connected") await ds.sleep(10)
await ds.sleep(1000)
for (const options of list) {
    const ask = async (o: any) => {
        const fromMs = ds.millis()
        const a = await fetchWithRetry(mqtt, "http://web/x", o)
        const { ok, status, attempts, reason } = a
        const body = a.body ? a.body.toString() : ""
        say({
            http: status,
            ok,
            attempts,
            reason,
            body,
            tookMs: ds.millis() - fromMs,
        })
    }
    ask.start(options)
    await ds.sleep(500)
    say({ is: await mqtt.publish("t", "meanwhile", { qos: 1 }) })
    await ds.sleep(options.pauseMs ? options.pauseMs : 30000)
}
say({ played: "http" })
