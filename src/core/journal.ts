// What a connection decides, as lines of the public log. Pure.
import type { Connection, Decision } from "./connection"
import type { Line } from "./line"
import { Why, wordsOf } from "./reason"
import { retry, type Cause, type Evidence } from "./verdict"

/**
 * The line for a decision; call it when the port is told, before the connection's state changes.
 * @param level the protocol level spoken, for a `connected` line; 4 is MQTT 3.1.1
 */
export function lineOf(
    what: Decision,
    c: Connection,
    nowMs: number,
    cause: Cause | undefined,
    flag: boolean | undefined,
    level: number | undefined,
): Line {
    const { attempts, slowMs, ceilingMs, proven } = c.backoff
    const { lane, evidence, reason } = cause ? cause : retry(Why.none)
    const words = wordsOf(reason)
    const lastedMs = nowMs - c.sinceMs
    switch (what) {
        case "attempt": {
            const { host, port, tls } = c.endpoint
            const proto = tls ? "tls" : "tcp"
            return { ev: "attempt", n: attempts + 1, host, port, proto }
        }
        case "connected":
            return {
                ev: "connected",
                n: attempts + 1,
                tookMs: lastedMs,
                session: !!flag,
                mqtt: level === 4 ? undefined : level,
            }
        case "lost":
            return {
                ev: "lost",
                upMs: lastedMs,
                lane,
                evidence: evidence as Evidence,
                reason: words,
                flap: !!flag,
            }
        case "retry":
            return {
                ev: "retry",
                n: attempts,
                delayMs: c.dueMs - nowMs,
                ceilingMs: lane === "slow" ? slowMs : ceilingMs,
                lane,
                evidence,
                reason: words,
                proven,
            }
        default:
            return {
                ev: "halt",
                reason: lane === "stop" ? words : "gave up: " + words,
            }
    }
}
