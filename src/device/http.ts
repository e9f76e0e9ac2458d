// HTTP requests that are tried again: over fetch of @devicescript/net, with the connection's own backoff and verdicts. While
// it lasts the socket is lent out and MQTT is parked; see lease.ts.
//
// fetch has no timeouts and may wait for ever, throws when a peer answers too soon, and reads null at an early end: so
// it runs in a fiber of its own that is given up after a time, and whatever it throws is a failure like any other.
// It also buffers what the server sends as fast as it comes: ask only servers you trust.
import * as ds from "@devicescript/core"
import { fetch, Headers, type Response } from "@devicescript/net"
import { AdaptiveBackoff } from "../core/adaptive"
import { httpWaitMs, isIdempotent, retryAfterMs } from "../core/http-retry"
import { mustBe } from "../core/int"
import { defaultPolicy, type Policy } from "../core/policy"
import { wordsOf } from "../core/reason"
import type { RetryBudget } from "../core/retry-budget"
import { httpVerdict, retry, stalled, type Verdict } from "../core/verdict"
import type { Client } from "./client"
import { withSocket } from "./lease"
import { deviceRandom } from "./random"
import { sharedBudget } from "./request"
import { socketClose, socketGiveUp } from "./socket"

/** How a request is made; all may be left out. */
export interface HttpOptions {
    /** Default "GET". */
    method?: string
    headers?: Record<string, string>
    body?: string | Buffer
    /** Sent as `Idempotency-Key` with each try; `newKey()` makes one. Without it POST and PATCH are tried once. */
    idempotencyKey?: string
    /** Tries at most, 1..20; default 5. */
    attempts?: number
    /** How long each may take, ms, 100..600,000; default 15,000. */
    timeoutMs?: number
    /** For all of it; MQTT is away so long. ms, 100..3,600,000; default 60,000. */
    deadlineMs?: number
    /** Most bytes of a body, 1..16,384; default 2,048. */
    maxBodyBytes?: number
    /** MQTT connects at once afterwards, not through the spread, unless the broker is overloaded or it waits in the slow lane. Default false: a fleet may do this all at once. */
    urgent?: boolean
    /** Where retries come from; default: the one of all requests of the program. */
    budget?: RetryBudget
}

/** What became of it. */
export interface HttpAnswer {
    /** The status was 200 to 299 and the whole body came. */
    ok: boolean
    /** Of the last answer; 0 when there was none. */
    status: number
    headers: Headers | undefined
    /** Of the last answer, when it was ok. */
    body: Buffer | undefined
    /** Times it was sent. */
    attempts: number
    /** Why it failed, in words; "" when it did not. */
    reason: string
}

/** One try, and what is known of it so far. */
interface Try {
    done: boolean
    status: number
    headers: Headers | undefined
    body: Buffer | undefined
    fault: string
}

/**
 * Makes an HTTP request and tries again where waiting can help: no connection, no answer in time, 5xx, 408, 425 and
 * 429, never another 4xx; after 429 and 503 when the server says so (Retry-After, at most a minute).
 * @throws RangeError for an option out of its range
 */
export async function fetchWithRetry(
    client: Client,
    url: string,
    options: HttpOptions = {},
): Promise<HttpAnswer> {
    const answer = none()
    const method = options.method ? options.method : "GET"
    const key = options.idempotencyKey
    let attempts = or(options.attempts, 5)
    const deadlineMs = or(options.deadlineMs, 60000)
    mustBe("attempts", attempts, 1, 20)
    mustBe("timeoutMs", or(options.timeoutMs, 15000), 100, 600000)
    mustBe("deadlineMs", deadlineMs, 100, 3600000)
    mustBe("maxBodyBytes", or(options.maxBodyBytes, 2048), 1, 16384)
    if (!key && !isIdempotent(method)) attempts = 1
    const endMs = ds.millis() + deadlineMs
    const use = async () => {
        await tryAgain(url, method, options, attempts, endMs, answer)
    }
    if (!(await withSocket(client, !!options.urgent, use)))
        answer.reason = "refused: the socket is lent out already"
    return answer
}

