// Requests over MQTT: a question, an answer, and an end to both. Tried again with the connection's own backoff, a few times,
// only where waiting can help, and within a budget; then the caller is told why and how often.
//
// The convention, the same in MQTT 3.1.1 and 5: with `key` new for each request and the same for each of its tries,
//   the request goes to   <topic>/<device id>/<key>             with QoS 0,
//   the answer comes on   <topic>/<device id>/<key>/<status>    where status is that of HTTP: 200, 404, 503.
// In MQTT 5 the request also has a response topic (that of 200) and the key as correlation data, so that a responder
// which knows nothing of this answers it too. A responder remembers keys (core/dedup.ts) where doing a thing twice would hurt.
import * as ds from "@devicescript/core"
import { AdaptiveBackoff } from "../core/adaptive"
import { mustBe } from "../core/int"
import { defaultPolicy, type Policy } from "../core/policy"
import { wordsOf } from "../core/reason"
import { RetryBudget } from "../core/retry-budget"
import { httpVerdict, stalled, type Verdict } from "../core/verdict"
import { requestProperties } from "../mqtt/encode"
import type { Publish } from "../mqtt/packets"
import type { Client } from "./client"
import { newKey } from "./keys"
import { deviceRandom } from "./random"

/** How a request is made; all may be left out. */
export interface RequestOptions {
    /** Tries at most, 1..20; default 5. */
    attempts?: number
    /** How long each waits for its answer, ms, 1..3,600,000; default 5,000. */
    timeoutMs?: number
    /** For all of it, with waits between and for a connection, ms, 1..2^31-1; default 60,000. */
    deadlineMs?: number
    /** Where retries come from; default: one budget for all requests of the program. */
    budget?: RetryBudget
}

/** What became of a request. */
export interface Answer {
    /** The status was 200 to 299. */
    ok: boolean
    /** Of the last answer; 0 when there was none. */
    status: number
    /** The last answer. */
    message: Publish | undefined
    /** Times the request was sent. */
    attempts: number
    /** Why it failed, in words; "" when it did not. */
    reason: string
}

/** A request on its way. */
interface Waiting {
    key: string
    fiber: ds.Fiber
    /** The fiber waits for us, and not for something else. */
    idle: boolean
    status: number
    message: Publish | undefined
}

/** Where a client's requests to one topic come back. */
interface Service {
    client: Client
    base: string
    waiting: Waiting[]
    /** In an array: read from a field it would be another closure each time, and a subscription more. */
    handlers: ((message: Publish) => void)[]
}

/** Between two looks at whether there is a connection. */
const LOOK_MS = 100

const MAX_WAIT_MS = 0x7fffffff

let services: Service[] = undefined
let ownBudget: RetryBudget = undefined

/** The program's own retry budget. */
export function sharedBudget(): RetryBudget {
    if (!ownBudget) ownBudget = new RetryBudget()
    return ownBudget
}

/**
 * Asks and waits for the answer. Not from a handler, which would keep the answer's handler from running: then it fails at once.
 * @throws RangeError for an option out of its range
 */
export async function request(
    client: Client,
    topic: string,
    payload: string | Buffer,
    options: RequestOptions = {},
): Promise<Answer> {
    const attempts = options.attempts === undefined ? 5 : options.attempts
    const timeoutMs = options.timeoutMs === undefined ? 5000 : options.timeoutMs
    const deadlineMs =
        options.deadlineMs === undefined ? 60000 : options.deadlineMs
    mustBe("attempts", attempts, 1, 20)
    mustBe("timeoutMs", timeoutMs, 1, 3600000)
    mustBe("deadlineMs", deadlineMs, 1, MAX_WAIT_MS)
    if (client.handlers.fiber === ds.Fiber.self())
        return failed(0, "refused: called from a handler", undefined)
    const service = serviceOf(client, topic)
    const endMs = ds.millis() + deadlineMs
    const filter = service.base + "/+/+"
    const is = await client.subscribe(filter, service.handlers[0], 1)
    if (is.indexOf("refused") === 0) return failed(0, is, undefined)
    const w: Waiting = {
        key: newKey(),
        fiber: ds.Fiber.self(),
        idle: false,
        status: 0,
        message: undefined,
    }
    service.waiting.push(w)
    const budget = options.budget ? options.budget : sharedBudget()
    budget.request()
    const backoff = new AdaptiveBackoff(requestPolicy(), deviceRandom())
    const ask = { payload, attempts, timeoutMs, endMs, budget, backoff }
    const answer = await askAgain(service, w, ask)
    service.waiting.insert(service.waiting.indexOf(w), -1)
    return answer
}

