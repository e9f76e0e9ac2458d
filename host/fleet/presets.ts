// The policies the simulator knows by name: ours, the plain strategies with a fixed cap, and the
// peers, each by the formula in its source (the commit is named). `n` counts from 0: the wait
// after the loss itself. What a peer leaves to its user is its default, or said.
import { defaultPolicy, type Jitter, type Policy } from "../../src/core/policy"
import { formula, ours, type Formula, type PolicyMaker } from "./policy"

/** What the presets need to know of the fleet. */
export interface Fleet {
    devices: number
    rate: number
    /** How long a peer waits for TCP or CONNACK. */
    patienceMs: number
    /** For `fitted`: the spread is margin N/C. */
    margin: number
}

const S = 1000

/** base 2^n up to a cap. */
const doubling = (baseMs: number, capMs: number, n: number) =>
    Math.min(capMs, baseMs * 2 ** Math.min(n, 40))

interface Peer {
    wait: Formula
    stableMs?: number
}

const PEERS: Record<string, Peer> = {
    // mqttjs/MQTT.js aa03369: reconnectPeriod
    "mqtt.js": { wait: () => S },
    // eclipse/paho.mqtt.python d45de37: reconnect_delay_set(1, 120)
    "paho-python": { wait: t => doubling(S, 120 * S, t.n) },
    // eclipse/paho.mqtt.c 6b1e202: 1 to 60 s, then whole seconds from base / 1.2 to base * 1.2, so up to 72
    "paho-c": {
        wait(t) {
            const base = doubling(S, 60 * S, t.n) / S
            const low = Math.floor(base / 1.2)
            const high = Math.floor(base * 1.2)
            return S * (low + Math.floor(t.uniform() * (high - low + 1)))
        },
    },
    // espressif/esp-mqtt 5a9ba05
    "esp-mqtt": { wait: () => 10 * S },
    // awslabs/aws-c-mqtt d699fe4, v5: full jitter, 1 to 120 s, forgotten after 30 s connected
    "aws-v5": {
        wait: t => t.uniform() * doubling(S, 120 * S, t.n),
        stableMs: 30 * S,
    },
    // awslabs/aws-c-mqtt, 3.1.1: 1 to 128 s, no jitter, forgotten after 10 s connected
    "aws-311": { wait: t => doubling(S, 128 * S, t.n), stableMs: 10 * S },
    // awslabs/aws-c-io 78ad967: full, 500 ms to 20 s; gives up after 10 retries
    "aws-io": {
        wait: t =>
            t.n >= 10 ? -1 : t.uniform() * doubling(0.5 * S, 20 * S, t.n),
    },
    // FreeRTOS/backoffAlgorithm 39bf8aa as coreMQTT's demos set it: 500 ms to 5 s, full
    freertos: { wait: t => t.uniform() * doubling(0.5 * S, 5 * S, t.n) },
    // eclipse/mosquitto 7b8aba1, bridge: 5 s, then decorrelated up to 30 s
    "mosquitto-bridge": {
        wait(t) {
            const room = Math.max(0, t.memory * 3 - 5 * S)
            t.memory = Math.min(30 * S, 5 * S + Math.floor(t.uniform() * room))
            return t.memory
        },
    },
    // libmosquitto with reconnect_exponential_backoff: (n + 1)^2 s; the maximum is the caller's, 30 s in its example
    libmosquitto: { wait: t => Math.min(30 * S, (t.n + 1) ** 2 * S) },
    // hivemq/hivemq-mqtt-client c1b9066: 1 to 120 s, then +-25 %, so up to 150
    hivemq: {
        wait: t => doubling(S, 120 * S, t.n) * (0.75 + 0.5 * t.uniform()),
    },
    // Azure/azure-iot-sdk-c c86b2d6: the first at once, then 1 s 2^(n-1) to 30 s, + up to 5 %
    "azure-c": {
        wait: t =>
            t.n === 0
                ? 0
                : doubling(S, 30 * S, t.n - 1) * (1 + 0.05 * t.uniform()),
    },
    // Azure/azure-sdk-for-c 19d99b7: + jitter where that stays below the cap, less the time of the failed attempt.
    // The numbers are the caller's: 1 s to 100 s, jitter up to 5 s.
    "azure-embedded": {
        wait(t) {
            const base = doubling(S, 100 * S, t.n)
            const jitter = t.uniform() * 5 * S
            const waitMs = base + (100 * S - base > jitter ? jitter : 0)
            return Math.max(0, waitMs - t.attemptMs)
        },
    },
    // esphome/esphome 33fdbbe: 0 s right after a loss, then 5 s
    esphome: { wait: t => (t.n === 0 ? 0 : 5 * S) },
    // arendst/Tasmota: 10 s more each time, to 120 s
    tasmota: { wait: t => Math.min(120 * S, 10 * S * (t.n + 1)) },
    // grpc: x1.6 to 120 s, then +-20 %, measured from the attempt's start
    grpc: {
        wait: t =>
            Math.max(
                0,
                Math.min(120 * S, S * 1.6 ** Math.min(t.n, 60)) *
                    (0.8 + 0.4 * t.uniform()) -
                    t.attemptMs,
            ),
    },
    // sindresorhus/p-retry with randomize, 1 to 60 s (both the caller's), without an end: jitter, then clamped
    "p-retry": {
        wait: t =>
            Math.min(60 * S, (1 + t.uniform()) * S * 2 ** Math.min(t.n, 40)),
    },
    // connor4312/cockatiel: ExponentialBackoff's default generator, 128 ms to 30 s
    cockatiel: {
        wait(t) {
            const at = Math.min(t.n, 500) + t.uniform()
            const next = 2 ** at * Math.tanh(Math.sqrt(4 * at))
            const grown = Math.max(0, next - t.memory)
            t.memory = next
            return Math.min((grown / 1.4) * 128, 30 * S)
        },
    },
    // microsoft/devicescript 084bb1b, stock MQTTClient: a 50 s watchdog
    stock: { wait: () => 50 * S },
}

