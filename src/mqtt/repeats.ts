// QoS 1 in: which messages are repetitions. Pure. The broker sends a message again when our PUBACK did not reach it before the
// connection broke; then it has the same identifier and DUP.
//
// The same identifier with DUP may also be another message, whose first copy was lost with the connection (then the broker
// had our PUBACK, and was free to use the identifier again); for that [MQTT-4.3.2-2] forbids to go by the two alone. So
// topic, length, head and tail of it are compared too, and only with messages from earlier connections of this session, for
// within one connection nothing is sent twice. What is left: the same text to the same topic under the same identifier,
// the first copy of it lost. Commands that must not be lost or run twice carry a key; see core/dedup.ts.
import type { Publish } from "./packets"

/** Messages that are remembered. Brokers keep 10 to 20 in flight. */
const MAX_REMEMBERED = 20

/** Bytes of head and of tail that are looked at. */
const LOOK_BYTES = 24

/** The messages that have been taken, the oldest first. */
export interface Repeats {
    ids: number[]
    marks: number[]
    /** So many of them came on earlier connections. */
    earlier: number
}

/** CONNACK 0 came. */
export function reconnected(taken: Repeats, sessionPresent: boolean) {
    if (!sessionPresent) {
        taken.ids = []
        taken.marks = []
    }
    taken.earlier = taken.ids.length
}

/** Whether a QoS 1 message repeats one that has been taken; if not, it is remembered. */
export function isRepeat(taken: Repeats, message: Publish): boolean {
    const ids = taken.ids
    const marks = taken.marks
    const mark = markOf(message)
    const packetId = message.packetId as number
    const at = ids.indexOf(packetId)
    if (at >= 0) {
        if (message.dup && at < taken.earlier && marks[at] === mark) return true
        // The identifier is in use again.
        forget(taken, at)
    } else if (ids.length >= MAX_REMEMBERED) forget(taken, 0)
    ids.push(packetId)
    marks.push(mark)
    return false
}

function forget(taken: Repeats, at: number) {
    taken.ids.insert(at, -1)
    taken.marks.insert(at, -1)
    if (at < taken.earlier) taken.earlier--
}

/** A number of 32 bits that tells messages apart. */
function markOf({ topic, payload }: Publish): number {
    const bytes = payload.length
    const length = topic.length
    let mark = mix(length, bytes)
    const from = length - LOOK_BYTES
    for (let i = from > 0 ? from : 0; i < length; ++i)
        mark = mix(mark, topic.charCodeAt(i))
    for (let i = 0; i < bytes && i < LOOK_BYTES; ++i)
        mark = mix(mark, payload[i])
    const tail = bytes - LOOK_BYTES
    for (let i = tail > LOOK_BYTES ? tail : LOOK_BYTES; i < bytes; ++i)
        mark = mix(mark, payload[i])
    return mark
}

/** One step of FNV-1a. */
function mix(mark: number, byte: number): number {
    return Math.imul(mark ^ byte, 16777619)
}