async function tryAgain(
    url: string,
    method: string,
    options: HttpOptions,
    attempts: number,
    endMs: number,
    answer: HttpAnswer,
) {
    const random = deviceRandom()
    const backoff = new AdaptiveBackoff(httpPolicy(), random)
    const budget = options.budget ? options.budget : sharedBudget()
    budget.request()
    while (true) {
        answer.attempts++
        const t = await once(url, method, options, endMs)
        answer.status = t.status
        answer.headers = t.headers
        answer.body = t.body
        if (t.body && t.status >= 200 && t.status < 300) {
            answer.ok = true
            answer.reason = ""
            return
        }
        const verdict = verdictOf(t)
        const words = wordsOf(verdict.reason)
        answer.reason = t.status ? `${t.status} ${words}` : words
        const lane = verdict.lane
        if (lane === "slow" || lane === "stop")
            return more(answer, ", not retried")
        if (answer.attempts >= attempts) return more(answer, ", given up")
        const asked = t.headers ? t.headers.get("retry-after") : undefined
        const ownMs = backoff.failed(verdict, 0)
        const waitMs = httpWaitMs(ownMs, retryAfterMs(asked), random)
        if (ds.millis() + waitMs >= endMs) return more(answer, ", no time left")
        if (!budget.retry()) return more(answer, ", retry budget used up")
        await ds.sleep(waitMs)
    }
}

function more(answer: HttpAnswer, why: string) {
    answer.reason += why
}

/** What a try that brought no whole 2xx answer means. */
function verdictOf(t: Try): Verdict {
    if (!t.done) return stalled("no answer in time")
    if (t.fault === TOO_LARGE)
        return { lane: "stop", evidence: "refused", reason: TOO_LARGE }
    if (t.fault || t.status === 0) return retry("no connection, or it broke")
    return httpVerdict(t.status)
}

const TOO_LARGE = "body too large"

/** One try, given up after its time or at the end of all. */
async function once(
    url: string,
    method: string,
    options: HttpOptions,
    endMs: number,
): Promise<Try> {
    const t = newTry()
    const own = ds.Fiber.self()
    let waits = false
    const run = async () => {
        try {
            await perform(url, method, options, t)
        } catch (e) {
            t.fault = (e as Error).message + ""
        }
        t.done = true
        if (waits && own.suspended) own.resume(undefined)
    }
    run.start()
    let untilMs = ds.millis() + or(options.timeoutMs, 15000)
    if (untilMs > endMs) untilMs = endMs
    while (!t.done && ds.millis() < untilMs) {
        waits = true
        await ds.suspend(untilMs - ds.millis())
        waits = false
    }
    if (t.done) {
        socketClose()
        return t
    }
    await socketGiveUp()
    return newTry()
}

function newTry(): Try {
    return {
        done: false,
        status: 0,
        headers: undefined,
        body: undefined,
        fault: "",
    }
}

async function perform(
    url: string,
    method: string,
    options: HttpOptions,
    t: Try,
) {
    const headers = new Headers()
    if (options.headers)
        for (const name of Object.keys(options.headers))
            headers.set(name, options.headers[name])
    if (options.idempotencyKey)
        headers.set("Idempotency-Key", options.idempotencyKey)
    const body = options.body ? options.body : ""
    const response = await fetch(url, { method, headers, body })
    t.status = response.status
    t.headers = response.headers
    t.body = await readBody(response, method, or(options.maxBodyBytes, 2048))
}

/** The body; throws when it is too large, or ends early. */
async function readBody(
    response: Response,
    method: string,
    maxBytes: number,
): Promise<Buffer> {
    const length = response.headers.get("content-length")
    const expected = length === null ? -1 : parseInt(length)
    if (expected > maxBytes) throw new Error(TOO_LARGE)
    const status = response.status
    const body = Buffer.alloc(expected < 0 ? maxBytes : expected)
    let bytes = 0
    const bodiless = method === "HEAD" || status === 204 || status === 304
    // Not its own `buffer()`, which takes whatever comes.
    const socket = (response as any).socket
    while (!bodiless && (expected < 0 || bytes < expected)) {
        const piece: Buffer = await socket.recv()
        if (!piece) break
        if (bytes + piece.length > body.length) throw new Error(TOO_LARGE)
        body.blitAt(bytes, piece, 0, piece.length)
        bytes += piece.length
    }
    if (!bodiless && bytes < expected) throw new Error("ended early")
    return bytes === body.length ? body : body.slice(0, bytes)
}

/** Short waits: MQTT is away while we wait. */
function httpPolicy(): Policy {
    const policy = defaultPolicy()
    policy.minMs = 500
    policy.capMs = 15000
    policy.overloadCapMs = 30000
    return policy
}

function none(): HttpAnswer {
    return {
        ok: false,
        status: 0,
        headers: undefined,
        body: undefined,
        attempts: 0,
        reason: "",
    }
}

function or(value: number | undefined, otherwise: number): number {
    return value === undefined ? otherwise : value
}