const STRATEGIES: Jitter[] = [
    "proportional",
    "equal",
    "full",
    "decorrelated",
    "none",
]

/** Names of all presets, in the order they are shown. */
export function presetNames(): string[] {
    return [
        "adaptive",
        "fitted",
        ...STRATEGIES.map(jitter => `${jitter}-60s`),
        ...Object.keys(PEERS),
    ]
}

/** The settings of the firmware that make it follow a policy: the fleet's own, so no other. */
export function settingsOf(policy: Policy): Record<string, string | number> {
    return {
        RETRY_MIN: policy.minMs,
        RETRY_CAP: policy.capMs,
        OVERLOAD_CAP: policy.overloadCapMs,
        JITTER: policy.jitter,
        SPREAD: policy.spreadMs,
        FAST_FIRST: policy.fastFirst ? 1 : 0,
        CONNACK_WAIT: policy.connackMs,
        DIAL_WAIT: policy.dialMs,
        STABLE: policy.stableMs,
        FLEET_POLICY: "off",
        // The broker of these fleets knows no other.
        MQTT_VERSION: "3",
        KEEP_ALIVE: 0,
        TELEMETRY: 86400,
    }
}

/** The preset of that name; undefined when there is none. */
export function preset(name: string, fleet: Fleet): PolicyMaker | undefined {
    if (name === "adaptive") return ours(name, adaptive(fleet))
    if (name === "fitted") return ours(name, fitted(fleet))
    for (const jitter of STRATEGIES)
        if (name === `${jitter}-60s`)
            return published(ours(name, fixedCap(fleet, jitter)))
    const peer = PEERS[name]
    const { patienceMs } = fleet
    return (
        peer &&
        formula(name, { patienceMs, stableMs: peer.stableMs }, peer.wait)
    )
}

/** Our default, with the fleet's patience. */
export function adaptive(fleet: Fleet): Policy {
    const policy = defaultPolicy()
    policy.connackMs = fleet.patienceMs
    policy.dialMs = fleet.patienceMs
    return policy
}

/** Told how many devices there are and what the broker can do. */
export function fitted(fleet: Fleet): Policy {
    const policy = adaptive(fleet)
    policy.spreadMs = Math.round(
        ((fleet.margin * fleet.devices) / fleet.rate) * 1000,
    )
    policy.overloadCapMs = Math.max(policy.overloadCapMs, policy.spreadMs)
    return policy
}

/** As strategies are published: they don't ask how long an attempt took. */
function published(make: PolicyMaker): PolicyMaker {
    return (devices, random) => {
        const fleet = make(devices, random)
        const failed: typeof fleet.failed = (device, evidence) =>
            fleet.failed(device, evidence, 0)
        return { ...fleet, failed }
    }
}

/** 1 to 60 s whatever happens, with no more patience after overload: the classic. */
function fixedCap(fleet: Fleet, jitter: Jitter): Policy {
    const policy = adaptive(fleet)
    policy.jitter = jitter
    policy.overloadCapMs = policy.capMs
    policy.connackOverloadMs = policy.connackMs
    return policy
}
