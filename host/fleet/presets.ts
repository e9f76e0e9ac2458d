// The policies the simulator knows by name: ours, the plain strategies with a fixed cap, and the
// peers, each by the formula in its source (the commit is named). `n` counts from 0: the wait
// after the loss itself. What a peer's documentation leaves to the user is its default.
import { defaultPolicy, type Jitter, type Policy } from "../../src/core/backoff"
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

/** The same, times U[1 - part, 1 + part) once the cap is reached. */
const jitteredAtCap =
    (baseMs: number, capMs: number, part: number): Formula =>
    (n, _last, uniform) => {
        const ms = doubling(baseMs, capMs, n)
        return ms < capMs ? ms : ms * (1 - part + 2 * part * uniform())
    }

const PEERS: Record<string, Formula> = {
    // mqttjs/MQTT.js aa03369: reconnectPeriod
    "mqtt.js": () => S,
    // eclipse/paho.mqtt.python d45de37: reconnect_delay_set(1, 120)
    "paho-python": n => doubling(S, 120 * S, n),
    // eclipse/paho.mqtt.c 6b1e202: 1 to 60 s, +-20 % after the cap
    "paho-c": jitteredAtCap(S, 60 * S, 0.2),
    // espressif/esp-mqtt 5a9ba05
    "esp-mqtt": () => 10 * S,
    // awslabs/aws-c-mqtt d699fe4, v5: full jitter, 1 to 120 s
    "aws-v5": (n, _l, u) => u() * doubling(S, 120 * S, n),
    // awslabs/aws-c-mqtt, 3.1.1: 1 to 128 s, no jitter
    "aws-311": n => doubling(S, 128 * S, n),
    // FreeRTOS/backoffAlgorithm 39bf8aa as coreMQTT's demos set it: 500 ms to 5 s, full
    freertos: (n, _l, u) => u() * doubling(0.5 * S, 5 * S, n),
    // eclipse/mosquitto 7b8aba1, bridge: decorrelated, 5 to 30 s
    "mosquitto-bridge": (_n, last, u) =>
        Math.min(30 * S, 5 * S + u() * (Math.max(5 * S, last * 3) - 5 * S)),
    // libmosquitto with reconnect_exponential_backoff: (n + 1)^2 s, up to 30 s
    libmosquitto: n => Math.min(30 * S, (n + 1) ** 2 * S),
    // hivemq/hivemq-mqtt-client c1b9066: 1 s to 120 s, +-25 % after the cap
    hivemq: jitteredAtCap(S, 120 * S, 0.25),
    // Azure/azure-iot-sdk-c c86b2d6: the first at once, then 1 s 2^(n-1) to 30 s, + up to 5 %
    "azure-c": (n, _l, u) =>
        n === 0 ? 0 : doubling(S, 30 * S, n - 1) * (1 + 0.05 * u()),
    // esphome/esphome 33fdbbe: 0 s right after a loss, then 5 s
    esphome: n => (n === 0 ? 0 : 5 * S),
    // arendst/Tasmota: 10 s more each time, to 120 s
    tasmota: n => Math.min(120 * S, 10 * S * (n + 1)),
    // grpc: x1.6, 120 s, +-20 %, measured from the attempt's start (taken here from its end)
    grpc: (n, _l, u) =>
        Math.min(120 * S, S * 1.6 ** Math.min(n, 60)) * (0.8 + 0.4 * u()),
    // microsoft/devicescript 084bb1b, stock MQTTClient: a 50 s watchdog
    stock: () => 50 * S,
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

/** The preset of that name; undefined when there is none. */
export function preset(name: string, fleet: Fleet): PolicyMaker | undefined {
    if (name === "adaptive") return ours(name, adaptive(fleet))
    if (name === "fitted") return ours(name, fitted(fleet))
    for (const jitter of STRATEGIES)
        if (name === `${jitter}-60s`) return ours(name, fixedCap(fleet, jitter))
    const wait = PEERS[name]
    return wait && formula(name, fleet.patienceMs, wait)
}

/** Our default, with the fleet's patience. */
export function adaptive(fleet: Fleet): Policy {
    const policy = defaultPolicy()
    policy.connackMs = fleet.patienceMs
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

/** 1 to 60 s whatever happens, with no more patience after overload: the classic. */
function fixedCap(fleet: Fleet, jitter: Jitter): Policy {
    const policy = adaptive(fleet)
    policy.jitter = jitter
    policy.overloadCapMs = policy.capMs
    policy.connackOverloadMs = policy.connackMs
    return policy
}
