// The reference firmware: settings -> connection -> telemetry.
import * as ds from "@devicescript/core"
import {
    choiceSetting,
    intSetting,
    refuse,
    textSetting,
    type ConfigSource,
} from "./core/config"
import { below, wholeSeconds } from "./core/int"
import { readPolicy } from "./core/policy-settings"
import type { FleetPolicyState } from "./core/fleet-policy"
import { log } from "./device/log"
import { deviceRandom } from "./device/random"
import { readSettings } from "./device/settings"
import { parseServers, type Server } from "./mqtt/servers"
import { checkTopicName } from "./mqtt/topic"
import {
    followFleetPolicy,
    forgetFleetPolicy,
    limitRestarts,
    mqttAuto,
    readFleetPolicy,
    serveCommands,
    serverMoves,
    startMqtt,
    startWatchdog,
    type MakeCodec,
    type MqttOptions,
    VERSION,
    wifiLink,
    type Client,
} from "./index"

/** Every key the firmware reads; README has the table. */
const KEYS = [
    "MQTT_HOST",
    "MQTT_PORT",
    "MQTT_PROTO",
    "MQTT_VERSION",
    "MQTT_SERVERS",
    "MQTT_USER",
    "MQTT_PWD",
    "MQTT_PREFIX",
    "KEEP_ALIVE",
    "RETRY_MIN",
    "RETRY_CAP",
    "OVERLOAD_CAP",
    "JITTER",
    "SPREAD",
    "MAX_ATTEMPTS",
    "CONNACK_WAIT",
    "DIAL_WAIT",
    "PING_WAIT",
    "STABLE",
    "MAX_PACKET",
    "FLEET_POLICY",
    "TELEMETRY",
]

/** The first part of every topic; one that can't be part of a topic is refused. */
function readPrefix(from: ConfigSource): string {
    const prefix = textSetting(from, "MQTT_PREFIX", 1, 60, "herdless")
    if (checkTopicName(prefix) === undefined) return prefix
    refuse(from, "MQTT_PREFIX", prefix, "no + and no #", "herdless")
    return "herdless"
}

/** Where the broker may send the device; a list with a mistake in it is refused whole. */
function readServers(from: ConfigSource, port: number): Server[] {
    const text = textSetting(from, "MQTT_SERVERS", 1, 180, "")
    const servers = parseServers(text, port)
    if (servers !== undefined) return servers
    const allowed = "host or host:port, separated by spaces"
    refuse(from, "MQTT_SERVERS", text, allowed, undefined)
    return []
}

/** MQTT 5 where the broker has it; or one version, whatever it says. */
function readCodec(from: ConfigSource, port: number): MakeCodec {
    const version = choiceSetting(
        from,
        "MQTT_VERSION",
        ["auto", "5", "3"],
        "auto",
    )
    const servers = readServers(from, port)
    const options = servers.length ? { servers: serverMoves(servers) } : {}
    if (version === "auto") return mqttAuto(options)
    return mqttAuto(options, version === "5" ? 5 : 4)
}

/** The connection the settings describe, or undefined when there is no host. */
function connect(
    from: ConfigSource,
    topic: string,
    fleet: FleetPolicyState,
): Client | undefined {
    const host = textSetting(from, "MQTT_HOST", 1, 100, "")
    if (!host) {
        const allowed = "a line MQTT_HOST=... in .env.local"
        const used = "none, so there is no connection"
        refuse(from, "MQTT_HOST", "missing", allowed, used)
        return undefined
    }
    const proto = choiceSetting(from, "MQTT_PROTO", ["tcp", "tls"], "tcp")
    const port = intSetting(
        from,
        "MQTT_PORT",
        1,
        65535,
        proto === "tls" ? 8883 : 1883,
    )
    const status = topic + "/status"
    const username = textSetting(from, "MQTT_USER", 1, 180, undefined)
    let password = textSetting(from, "MQTT_PWD", 1, 180, undefined)
    if (password && !username) {
        // [MQTT-3.1.2-22]: no password without a user name.
        const allowed = "only together with MQTT_USER"
        refuse(from, "MQTT_PWD", password, allowed, undefined)
        password = undefined
    }
    const options: MqttOptions = {
        host,
        proto: proto as "tcp" | "tls",
        port,
        codec: readCodec(from, port),
        username,
        password,
        keepAliveSeconds: intSetting(from, "KEEP_ALIVE", 0, 65535, 60),
        pingMs: intSetting(from, "PING_WAIT", 100, 600000, 10000),
        maxPacketBytes: intSetting(from, "MAX_PACKET", 128, 8192, 1024),
        will: { topic: status, payload: "offline", qos: 0, retain: true },
        birth: { topic: status, payload: "online", retain: true },
        farewell: { topic: status, payload: "offline", retain: true },
        policy: fleet.policy(),
        link: wifiLink,
    }
    try {
        return startMqtt(options)
    } catch (e) {
        // Whatever is wrong with the settings, a crash loop would not cure it.
        log({ ev: "halt", reason: (e as Error).message })
        return undefined
    }
}

// First of all, and before any network: a program that crashes again and again stays here for a while.
const button = new ds.Button()
const limit = await limitRestarts({ version: VERSION, button })

const source = await readSettings(KEYS, log)
if (limit.problem === "missing" && source.found === 0) {
    // The runtime formats its store when the power is cut inside a write.
    const used = "an empty store: new, or formatted"
    refuse(source, "RST", "missing", "a record, or at least one setting", used)
}
const prefix = readPrefix(source)
const topic = prefix + "/" + ds.deviceIdentifier("self")
const fleet = await readFleetPolicy(readPolicy(source))
const follows = choiceSetting(source, "FLEET_POLICY", ["on", "off"], "on")
if (follows === "off") await forgetFleetPolicy(fleet)
const everyMs = intSetting(source, "TELEMETRY", 1, 86400, 60) * 1000
const client = connect(source, topic, fleet)
if (client) {
    startWatchdog(client, limit)
    if (follows === "off") serveCommands(client, topic, limit)
    else
        serveCommands(
            client,
            topic,
            limit,
            followFleetPolicy(client, prefix + "/policy", fleet),
        )
    // Devices switched on together must not report together for ever.
    await ds.sleep(1 + below(everyMs, deviceRandom()))
}
while (client) {
    const { losses, dropped } = client.counters
    const seconds = wholeSeconds(ds.millis())
    await client.publish(
        topic + "/telemetry",
        JSON.stringify({ up: seconds, reconnects: losses, drops: dropped }),
    )
    await ds.sleep(everyMs)
}