/** What a request is made with. */
interface Ask {
    payload: string | Buffer
    attempts: number
    timeoutMs: number
    endMs: number
    budget: RetryBudget
    backoff: AdaptiveBackoff
}

async function askAgain(
    service: Service,
    w: Waiting,
    ask: Ask,
): Promise<Answer> {
    const client = service.client
    const base = service.base
    const endMs = ask.endMs
    const backoff = ask.backoff
    const topic = base + "/" + w.key
    const properties = requestProperties(topic + "/200", w.key)
    let reason = "no connection"
    for (let n = 0; ;) {
        while (client.state() !== "connected") {
            if (ds.millis() >= endMs) return failed(n, reason, w)
            await ds.sleep(LOOK_MS)
        }
        n++
        const is = await client.publish(topic, ask.payload, { properties })
        if (is.indexOf("refused") === 0) return failed(n, is, w)
        await waitFor(w, sooner(ds.millis() + ask.timeoutMs, endMs))
        const verdict = w.message
            ? httpVerdict(w.status)
            : stalled("no answer in time")
        if (w.status >= 200 && w.status < 300) return answered(n, w)
        const words = wordsOf(verdict.reason)
        reason = w.message ? `${w.status} ${words}` : words
        const why = noMore(verdict, n, ask)
        if (why) return failed(n, reason + why, w)
        w.message = undefined
        w.status = 0
        await waitFor(
            w,
            sooner(ds.millis() + backoff.failed(verdict, 0), endMs),
        )
        // An answer that came late is an answer.
        if (w.status >= 200 && w.status < 300) return answered(n, w)
        if (ds.millis() >= endMs) return failed(n, reason + ", no time left", w)
    }
}

/** Why there is no further try; "" when there is one. */
function noMore(verdict: Verdict, n: number, ask: Ask): string {
    const lane = verdict.lane
    if (lane === "slow" || lane === "stop") return ", not retried"
    if (n >= ask.attempts) return ", given up"
    if (ds.millis() >= ask.endMs) return ", no time left"
    return ask.budget.retry() ? "" : ", retry budget used up"
}

/** Waits for an answer until `untilMs`. */
async function waitFor(w: Waiting, untilMs: number) {
    while (!w.message) {
        const leftMs = untilMs - ds.millis()
        if (leftMs <= 0) return
        w.idle = true
        await ds.suspend(leftMs)
        w.idle = false
    }
}

function serviceOf(client: Client, topic: string): Service {
    const base = topic + "/" + ds.deviceIdentifier("self")
    if (!services) services = []
    for (const s of services)
        if (s.client === client && s.base === base) return s
    const service: Service = { client, base, waiting: [], handlers: [] }
    service.handlers.push(message => take(service, message))
    services.push(service)
    return service
}

/** An answer has come, for a request that may no longer wait for it. */
function take(service: Service, message: Publish) {
    const rest = message.topic.slice(service.base.length + 1)
    const slash = rest.indexOf("/")
    const status = parseInt(rest.slice(slash + 1))
    for (const w of service.waiting) {
        if (w.key !== rest.slice(0, slash)) continue
        w.message = message
        w.status = status >= 100 && status < 600 ? status : 0
        if (w.idle && w.fiber.suspended) w.fiber.resume(undefined)
    }
}

/** As the connection's, only that a person may be waiting. */
function requestPolicy(): Policy {
    const policy = defaultPolicy()
    policy.minMs = 500
    policy.capMs = 30000
    policy.overloadCapMs = 60000
    return policy
}

function answered(attempts: number, { status, message }: Waiting): Answer {
    return { ok: true, status, message, attempts, reason: "" }
}

function failed(
    attempts: number,
    reason: string,
    w: Waiting | undefined,
): Answer {
    const status = w ? w.status : 0
    const message = w ? w.message : undefined
    return { ok: false, status, message, attempts, reason }
}

function sooner(a: number, b: number): number {
    return a < b ? a : b
}
