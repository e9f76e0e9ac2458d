// Payloads as text.
import { readText } from "../mqtt/bytes"
import type { Publish } from "../mqtt/packets"

/**
 * A message's payload as text, or undefined when it is not well-formed UTF-8. Use this instead
 * of `payload.toString()`, which reads past the end of a payload that stops inside a character.
 */
export function messageText(message: Publish): string | undefined {
    return readText(message.payload, 0, message.payload.length)
}
