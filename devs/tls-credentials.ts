// TLS and a password, both from settings: nothing secret is in the program. Put this into .env.local, which git ignores:
//
//     MQTT_HOST=broker.example
//     MQTT_USER=lamp
//     MQTT_PWD="its password, in double quotes"
//
// The runtime trusts the authorities built into it. Certificates with a private authority don't work on an ESP32.
import { readSetting } from "@devicescript/settings"
import { startMqtt, wifiLink } from "../src/index"

const host = await readSetting("MQTT_HOST", "")
const username = await readSetting("MQTT_USER", "")
const password = await readSetting("MQTT_PWD", "")

if (!host || !username) {
    console.error("MQTT_HOST and MQTT_USER must be in .env.local")
} else {
    const mqtt = startMqtt({
        host,
        proto: "tls",
        username,
        password: password ? password : undefined,
        link: wifiLink,
    })
    await mqtt.publish(`lamp/${username}`, "here")
}
