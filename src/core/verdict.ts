// What a failure means: every one is classified here, once, over socket errors, MQTT 3.1.1
// return codes, MQTT 5 reason codes and HTTP status. Pure, and total: each function has an answer for every
// input. Switches, not tables, so that a program carries only the functions it calls.
//
// | lane     | what the device does                                 | what leads there                      |
// |----------|------------------------------------------------------|---------------------------------------|
// | retry    | the backoff schedule                                 | no broker there, or it says "not now" |
// | overload | the same; the evidence lets the ceiling pass the cap | stalled, busy, reset                  |
// | slow     | 5 min growing to 1 h                                 | a person or time must cure it         |
// | stop     | no more attempts                                     | only what we ourselves got wrong      |
//
// Nothing that an MQTT broker sends leads to `stop`: an auth server that is down looks exactly like
// bad credentials, and a fleet that gave up has to be visited.

import { Why, type Reason } from "./reason"

/** Which schedule a failed attempt goes on. */
export type Lane = "retry" | "overload" | "slow" | "stop"

/**
 * What a failure shows about the broker. `refused`: an answer, or no way to it, that proves nothing
 * about load. `silent`: no TCP in time, or a session in which nothing came any more. `stalled`: TCP, but no CONNACK in
 * time, or a session that lives without its PUBACK. `busy`: the broker says so.
 * `reset`: closed after TCP, before a stable session. The last three prove overload.
 */
export type Evidence = "refused" | "silent" | "stalled" | "busy" | "reset"

/** One failure, classified. */
export interface Verdict {
    lane: Lane
    evidence: Evidence
    reason: Reason
}

/** Why a connection waits or halts: a verdict or, with evidence "none", what is no failure. */
export interface Cause {
    lane: Lane
    evidence: Evidence | "none"
    reason: Reason
}

/** How far a connection had come. */
export type Phase = "dial" | "connack" | "session"

/** How a socket failed. `native`: our own runtime refused (threw, or returned a code). */
export type SocketFault = "error" | "closed" | "timeout" | "native"

/**
 * A socket failure. `phase` is what the device was waiting for: the open socket, CONNACK, or anything in a
 * session (where `timeout` is a PINGRESP that did not come). What the runtime says in words is not looked at: see
 * socket-text.ts.
 */
export function socketVerdict(
    phase: Phase,
    what: SocketFault,
    tls: boolean,
): Verdict {
    const isDial = phase === "dial"
    const inSession = phase === "session"
    if (what === "native") {
        // Our own queue was full or the network gone: that says nothing about the broker.
        if (isDial) return retry(Why.notOpened)
        return retry(Why.writeFailed)
    }
    if (what === "timeout") {
        // With TLS the ESP32 reports open only after the handshake. A host that is down answers the SYN
        // with a reset or the router with "unreachable", both soon; what can hang for the whole dial time is
        // the handshake, the dearest thing a returning herd asks of a broker. So this counts as
        // stalled: to wait too long costs one device minutes, to press on costs the fleet its broker.
        if (isDial) {
            if (tls) return verdict("overload", "stalled", Why.noTls)
            return verdict("retry", "silent", Why.noTcp)
        }
        // Silent, not stalled: a peer that died after a long session is a loss.
        if (inSession) return verdict("retry", "silent", Why.noPingresp)
        return verdict("overload", "stalled", Why.noConnack)
    }
    if (isDial) {
        if (what === "closed") return retry(Why.closedBeforeOpen)
        return retry(Why.refused)
    }
    if (inSession) return verdict("overload", "reset", Why.closed)
    return verdict("overload", "reset", Why.closedBeforeConnack)
}

/**
 * A CONNACK of MQTT 3.1.1 whose return code is not 0 (section 3.2.2.3). Codes 6..255 are reserved. They go
 * on the schedule: nothing says that a person is needed, and the schedule is bounded and spread.
 */
export function connackVerdict311(code: number): Verdict {
    const why = Why.unknownCode + code
    if (why === Why.unavailable) return verdict("overload", "busy", why)
    if (code >= 1 && code <= 5) return slow(why)
    return retry(Why.unknownCode)
}

/**
 * An MQTT 5 reason code in CONNACK (section 3.2.2.2) or, `inDisconnect`, in a DISCONNECT
 * from the broker (3.14.2.1). Codes that the specification doesn't allow there have the meaning they have elsewhere.
 * What the broker will say again next time is slow; what depends on traffic or on the broker's own day is retried.
 */
