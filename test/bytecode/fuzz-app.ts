// The firmware's client and commands for the fuzz, in a hurry: what a broken peer costs is seconds of waiting and not
// an hour, so that ten thousand streams are minutes.
import * as ds from "@devicescript/core"
import {
    defaultPolicy,
    mqttAuto,
    serveCommands,
    startMqtt,
} from "../../src/index"

const policy = defaultPolicy()
policy.minMs = 1
policy.capMs = 100
policy.overloadCapMs = 100
policy.stableMs = 0
policy.slowMinMs = 100
policy.slowCapMs = 1000

const client = startMqtt({
    host: "broker",
    keepAliveSeconds: 0,
    codec: mqttAuto(undefined, 4),
    policy,
})
serveCommands(client, "herdless/" + ds.deviceIdentifier("self"))
