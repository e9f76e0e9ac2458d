// Topic names and filters: what is allowed in them and which filter matches which name
// (MQTT 3.1.1, section 4.7). Rule of the room: pure.
import { textFault } from "./bytes"

const SLASH = 47

/**
 * Whether a message published to `topic` is for a subscription to `filter`.
 * Both must have passed `checkTopicFilter` and `checkTopicName`; an empty one matches nothing.
 * `+` stands for one level, `#` for the level above it and all below, and neither, as the first
 * character, for a topic that starts with `$` [MQTT-4.7.2-1].
 *
 * It compares the literal runs between wildcards natively: a loop over characters takes three times
 * as long in the VM. Without wildcards nothing is allocated, with them one short string a run, and one for `#`.
 */
export function matches(filter: string, topic: string): boolean {
    if (filter === topic) return true
    const hash = filter.indexOf("#")
    let plus = filter.indexOf("+")
    if (hash < 0 && plus < 0) return false
    if (topic.length === 0) return false
    if (hash === 0 || plus === 0) {
        if (topic.indexOf("$") === 0) return false
    }
    let name = topic
    let end = filter.length
    if (hash >= 0) {
        // "s/#" stands for "s" too
        name += "/"
        end = hash
    }
    let f = 0
    let t = 0
    while (true) {
        let to = plus
        if (to < 0) to = end
        if (f < to) {
            if (name.indexOf(filter.slice(f, to), t) !== t) return false
            t += to - f
        }
        if (to === hash) return true
        if (to === end) return t === name.length
        t = name.indexOf("/", t)
        if (t < 0) t = name.length
        f = to + 1
        plus = filter.indexOf("+", f)
    }
}

/**
 * What forbids publishing to `name`, in words with the clause; undefined when nothing does.
 * 1 to 65,535 bytes of UTF-8, no U+0000, no wildcard.
 */
export function checkTopicName(name: string): string | undefined {
    if (name.length === 0) return "is empty [MQTT-4.7.3-1]"
    if (name.indexOf("+") >= 0 || name.indexOf("#") >= 0)
        return "holds a wildcard, + or # [MQTT-3.3.2-2]"
    return textFault(name)
}

/**
 * What forbids subscribing to `filter`, in words with the clause; undefined when nothing does.
 * 1 to 65,535 bytes of UTF-8, no U+0000; `#` only as the whole last level, `+` only as a whole level.
 */
export function checkTopicFilter(filter: string): string | undefined {
    const length = filter.length
    if (length === 0) return "is empty [MQTT-4.7.3-1]"
    const hash = filter.indexOf("#")
    if (hash >= 0) {
        if (hash + 1 !== length) return "has # before its end [MQTT-4.7.1-2]"
        if (hash > 0 && filter.charCodeAt(hash - 1) !== SLASH)
            return "has # inside a level [MQTT-4.7.1-2]"
    }
    let plus = filter.indexOf("+")
    while (plus >= 0) {
        if (
            (plus > 0 && filter.charCodeAt(plus - 1) !== SLASH) ||
            (plus + 1 < length && filter.charCodeAt(plus + 1) !== SLASH)
        )
            return "has + inside a level [MQTT-4.7.1-3]"
        plus = filter.indexOf("+", plus + 1)
    }
    return textFault(filter)
}