export function reasonVerdict5(code: number, inDisconnect: boolean): Verdict {
    switch (code) {
        case 0x00:
            return retry("broker ended the connection")
        case 0x80:
            return retry("unspecified error")
        case 0x81:
            return slow("malformed packet")
        case 0x82:
            return slow("protocol error")
        case 0x83:
            return retry("implementation specific error")
        case 0x84:
            return slow("unsupported protocol version")
        case 0x85:
            return slow("client identifier not valid")
        case 0x86:
            return slow("bad user name or password")
        case 0x87:
            return slow("not authorised")
        case 0x88:
            return busy("server unavailable")
        case 0x89:
            return busy("server busy")
        case 0x8a:
            return slow("banned")
        case 0x8b:
            return retry("server shutting down")
        case 0x8c:
            return slow("bad authentication method")
        case 0x8d:
            return retry("keep alive timeout")
        case 0x8e:
            // Another client has our identifier. Coming back soon would throw it out, and so on for ever.
            return slow("session taken over")
        case 0x8f:
            return slow("topic filter invalid")
        case 0x90:
            return slow("topic name invalid")
        case 0x93:
            return retry("receive maximum exceeded")
        case 0x94:
            return retry("topic alias invalid")
        case 0x95:
            return inConnackSlow("packet too large", inDisconnect)
        case 0x96:
            return retry("message rate too high")
        case 0x97:
            return busy("quota exceeded")
        case 0x98:
            return slow("administrative action")
        case 0x99:
            return inConnackSlow("payload format invalid", inDisconnect)
        case 0x9a:
            return slow("retain not supported")
        case 0x9b:
            return slow("QoS not supported")
        case 0x9c:
            // Where to is not ours to follow (see server moves); here we are not wanted for now.
            return slow("use another server")
        case 0x9d:
            return slow("server moved")
        case 0x9e:
            return slow("shared subscriptions not supported")
        case 0x9f:
            return busy("connection rate exceeded")
        case 0xa0:
            return retry("maximum connect time")
        case 0xa1:
            return slow("subscription ids not supported")
        case 0xa2:
            return slow("wildcard filters not supported")
        default:
            return retry("unknown reason code")
    }
}

/** In CONNACK the fault is our CONNECT, the same every time; in DISCONNECT it is one message. */
function inConnackSlow(reason: string, inDisconnect: boolean): Verdict {
    return inDisconnect ? retry(reason) : slow(reason)
}

/**
 * An HTTP status (RFC 9110 section 15; 429 and 511 from RFC 6585). A request is ours, unlike a
 * connection: what it got wrong stays wrong, so it is not sent again.
 */
export function httpVerdict(status: number): Verdict {
    switch (status) {
        case 408:
            return silent("request timeout")
        case 425:
            return retry("too early")
        case 429:
            return busy("too many requests")
        case 501:
            return stop("not implemented")
        case 503:
            return busy("service unavailable")
        case 505:
            return stop("HTTP version not supported")
        case 506:
        case 508:
        case 510:
            return stop("server cannot answer this request")
        case 511:
            return slow("network wants a sign-in")
    }
    if (status >= 500 && status < 600) return retry("server error")
    if (status >= 400 && status < 500) return stop("request rejected")
    if (status >= 300 && status < 400) return stop("redirect, not followed")
    if (status >= 200 && status < 300) return stop("success, nothing to retry")
    if (status >= 100 && status < 200) return stop("unexpected interim answer")
    return retry("not an HTTP status")
}

/** Any verdict or cause; the functions below are for those who make many of a kind. */
export function verdict<E extends Cause["evidence"]>(
    lane: Lane,
    evidence: E,
    reason: Reason,
) {
    return { lane, evidence, reason }
}

/** Something that proves nothing about the broker: down, or our own side's doing. */
export function retry(reason: Reason): Verdict {
    return verdict("retry", "refused", reason)
}

/** Nothing came. */
export function silent(reason: Reason): Verdict {
    return verdict("retry", "silent", reason)
}

/** A broker that took what we said and did not answer in time. */
export function stalled(reason: Reason): Verdict {
    return verdict("overload", "stalled", reason)
}

function busy(reason: Reason): Verdict {
    return verdict("overload", "busy", reason)
}

/** Something that a person or time must cure. */
export function slow(reason: Reason): Verdict {
    return verdict("slow", "refused", reason)
}

/** What we ourselves got wrong, or want: no more attempts. */
export function stop(reason: Reason): Verdict {
    return verdict("stop", "refused", reason)
}
