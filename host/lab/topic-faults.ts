// What makes a topic name or filter illegal, with the clause; the lab's own reading of MQTT 3.1.1.

export interface TopicFault {
    clause: string
    what: string
}

const MAX_BYTES = 65535

function textFault(text: string): TopicFault | undefined {
    if (!text) return { clause: "MQTT-4.7.3-1", what: "empty topic" }
    if (text.includes("\0"))
        return { clause: "MQTT-4.7.3-2", what: "NUL in a topic" }
    if (Buffer.byteLength(text) > MAX_BYTES)
        return { clause: "MQTT-4.7.3-3", what: "topic too long" }
    return undefined
}

/** Of a topic name in PUBLISH. */
export function topicFault(topic: string): TopicFault | undefined {
    if (/[+#]/.test(topic))
        return { clause: "MQTT-3.3.2-2", what: `wildcard in topic ${topic}` }
    return textFault(topic)
}

/** Of a filter in SUBSCRIBE. */
export function filterFault(filter: string): TopicFault | undefined {
    const levels = filter.split("/")
    for (let i = 0; i < levels.length; ++i) {
        const level = levels[i]
        if (level.includes("#") && (level !== "#" || i < levels.length - 1))
            return { clause: "MQTT-4.7.1-2", what: `# in filter ${filter}` }
        if (level.includes("+") && level !== "+")
            return { clause: "MQTT-4.7.1-3", what: `+ in filter ${filter}` }
    }
    return textFault(filter)
}
