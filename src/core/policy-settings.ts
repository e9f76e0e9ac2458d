// The reconnect policy that settings describe; `npm start` reads the same to know what to expect. Pure.
import { defaultPolicy, type Jitter, type Policy } from "./policy"
import { choiceSetting, intSetting, type ConfigSource } from "./config"
import { MAX_INT } from "./int"

/** Each bound follows the one before it, so that the policy is always a possible one. */
export function readPolicy(from: ConfigSource): Policy {
    const p = defaultPolicy()
    p.minMs = intSetting(from, "RETRY_MIN", 1, MAX_INT, p.minMs)
    p.capMs = intSetting(
        from,
        "RETRY_CAP",
        p.minMs,
        MAX_INT,
        atLeast(p.capMs, p.minMs),
    )
    const overloadMs = atLeast(p.overloadCapMs, p.capMs)
    p.overloadCapMs = intSetting(
        from,
        "OVERLOAD_CAP",
        p.capMs,
        MAX_INT,
        overloadMs,
    )
    p.jitter = choiceSetting(
        from,
        "JITTER",
        ["proportional", "equal", "full", "decorrelated", "none"],
        p.jitter,
    ) as Jitter
    const maxSpreadMs = p.jitter === "none" ? 0 : p.overloadCapMs
    p.spreadMs = intSetting(from, "SPREAD", 0, maxSpreadMs, p.spreadMs)
    p.fastFirst = intSetting(from, "FAST_FIRST", 0, 1, 0) === 1
    p.maxAttempts = intSetting(from, "MAX_ATTEMPTS", 0, MAX_INT, p.maxAttempts)
    p.connackMs = intSetting(from, "CONNACK_WAIT", 100, 600000, p.connackMs)
    p.connackOverloadMs = atLeast(p.connackOverloadMs, p.connackMs)
    p.dialMs = intSetting(from, "DIAL_WAIT", 100, 600000, p.dialMs)
    p.stableMs = intSetting(from, "STABLE", 0, MAX_INT, p.stableMs)
    return p
}

function atLeast(value: number, low: number): number {
    return value < low ? low : value
}
