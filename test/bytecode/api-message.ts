// The messages of the long session with a real broker: number, seed -> topic, payload, filter. The device
// makes them to send, the host to compare.
import { below } from "../../src/core/int"
import { Sfc32 } from "../../src/core/random"

const LEVELS = [
    "a",
    "b",
    "",
    "x y",
    "stra\u00dfe",
    "\u65e5\u672c",
    "\u{1f3e0}",
    "$d",
    "0",
]

function randomOf(seed: number, i: number) {
    return new Sfc32(seed, i, 7, 7)
}

/** Below `long/`, one to six levels. */
export function topicOf(seed: number, i: number): string {
    const random = randomOf(seed, i)
    let topic = "long"
    for (let n = 1 + below(6, random); n > 0; --n)
        topic += "/" + LEVELS[below(LEVELS.length, random)]
    return topic
}

/** A filter that may match such topics, with + and #. */
export function filterOf(seed: number, i: number): string {
    const random = randomOf(seed, ~i)
    let filter = below(4, random) ? "long" : "+"
    for (let n = 1 + below(5, random); n > 0; --n)
        filter +=
            "/" +
            (below(3, random) ? LEVELS[below(LEVELS.length, random)] : "+")
    return below(4, random) ? filter : filter + "/#"
}

/** The message's number in 4 bytes, then up to 1,500 more; mostly few. */
export function payloadOf(seed: number, i: number): Buffer {
    const random = randomOf(i, seed)
    const bytes = 4 + below(below(5, random) ? 60 : 1500, random)
    const payload = Buffer.alloc(bytes)
    for (let at = 0; at < bytes; ++at) payload[at] = (at + i) & 255
    for (let at = 4; at < bytes && at < 64; ++at)
        payload[at] = random.next() & 255
    for (let at = 0; at < 4; ++at) payload[at] = (i >>> (8 * at)) & 255
    return payload
}
