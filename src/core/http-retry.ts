// What may be sent again over HTTP, and when: methods, and Retry-After. Pure. Which status may be tried again is in verdict.ts.
import { below, div } from "./int"
import type { Random } from "./random"

/** Whether doing it twice is as good as once (RFC 9110, 9.2.2). Others are tried again only with a key. */
export function isIdempotent(method: string): boolean {
    switch (method) {
        case "GET":
        case "HEAD":
        case "PUT":
        case "DELETE":
        case "OPTIONS":
        case "TRACE":
            return true
        default:
            return false
    }
}

/** No server makes a device wait longer. */
export const RETRY_AFTER_MAX_MS = 60000

/**
 * Retry-After in ms, at most RETRY_AFTER_MAX_MS; 0 when there is none, or a date: a device has no clock for it
 * (RFC 9110, 10.2.3).
 */
export function retryAfterMs(header: string | null | undefined): number {
    if (!header || header.length > 9) return 0
    let seconds = 0
    for (let i = 0; i < header.length; ++i) {
        const digit = header.charCodeAt(i) - 48
        if (digit < 0 || digit > 9) return 0
        const twice = seconds + seconds
        seconds = twice + twice + twice + twice + twice + digit
    }
    if (seconds >= div(RETRY_AFTER_MAX_MS, 1000)) return RETRY_AFTER_MAX_MS
    let ms = 0
    for (let i = 0; i < seconds; ++i) ms += 1000
    return ms
}

/**
 * The wait before the next try: our own, or longer when the server asks for it; then up to a fifth more, because
 * it asks every device for the same.
 */
export function httpWaitMs(
    ownMs: number,
    askedMs: number,
    random: Random,
): number {
    if (ownMs >= askedMs) return ownMs
    return askedMs + below(div(askedMs, 5) + 1, random)
}
