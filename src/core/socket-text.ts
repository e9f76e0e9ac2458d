// What the runtime says of a socket's end, in its own words: a better verdict than the bare fact
// gives, where the words say more. Pure. A program that doesn't name it makes do with `socketVerdict`.
import { Why, type Reason } from "./reason"
import {
    retry,
    silent,
    slow,
    socketVerdict,
    type Phase,
    type SocketFault,
    type Verdict,
} from "./verdict"

/**
 * The verdict on a socket failure; see `socketVerdict`. `text` is the runtime's message, in whatever words: of Node and
 * OpenSSL in the simulator, of lwIP and mbedTLS on a board.
 */
export function explainSocket(
    phase: Phase,
    what: SocketFault,
    tls: boolean,
    text: string,
): Verdict {
    if (what !== "native" && what !== "timeout") {
        const said = text.toLowerCase()
        if (phase === "dial") {
            const verdict = dialVerdict(tls, said)
            if (verdict) return verdict
        } else if (hasAny(said, "network", "unreach"))
            // Our own network went: that says nothing about the broker.
            return retry(Why.networkLost)
    }
    return socketVerdict(phase, what, tls)
}

function dialVerdict(tls: boolean, said: string): Verdict | undefined {
    if (tls) {
        const reason = certificateFault(said)
        // Not the schedule: no number of tries cures it, only a person, or the clock. Not stop: a
        // certificate is renewed, and the device must come back by itself on that day.
        if (reason) return slow(reason)
    }
    if (hasAny(said, "enotfound", "eai_again", "getaddrinfo", "dns", "resolve"))
        return retry("host name not found")
    // The system's own connect timeout, where it comes before ours: nobody answered the SYN.
    if (hasAny(said, "etimedout", "timed out")) return silent(Why.noTcp)
    if (hasAny(said, "unreach", "network not available"))
        return retry("host not reachable")
    return undefined
}

/**
 * The certificate error that Node (OpenSSL) or mbedTLS names, in our words, or "". The host name comes
 * first, because Node's message for it quotes names that the peer chose.
 */
function certificateFault(said: string): Reason {
    if (hasAny(said, "altname", "hostname/ip", "cn_mismatch", "host mismatch"))
        return "TLS: certificate of another host"
    if (hasAny(said, "not yet valid", "not_yet_valid", "badcert_future"))
        return "TLS: certificate not yet valid"
    if (hasAny(said, "has expired", "cert_has_expired", "badcert_expired"))
        return "TLS: certificate expired"
    if (
        hasAny(
            said,
            "self-signed",
            "self signed",
            "unable to verify",
            "unable to get",
            "not_trusted",
        ) ||
        hasAny(said, "unknown ca", "unable_to_verify", "issuer_cert")
    )
        return "TLS: unknown certificate authority"
    // -0x2700 is mbedTLS's "verification failed" without its details.
    if (hasAny(said, "certificate", "x509", "-0x2700"))
        return "TLS: certificate not accepted"
    return ""
}

function hasAny(
    text: string,
    a: string,
    b: string,
    c?: string,
    d?: string,
    e?: string,
): boolean {
    return (
        text.indexOf(a) >= 0 ||
        text.indexOf(b) >= 0 ||
        (!!c && text.indexOf(c) >= 0) ||
        (!!d && text.indexOf(d) >= 0) ||
        (!!e && text.indexOf(e) >= 0)
    )
}
