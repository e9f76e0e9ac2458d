// MQTT bytes for the lab's brokers, by npm mqtt-packet: independent of our own parser and
// encoder, so that a mistake of ours has somebody to contradict it.
import { generate, parser, type Packet } from "mqtt-packet"

export type { Packet }

/** A packet of one kind. */
export type PacketOf<C extends Packet["cmd"]> = Extract<Packet, { cmd: C }>

/** Reads one connection's byte stream. After an error nothing more is read. */
export class WireReader {
    private readonly reader = parser({ protocolVersion: 4 })
    private broken = false

    constructor(
        onPacket: (packet: Packet) => void,
        onError: (reason: string) => void,
    ) {
        this.reader.on("packet", onPacket)
        this.reader.on("error", (e: Error) => {
            this.broken = true
            onError(e.message)
        })
    }

    push(bytes: Uint8Array) {
        if (!this.broken) this.reader.parse(Buffer.from(bytes))
    }
}

/** A packet's bytes, as MQTT 3.1.1. */
export function encode(packet: Packet): Buffer {
    return generate(packet, { protocolVersion: 4 })
}

/** Whether a filter matches a topic [MQTT-4.7]; the lab's own reading of the standard. */
export function filterMatches(filter: string, topic: string): boolean {
    const f = filter.split("/")
    const t = topic.split("/")
    if (topic.startsWith("$") && (f[0] === "#" || f[0] === "+")) return false
    const many = f.at(-1) === "#"
    if (many) f.pop()
    if (many ? t.length < f.length : t.length !== f.length) return false
    return f.every((level, i) => level === "+" || level === t[i])
}

/** A packet in one line, for logs. */
export function describePacket(packet: Packet): string {
    const parts: string[] = [packet.cmd]
    if (packet.messageId) parts.push(`id ${packet.messageId}`)
    if (packet.cmd === "publish")
        parts.push(
            `${packet.topic} qos ${packet.qos}`,
            ...(packet.dup ? ["dup"] : []),
            ...(packet.retain ? ["retain"] : []),
            `${packet.payload.length} B`,
        )
    if (packet.cmd === "connect") parts.push(packet.clientId)
    if (packet.cmd === "connack") parts.push(`code ${packet.returnCode}`)
    if (packet.cmd === "subscribe")
        parts.push(packet.subscriptions.map(s => s.topic).join(" "))
    if (packet.cmd === "unsubscribe")
        parts.push(packet.unsubscriptions.join(" "))
    return parts.join(" ")
}
