// Message expiry of MQTT 5 (3.3.2.3.3) for what waits on the device: what it says counts from when the message was
// published. Pure; a program that doesn't name it doesn't carry it.
import { copyOf } from "./bytes"
import type { Entry } from "./outbox"
import { PropertyId, putU32, valueAt } from "./v5-properties"

/**
 * Takes the time a message has waited off its expiry, in steps of a second; true when none is left. For the option
 * `expiry` of `mqtt5` and `mqttAuto`.
 */
export function messageExpiry(entry: Entry, nowMs: number): boolean {
    const properties = entry.properties
    const sinceMs = entry.sinceMs
    const seconds = Math.floor((nowMs - sinceMs) / 1000)
    if (properties === undefined || seconds < 1) return false
    const at = valueAt(properties, PropertyId.messageExpiry)
    if (at < 0 || at + 4 > properties.length) return false
    const left = u32At(properties, at) - seconds
    // Not in place: the application may use its own once more.
    const aged = copyOf(properties, 0, properties.length)
    // What has to go once more, though it is late (4.4), goes with the shortest there is.
    putU32(aged, at, left > 0 ? left : 1)
    entry.properties = aged
    entry.sinceMs = sinceMs + seconds * 1000
    return left <= 0
}

function u32At(bytes: Buffer, at: number): number {
    const low = (bytes[at + 2] << 8) | bytes[at + 3]
    return ((bytes[at] << 8) | bytes[at + 1]) * 0x10000 + low
}
