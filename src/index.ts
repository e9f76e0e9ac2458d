// The library's public face: an application imports from here only.
import * as ds from "@devicescript/core"
import { allStrategies } from "./core/backoff"
import type { Explain } from "./core/connection"
import { mustBe } from "./core/int"
import { checkPolicy, defaultPolicy, type Policy } from "./core/policy"
import { explainSocket } from "./core/socket-text"
import { argumentChecks } from "./device/checks"
import {
    Client,
    type Checks,
    type LinkPart,
    type Log,
    type Outbox0,
    type Qos1Port,
    type Strategies,
} from "./device/client"
import { followLink, type LinkHandler } from "./device/link"
import { lineLog } from "./device/log"
import { outbox } from "./device/outbox"
import { checkConnect } from "./mqtt/checks"
import { mqtt311, type MakeCodec } from "./mqtt/codec"
import type { Will } from "./mqtt/encode"
import type { Overflow } from "./mqtt/outbox"
import type { Announcement } from "./mqtt/session"
import { checkTopicName } from "./mqtt/topic"

export {
    Client,
    type Checks,
    type Counters,
    type LinkPart,
    type Log,
    type Outbox0,
    type Outcome,
    type PublishOptions,
    type Qos1Port,
    type Strategies,
} from "./device/client"
export { argumentChecks } from "./device/checks"
export { lineLog } from "./device/log"
export { outbox } from "./device/outbox"
export { explainSocket } from "./core/socket-text"
export { qos1, type FlashPort, type Qos1Options } from "./device/qos1"
export { flashOutbox } from "./device/flash-outbox"
export { dropNewest, dropOldest, latestPerTopic } from "./mqtt/outbox"
export type { Jitter, Policy } from "./core/policy"
export type { Publish as Message } from "./mqtt/packets"
export type { Will } from "./mqtt/encode"
export type { Announcement } from "./mqtt/session"
export { mqtt311, type Codec, type MakeCodec } from "./mqtt/codec"
export { mqtt5, mqttAuto, type Mqtt5Options } from "./mqtt/v5-codec"
export { messageExpiry } from "./mqtt/v5-expiry"
export { serverMoves, type Server } from "./mqtt/servers"
export {
    encodeProperties,
    Owner,
    propertyOf,
    PropertyId,
    type Property,
} from "./mqtt/v5-properties"
export { Dedup } from "./core/dedup"
export { request, type Answer, type RequestOptions } from "./device/request"
export {
    fetchWithRetry,
    type HttpAnswer,
    type HttpOptions,
} from "./device/http"
export { newKey } from "./device/keys"
export { RetryBudget } from "./core/retry-budget"
export { allStrategies } from "./core/backoff"
export { defaultPolicy } from "./core/policy"
export { VERSION } from "./version"
export { followLink, wifiLink, type LinkHandler } from "./device/link"
export { serveCommands } from "./device/commands"
export {
    followFleetPolicy,
    forgetFleetPolicy,
    readFleetPolicy,
    type FleetPolicyControl,
} from "./device/fleet-policy"
export {
    limitRestarts,
    type RestartLimit,
    type RestartOptions,
} from "./device/restart-limit"
export { startWatchdog } from "./device/watchdog"
export { messageText } from "./device/text"

/** What `startMqtt` and `startClient` are given. Only `host` must be. */
export interface ConnectionOptions {
    /** Name or address of the broker. */
    host: string
    /** "tcp" (default) or "tls". The runtime's built-in authorities are trusted. */
    proto?: "tcp" | "tls"
    /** 1..65535; default 1883 for tcp, 8883 for tls. */
    port?: number
    username?: string
    password?: string
    /** 1..65,535 bytes; default "herdless-" and the device id. Two devices must never share one. */
    clientId?: string
    /** Seconds, 0 (off)..65535; default 60. */
    keepAliveSeconds?: number
    /** How long a PINGREQ or SUBSCRIBE may stay unanswered, ms, 1..2^31-1; default 10,000. */
    pingMs?: number
    /** Largest packet taken whole, bytes, 16..8192 (twice that must fit the heap); default 1,024. */
    maxPacketBytes?: number
    /** `qos1()` to publish with QoS 1, which has an outbox of its own. The broker then keeps a session for the device. */
    qos1?: Qos1Port
    /** Published by the broker when the device is lost. */
    will?: Will
    /** Published after every CONNACK. */
    birth?: Announcement
    /** Published before DISCONNECT on `stop()`. */
    farewell?: Announcement
    /** The version of MQTT; default `mqtt311`. */
    codec?: MakeCodec
    /** When to try again; default `defaultPolicy()`. */
    policy?: Policy
}

/** Options of `startMqtt`. */
export interface MqttOptions extends ConnectionOptions {
    /** Most messages that wait while there is no connection, 1..1000; default 16. */
    outboxEntries?: number
    /** Most bytes of all of them, 64..65535; default 4,096. */
    outboxBytes?: number
    /** What goes when one does not fit: `dropOldest` (default), `dropNewest` or `latestPerTopic`. */
    overflow?: Overflow
    /** `wifiLink` to follow Wi-Fi; default: the network counts as up. */
    link?: (changed: LinkHandler) => void
}

