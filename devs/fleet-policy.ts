// Backs off as the whole fleet is told to: who runs the broker publishes one retained message, with a higher issue
// number each time, and every device has it at once, also those that come later, and keeps it over power cuts:
//
//     mosquitto_pub -r -t lamps/policy -m '{"issue":1,"minMs":2000,"capMs":120000,"spreadMs":0,
//         "overloadCapMs":3600000,"jitter":"proportional"}'
import {
    defaultPolicy,
    followFleetPolicy,
    readFleetPolicy,
    startMqtt,
    wifiLink,
} from "../src/index"

const fleet = await readFleetPolicy(defaultPolicy())
const mqtt = startMqtt({
    host: "broker.example",
    link: wifiLink,
    policy: fleet.policy(),
})
followFleetPolicy(mqtt, "lamps/policy", fleet)
