// A firmware with a mistake for the soak to find: once it has been connected it has no patience, and
// asks for the next attempt at once whenever it should wait.
import * as ds from "@devicescript/core"
import { log } from "../../src/device/log"
import { serveCommands, startMqtt, VERSION } from "../../src/index"

const id = ds.deviceIdentifier("self")
log({ ev: "boot", id, version: VERSION, cause: "bad", upMs: ds.millis() })

const client = startMqtt({ host: "broker" })
serveCommands(client, "herdless/" + id)
client.onState(state => {
    if (state === "holdOff" && client.counters.connects > 0) client.retryNow()
})