/** Options of `startClient`: parts that the program carries only when it names them. */
export interface ClientOptions extends ConnectionOptions {
    /** `lineLog()` to print what is decided, and why. */
    log?: Log
    /** `outbox()` to keep messages while there is no connection; else `publish` says "refused: offline". */
    outbox?: Outbox0
    /** `argumentChecks()` to have `publish` and `subscribe` say what is wrong with what they are given. */
    checks?: Checks
    /** `followLink(wifiLink)` to follow Wi-Fi; default: the network counts as up. */
    link?: LinkPart
    /** `explainSocket` to tell a bad certificate or a lost network from a refused connection. */
    explain?: Explain
    /** `allStrategies` for a policy with a spread or another jitter than proportional; without it such a policy is a RangeError. */
    strategies?: Strategies
    /** Most bytes of a QoS 0 message with its head; default 4,096. */
    maxMessageBytes?: number
}

/**
 * Starts to connect and keeps connected until `stop()`: the client with everything that a person may want
 * to know of it.
 * @throws RangeError naming option, value and range
 */
export function startMqtt(options: MqttOptions): Client {
    checkOptions(options)
    const outboxEntries = orElse(options.outboxEntries, 16)
    const outboxBytes = orElse(options.outboxBytes, 4096)
    mustBe("outboxEntries", outboxEntries, 1, 1000)
    mustBe("outboxBytes", outboxBytes, 64, 65535)
    checkFunction("overflow", options.overflow)
    checkFunction("link", options.link)
    return startClient({
        ...options,
        link: options.link && followLink(options.link),
        log: lineLog(),
        outbox: outbox(outboxEntries, outboxBytes, options.overflow),
        checks: argumentChecks(),
        explain: explainSocket,
        strategies: allStrategies,
        maxMessageBytes: outboxBytes,
    })
}

/**
 * The same for a program that counts bytes: it has the parts that are named, and nothing that is given is checked
 * at run time, so it has to be in range. `startMqtt` is this with all parts.
 */
export function startClient(options: ClientOptions): Client {
    // One object for all, a copy with the defaults filled in: what is not given takes no room.
    const parts: any = { ...options }
    parts.tls = parts.proto === "tls"
    if (parts.tls) fill(parts, "port", 8883)
    fill(parts, "port", 1883)
    fill(parts, "pingMs", 10000)
    fill(parts, "maxMessageBytes", 4096)
    fill(parts, "keepAliveSeconds", 60)
    fill(parts, "maxPacketBytes", 1024)
    fill(parts, "codec", mqtt311)
    if (!parts.clientId)
        parts.clientId = "herdless-" + ds.deviceIdentifier("self")
    if (!parts.policy) parts.policy = defaultPolicy()
    if (!parts.strategies) {
        const { spreadMs, jitter } = parts.policy
        if (spreadMs || jitter !== "proportional")
            throw new RangeError("policy needs strategies")
    }
    parts.cleanSession = true
    parts.connect = parts
    if (parts.qos1) parts.reliable = parts.qos1
    parts.codec = parts.codec(parts.maxPacketBytes, parts)
    return new Client(parts)
}

function fill(parts: any, name: string, value: unknown) {
    if (parts[name] == null) parts[name] = value
}

/** Throws now, rather than at each attempt, for what can't be used or sent. */
function checkOptions(options: ConnectionOptions) {
    const host = options.host
    const proto = options.proto
    const policy = options.policy
    const qos1 = options.qos1
    if (typeof host !== "string" || !host)
        throw new RangeError("host is empty: must be a name or an address")
    if (proto && proto !== "tls" && proto !== "tcp")
        throw new RangeError(`proto is ${proto}: must be tcp or tls`)
    mustBe("port", orElse(options.port, 1883), 1, 65535)
    const keepAliveSeconds = orElse(options.keepAliveSeconds, 60)
    mustBe("keepAliveSeconds", keepAliveSeconds, 0, 65535)
    mustBe("pingMs", orElse(options.pingMs, 10000), 1, 0x7fffffff)
    const maxPacketBytes = orElse(options.maxPacketBytes, 1024)
    mustBe("maxPacketBytes", maxPacketBytes, 16, 8192)
    if (policy) checkPolicy(policy)
    checkText("username", options.username)
    checkText("clientId", options.clientId)
    checkBytes("password", options.password)
    checkMessage("will", options.will)
    checkMessage("birth", options.birth)
    checkMessage("farewell", options.farewell)
    const username = options.username
    const password = options.password
    const will = options.will
    checkConnect({
        clientId: options.clientId || "herdless",
        keepAliveSeconds,
        cleanSession: true,
        username,
        password,
        will,
    })
    checkFunction("codec", options.codec)
    if (qos1 && !qos1.attach)
        throw new RangeError(`qos1 is ${qos1}: must be qos1()`)
}

function checkMessage(name: string, message: Announcement | Will) {
    if (!message) return
    const topic = message.topic
    const payload = message.payload
    if (typeof topic !== "string") notText(`${name}.topic`, topic)
    const fault = checkTopicName(topic)
    if (fault !== undefined) throw new RangeError(`${name}.topic ${fault}`)
    if (payload === undefined) notText(`${name}.payload`, payload)
    checkBytes(`${name}.payload`, payload)
}

function checkText(name: string, value: string) {
    if (value !== undefined && typeof value !== "string") notText(name, value)
}

function checkFunction(name: string, value: unknown) {
    if (value && typeof value !== "function")
        throw new RangeError(`${name} is ${value}: must be a function`)
}

function checkBytes(name: string, value: string | Buffer) {
    if (!(value instanceof Buffer)) checkText(name, value as string)
}

function notText(name: string, value: any) {
    throw new RangeError(`${name} is ${value}: must be text`)
}

function orElse(value: number | undefined, otherwise: number): number {
    return value === undefined ? otherwise : value
}
