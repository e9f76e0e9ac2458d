// Settings as text from flash, checked one by one: a bad one costs a `config` line and is
// replaced by its default, never a start. Pure.
import type { ConfigLine } from "./line"

/** Where settings come from and where complaints go. */
export interface ConfigSource {
    /** The JSON text stored under a key, or undefined. */
    raw(key: string): string | undefined
    complain(line: ConfigLine): void
}

/** Values under these keys are never printed. */
function isSecret(key: string): boolean {
    return key === "MQTT_PWD"
}

function parse(raw: string): unknown {
    try {
        return JSON.parse(raw)
    } catch (e) {
        return undefined
    }
}

/** Says that a setting is not allowed and what is used instead; `used` undefined: nothing. */
export function refuse(
    source: ConfigSource,
    key: string,
    raw: string,
    allowed: string,
    used: string | undefined,
) {
    source.complain({
        ev: "config",
        key,
        value: isSecret(key) ? "(secret)" : raw,
        allowed,
        used: used === undefined ? "none" : used,
    })
}

/** A whole number from `low` to `high`; a number written as text counts. */
export function intSetting(
    source: ConfigSource,
    key: string,
    low: number,
    high: number,
    otherwise: number,
): number {
    const raw = source.raw(key)
    if (raw === undefined) return otherwise
    const parsed = parse(raw)
    const value = typeof parsed === "string" ? parse(parsed) : parsed
    if (
        typeof value === "number" &&
        (value | 0) === value &&
        value >= low &&
        value <= high
    )
        return value
    refuse(source, key, raw, `${low}..${high}`, `${otherwise}`)
    return otherwise
}

/** Text of `low` to `high` characters; a number is taken as it was written. */
export function textSetting(
    source: ConfigSource,
    key: string,
    low: number,
    high: number,
    otherwise: string | undefined,
): string | undefined {
    const raw = source.raw(key)
    if (raw === undefined) return otherwise
    const parsed = parse(raw)
    const value = typeof parsed === "number" ? raw : parsed
    if (
        typeof value === "string" &&
        value.length >= low &&
        value.length <= high
    )
        return value
    refuse(source, key, raw, `text of ${low}..${high}`, otherwise)
    return otherwise
}

/** One of a few words; a number is taken as it was written. */
export function choiceSetting(
    source: ConfigSource,
    key: string,
    choices: string[],
    otherwise: string,
): string {
    const raw = source.raw(key)
    if (raw === undefined) return otherwise
    const parsed = parse(raw)
    const value = typeof parsed === "number" ? raw : parsed
    for (const choice of choices) if (choice === value) return choice
    refuse(source, key, raw, choices.join("|"), otherwise)
    return otherwise
}
