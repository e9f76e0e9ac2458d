// What each failure means: a row for every return code, reason code, status and socket fault that a specification
// or a runtime names.
import { wordsOf } from "../../src/core/reason"
import { explainSocket } from "../../src/core/socket-text"
import {
    connackVerdict311,
    httpVerdict,
    Phase,
    reasonVerdict5,
    SocketFault,
    Verdict,
} from "../../src/core/verdict"
import { Case, equal } from "../cases"

/** A verdict as text: lane evidence: reason. */
function said(v: Verdict): string {
    return `${v.lane} ${v.evidence}: ${wordsOf(v.reason)}`
}

function socket(
    phase: Phase,
    what: SocketFault,
    tls: boolean,
    text: string,
    expected: string,
): Case {
    return {
        name: `${tls ? "TLS" : "TCP"} ${phase} ${what} "${text}" is ${expected}`,
        run: () => equal(said(explainSocket(phase, what, tls, text)), expected),
    }
}

/** The same fault with and without TLS. */
function both(
    phase: Phase,
    what: SocketFault,
    text: string,
    expected: string,
): Case[] {
    return [
        socket(phase, what, false, text, expected),
        socket(phase, what, true, text, expected),
    ]
}

function returnCode(code: number, expected: string): Case {
    return {
        name: `MQTT 3.1.1 return code ${code} is ${expected}`,
        run: () => equal(said(connackVerdict311(code)), expected),
    }
}

function reason(code: number, connack: string, disconnect = connack): Case {
    return {
        name: `MQTT 5 reason code ${code} is ${connack} in CONNACK, ${disconnect} in DISCONNECT`,
        run: () => {
            equal(said(reasonVerdict5(code, false)), connack, "CONNACK")
            equal(said(reasonVerdict5(code, true)), disconnect, "DISCONNECT")
        },
    }
}

function http(status: number, expected: string): Case {
    return {
        name: `HTTP ${status} is ${expected}`,
        run: () => equal(said(httpVerdict(status)), expected),
    }
}

function sockets(): Case[] {
    return [
        ...both(
            "dial",
            "error",
            "connect ECONNREFUSED 127.0.0.1:1883",
            "retry refused: connection refused",
        ),
        ...both("dial", "error", "", "retry refused: connection refused"),
        ...both(
            "dial",
            "error",
            "read ECONNRESET",
            "retry refused: connection refused",
        ),
        ...both("dial", "closed", "", "retry refused: closed before it opened"),
        ...both(
            "dial",
            "error",
            "getaddrinfo ENOTFOUND mqtt.example",
            "retry refused: host name not found",
        ),
        ...both(
            "dial",
            "error",
            "getaddrinfo EAI_AGAIN mqtt.example",
            "retry refused: host name not found",
        ),
        ...both(
            "dial",
            "error",
            "couldn't get hostname for :x: DNS failed",
            "retry refused: host name not found",
        ),
        ...both(
            "dial",
            "error",
            "connect EHOSTUNREACH 10.0.0.9:1883",
            "retry refused: host not reachable",
        ),
        ...both(
            "dial",
            "error",
            "connect ENETUNREACH 10.0.0.9:1883",
            "retry refused: host not reachable",
        ),
        ...both(
            "dial",
            "error",
            "connect ETIMEDOUT 10.0.0.9:1883",
            "retry silent: no TCP connection in time",
        ),
        ...both(
            "dial",
            "native",
            "network not available",
            "retry refused: socket not opened",
        ),
        socket(
            "dial",
            "timeout",
            false,
            "",
            "retry silent: no TCP connection in time",
        ),
        socket(
            "dial",
            "timeout",
            true,
            "",
            "overload stalled: no TLS connection in time",
        ),
        ...both(
            "connack",
            "timeout",
            "",
            "overload stalled: no CONNACK in time",
        ),
        ...both(
            "connack",
            "closed",
            "",
            "overload reset: closed before CONNACK",
        ),
        ...both(
            "connack",
            "error",
            "read ECONNRESET",
            "overload reset: closed before CONNACK",
        ),
        ...both(
            "connack",
            "error",
            "network is down",
            "retry refused: network lost",
        ),
        ...both(
            "connack",
            "native",
            "-10",
            "retry refused: socket write failed",
        ),
        ...both("session", "timeout", "", "retry silent: no PINGRESP in time"),
        ...both("session", "closed", "", "overload reset: connection closed"),
        ...both(
            "session",
            "error",
            "write EPIPE",
            "overload reset: connection closed",
        ),
        ...both(
            "session",
            "error",
            "read ENETUNREACH",
            "retry refused: network lost",
        ),
        ...both(
            "session",
            "native",
            "-100",
            "retry refused: socket write failed",
        ),
    ]
}

