// An application that doesn't want to be rebooted: it says no, and at last even fails to answer.
import * as ds from "@devicescript/core"
import {
    limitRestarts,
    startMqtt,
    startWatchdog,
    wifiLink,
} from "../../src/index"

const limit = await limitRestarts({ version: "1" })
const client = startMqtt({
    host: "broker",
    proto: "tls",
    port: 1883,
    link: wifiLink,
})
startWatchdog(client, limit, () => {
    if (ds.millis() > 3600000) throw new Error("no answer")
    return false
})
