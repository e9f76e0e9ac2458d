// A thermometer: it reports when the temperature has changed by half a degree, and once in ten minutes in any case.
// `retain` lets a dashboard that comes later see the latest value at once.
import * as ds from "@devicescript/core"
import { startMqtt, wifiLink } from "../src/index"

const STEP_DEGREES = 0.5
const LONGEST_MS = 600000
const TOPIC = "home/" + ds.deviceIdentifier("self") + "/temperature"

const sensor = new ds.Temperature()
const mqtt = startMqtt({
    host: "broker.example",
    link: wifiLink,
    // When the device is lost, the broker takes the stale value away.
    will: { topic: TOPIC, payload: "", qos: 0, retain: true },
})

let reported = -1000
let reportedMs = 0
sensor.reading.subscribe(async degrees => {
    const nowMs = ds.millis()
    const change = Math.abs(degrees - reported)
    if (change < STEP_DEGREES && nowMs - reportedMs < LONGEST_MS) return
    reported = degrees
    reportedMs = nowMs
    const tenths = Math.round(degrees * 10)
    await mqtt.publish(TOPIC, `${tenths / 10}`, { retain: true })
})