function certificates(): Case[] {
    const at = (text: string, expected: string) =>
        socket("dial", "error", true, text, expected)
    return [
        at(
            "Hostname/IP does not match certificate's altnames: Host: a. is not in the cert's altnames: DNS:has expired",
            "slow refused: TLS: certificate of another host",
        ),
        at(
            "ERR_TLS_CERT_ALTNAME_INVALID",
            "slow refused: TLS: certificate of another host",
        ),
        at(
            "MBEDTLS_X509_BADCERT_CN_MISMATCH",
            "slow refused: TLS: certificate of another host",
        ),
        at("certificate has expired", "slow refused: TLS: certificate expired"),
        at("CERT_HAS_EXPIRED", "slow refused: TLS: certificate expired"),
        at("x509_badcert_expired", "slow refused: TLS: certificate expired"),
        at(
            "certificate is not yet valid",
            "slow refused: TLS: certificate not yet valid",
        ),
        at(
            "CERT_NOT_YET_VALID",
            "slow refused: TLS: certificate not yet valid",
        ),
        at(
            "MBEDTLS_X509_BADCERT_FUTURE",
            "slow refused: TLS: certificate not yet valid",
        ),
        at(
            "self-signed certificate in certificate chain",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "self signed certificate",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "unable to verify the first certificate",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "unable to get local issuer certificate",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "MBEDTLS_X509_BADCERT_NOT_TRUSTED",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "tlsv1 alert unknown ca",
            "slow refused: TLS: unknown certificate authority",
        ),
        at(
            "certificate revoked",
            "slow refused: TLS: certificate not accepted",
        ),
        at(
            "mbedtls_ssl_handshake returned -0x2700",
            "slow refused: TLS: certificate not accepted",
        ),
        at(
            "X509 - Certificate verification failed",
            "slow refused: TLS: certificate not accepted",
        ),
        socket(
            "dial",
            "error",
            false,
            "certificate has expired",
            "retry refused: connection refused",
        ),
    ]
}

function mqtt(): Case[] {
    return [
        returnCode(0, "retry refused: unknown return code"),
        returnCode(1, "slow refused: unacceptable protocol version"),
        returnCode(2, "slow refused: client identifier rejected"),
        returnCode(3, "overload busy: server unavailable"),
        returnCode(4, "slow refused: bad user name or password"),
        returnCode(5, "slow refused: not authorised"),
        returnCode(6, "retry refused: unknown return code"),
        returnCode(0x89, "retry refused: unknown return code"),
        returnCode(255, "retry refused: unknown return code"),
        reason(0x00, "retry refused: broker ended the connection"),
        reason(0x04, "retry refused: unknown reason code"),
        reason(0x80, "retry refused: unspecified error"),
        reason(0x81, "slow refused: malformed packet"),
        reason(0x82, "slow refused: protocol error"),
        reason(0x83, "retry refused: implementation specific error"),
        reason(0x84, "slow refused: unsupported protocol version"),
        reason(0x85, "slow refused: client identifier not valid"),
        reason(0x86, "slow refused: bad user name or password"),
        reason(0x87, "slow refused: not authorised"),
        reason(0x88, "overload busy: server unavailable"),
        reason(0x89, "overload busy: server busy"),
        reason(0x8a, "slow refused: banned"),
        reason(0x8b, "retry refused: server shutting down"),
        reason(0x8c, "slow refused: bad authentication method"),
        reason(0x8d, "retry refused: keep alive timeout"),
        reason(0x8e, "slow refused: session taken over"),
        reason(0x8f, "slow refused: topic filter invalid"),
        reason(0x90, "slow refused: topic name invalid"),
        reason(0x93, "retry refused: receive maximum exceeded"),
        reason(0x94, "retry refused: topic alias invalid"),
        reason(
            0x95,
            "slow refused: packet too large",
            "retry refused: packet too large",
        ),
        reason(0x96, "retry refused: message rate too high"),
        reason(0x97, "overload busy: quota exceeded"),
        reason(0x98, "slow refused: administrative action"),
        reason(
            0x99,
            "slow refused: payload format invalid",
            "retry refused: payload format invalid",
        ),
        reason(0x9a, "slow refused: retain not supported"),
        reason(0x9b, "slow refused: QoS not supported"),
        reason(0x9c, "slow refused: use another server"),
        reason(0x9d, "slow refused: server moved"),
        reason(0x9e, "slow refused: shared subscriptions not supported"),
        reason(0x9f, "overload busy: connection rate exceeded"),
        reason(0xa0, "retry refused: maximum connect time"),
        reason(0xa1, "slow refused: subscription ids not supported"),
        reason(0xa2, "slow refused: wildcard filters not supported"),
        reason(0xa3, "retry refused: unknown reason code"),
        reason(0xff, "retry refused: unknown reason code"),
    ]
}

function statuses(): Case[] {
    return [
        http(100, "stop refused: unexpected interim answer"),
        http(200, "stop refused: success, nothing to retry"),
        http(204, "stop refused: success, nothing to retry"),
        http(301, "stop refused: redirect, not followed"),
        http(304, "stop refused: redirect, not followed"),
        http(400, "stop refused: request rejected"),
        http(401, "stop refused: request rejected"),
        http(404, "stop refused: request rejected"),
        http(408, "retry silent: request timeout"),
        http(425, "retry refused: too early"),
        http(429, "overload busy: too many requests"),
        http(499, "stop refused: request rejected"),
        http(500, "retry refused: server error"),
        http(501, "stop refused: not implemented"),
        http(502, "retry refused: server error"),
        http(503, "overload busy: service unavailable"),
        http(504, "retry refused: server error"),
        http(505, "stop refused: HTTP version not supported"),
        http(506, "stop refused: server cannot answer this request"),
        http(507, "retry refused: server error"),
        http(508, "stop refused: server cannot answer this request"),
        http(510, "stop refused: server cannot answer this request"),
        http(511, "slow refused: network wants a sign-in"),
        http(599, "retry refused: server error"),
        http(600, "retry refused: not an HTTP status"),
        http(99, "retry refused: not an HTTP status"),
        http(0, "retry refused: not an HTTP status"),
        http(-1, "retry refused: not an HTTP status"),
        http(NaN, "retry refused: not an HTTP status"),
    ]
}

export function cases(): Case[] {
    return [...sockets(), ...certificates(), ...mqtt(), ...statuses()]
}
