// MQTT bytes for the lab's brokers, by npm mqtt-packet: independent of our own parser and
// encoder, so that a mistake of ours has somebody to contradict it.
import { generate, parser, type Packet } from "mqtt-packet"

export type { Packet }

/** A packet of one kind. */
export type PacketOf<C extends Packet["cmd"]> = Extract<Packet, { cmd: C }>

/** Protocol levels: 4 is MQTT 3.1.1. */
export type Version = 4 | 5

/** Reads one connection's byte stream, in the version its CONNECT says. After an error nothing more is read. */
export class WireReader {
    /** What the stream is read as; for the other direction set it by hand. */
    version: Version = 4
    private readonly reader = parser({ protocolVersion: 4 })
    private broken = false

    constructor(
        onPacket: (packet: Packet) => void,
        onError: (reason: string) => void,
    ) {
        this.reader.on("packet", (packet: Packet) => {
            if (packet.cmd === "connect" && packet.protocolVersion === 5)
                this.speak(5)
            onPacket(packet)
        })
        this.reader.on("error", (e: Error) => {
            this.broken = true
            onError(e.message)
        })
    }

    /** What comes is in this version. */
    speak(version: Version) {
        this.version = version
        const reader = this.reader as unknown as {
            settings: { protocolVersion: Version }
        }
        reader.settings.protocolVersion = version
    }

    push(bytes: Uint8Array) {
        if (!this.broken) this.reader.parse(Buffer.from(bytes))
    }
}

/** A packet's bytes; what MQTT 5 must have and MQTT 3.1.1 has not is filled in: codes of success. */
export function encode(packet: Packet, version: Version = 4): Buffer {
    const whole = { ...packet } as Record<string, unknown>
    if (version === 5) {
        if (packet.cmd === "puback") whole.reasonCode ??= 0
        if (packet.cmd === "connack")
            whole.reasonCode ??= reasonCode5(packet.returnCode ?? 0)
    }
    return generate(whole as unknown as Packet, { protocolVersion: version })
}

/** The MQTT 5 code that says what a return code of MQTT 3.1.1 says; others stay as they are. */
export function reasonCode5(returnCode: number): number {
    return [0, 0x84, 0x85, 0x88, 0x86, 0x87][returnCode] ?? returnCode
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
    if (packet.cmd === "connack")
        parts.push(`code ${packet.reasonCode ?? packet.returnCode}`)
    if (packet.cmd === "disconnect" && packet.reasonCode)
        parts.push(`code ${packet.reasonCode}`)
    if (packet.cmd === "subscribe")
        parts.push(packet.subscriptions.map(s => s.topic).join(" "))
    if (packet.cmd === "unsubscribe")
        parts.push(packet.unsubscriptions.join(" "))
    return parts.join(" ")
}
