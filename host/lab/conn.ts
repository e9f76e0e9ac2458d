// One connection to a scripted broker: what a test may do with it, and what the device sent.
import type { Peer } from "./link"
import {
    describePacket,
    encode,
    reasonCode5,
    type Packet,
    type PacketOf,
    type Version,
} from "./mqtt-wire"
import type { ScriptedBroker } from "./scripted-broker"
import type { Ending } from "./wire"

/** What a broker does with one connection. A hook left out is played politely. */
export interface Play {
    /** TCP is up; nothing has been received. */
    accept?(c: Conn): void
    connect?(c: Conn, packet: PacketOf<"connect">): void
    subscribe?(c: Conn, packet: PacketOf<"subscribe">): void
    unsubscribe?(c: Conn, packet: PacketOf<"unsubscribe">): void
    publish?(c: Conn, packet: PacketOf<"publish">): void
    puback?(c: Conn, packet: PacketOf<"puback">): void
    pingreq?(c: Conn): void
    disconnect?(c: Conn): void
    /** The connection is over. */
    end?(c: Conn): void
    /** Any packet, before its own hook; false keeps it from that hook. */
    packet?(c: Conn, packet: Packet): boolean | void
}

/** A packet a device sent, and when it arrived. */
export interface Received<C extends Packet["cmd"] = Packet["cmd"]> {
    atMs: number
    conn: Conn
    packet: PacketOf<C>
}

/** How bytes leave: `pieces` cuts them ("bytes": one by one), `everyMs` apart. */
export interface SendOptions {
    pieces?: "bytes" | number[]
    everyMs?: number
}

/** One connection to a scripted broker, as a test's hands see it. */
export class Conn {
    readonly openedMs: number
    /** -1 while open. */
    closedMs = -1
    /** Who ended it: the broker, or the device (and how). */
    closedBy: "broker" | Ending | undefined
    /** Everything the device sent here. */
    readonly packets: Received[] = []
    /** What mqtt-packet could not read, if anything. */
    malformed: string | undefined
    clientId = ""
    /** What the device's CONNECT speaks, and so what is sent. */
    version: Version = 4
    /** Bytes the device sent here. */
    bytesIn = 0
    private together: Uint8Array[] | undefined

    constructor(
        readonly broker: ScriptedBroker,
        readonly index: number,
        readonly peer: Peer,
        readonly play: Play,
    ) {
        this.openedMs = broker.world.nowMs
    }

    get isOpen() {
        return this.closedMs < 0
    }

    /** The device's name. */
    get device() {
        return this.peer.device
    }

    /** Does something later, if the connection is still open then. */
    after(ms: number, run: () => void): this {
        this.broker.world.after(ms, () => this.isOpen && run())
        return this
    }

    // ---- sending ----

    /** Sends a packet, or raw bytes (also as hex text). */
    send(what: Packet | Uint8Array | string, options: SendOptions = {}): this {
        const bytes =
            typeof what === "string"
                ? Buffer.from(what.replace(/\s/g, ""), "hex")
                : what instanceof Uint8Array
                  ? what
                  : encode(what, this.version)
        if (!(what instanceof Uint8Array) && typeof what !== "string")
            this.say(`-> ${describePacket(what)}`)
        else this.say(`-> ${bytes.length} raw bytes`)
        if (this.together) {
            this.together.push(bytes)
            return this
        }
        const { pieces, everyMs = 1 } = options
        if (!pieces) {
            if (this.isOpen) this.peer.write(bytes)
            return this
        }
        const sizes = pieces === "bytes" ? bytes.length : pieces
        let at = 0
        for (let i = 0; at < bytes.length; ++i) {
            const size = typeof sizes === "number" ? 1 : (sizes[i] ?? 1 << 30)
            const piece = bytes.subarray(at, (at += size))
            if (i === 0) this.peer.write(piece)
            else this.after(i * everyMs, () => this.peer.write(piece))
        }
        return this
    }

    /** Everything sent within `run` leaves as one segment. */
    oneSegment(run: () => void, options: SendOptions = {}): this {
        const all: Uint8Array[] = (this.together = [])
        run()
        this.together = undefined
        return this.send(Buffer.concat(all), options)
    }

    /** CONNACK; session present only counts with code 0. */
    connack(code = 0, sessionPresent = false, options?: SendOptions): this {
        // By hand: mqtt-packet refuses to write codes that do not exist.
        const present = sessionPresent ? 1 : 0
        return this.send(
            Buffer.from(
                this.version === 5
                    ? [0x20, 3, present, reasonCode5(code), 0]
                    : [0x20, 2, present, code],
            ),
            options,
        )
    }

    /** CONNACK of MQTT 5 with properties. */
    connack5(
        properties: PacketOf<"connack">["properties"],
        reasonCode = 0,
    ): this {
        return this.send({
            cmd: "connack",
            reasonCode,
            sessionPresent: false,
            properties,
        })
    }

    /** DISCONNECT of MQTT 5, and then FIN. */
    dismiss(
        reasonCode: number,
        properties?: PacketOf<"disconnect">["properties"],
    ) {
        this.send({ cmd: "disconnect", reasonCode, properties })
        this.fin()
    }

    /** SUBACK granting what was asked, or with the codes given. */
    suback(packet: PacketOf<"subscribe">, codes?: number[]): this {
        const granted = codes ?? packet.subscriptions.map(s => s.qos)
        return this.send({
            cmd: "suback",
            messageId: packet.messageId,
            granted,
        })
    }

    unsuback(packet: { messageId?: number; unsubscriptions?: string[] }): this {
        const { messageId, unsubscriptions = [] } = packet
        const granted = unsubscriptions.map(() => 0)
        return this.send({ cmd: "unsuback", messageId, granted })
    }

    puback(packet: { messageId?: number }): this {
        return this.send({ cmd: "puback", messageId: packet.messageId })
    }

    /** PUBLISH to the device; with QoS 1 give an id. */
    publish(
        topic: string,
        payload: string | Uint8Array,
        more: {
            qos?: 0 | 1 | 2
            id?: number
            retain?: boolean
            dup?: boolean
        } = {},
        options?: SendOptions,
    ): this {
        const { qos = 0, id, retain = false, dup = false } = more
        return this.send(
            {
                cmd: "publish",
                topic,
                payload: Buffer.from(payload as Uint8Array),
                qos,
                retain,
                dup,
                messageId: qos ? (id ?? this.broker.nextPacketId()) : undefined,
            },
            options,
        )
    }

    pingresp(): this {
        return this.send({ cmd: "pingresp" })
    }

    /** Closes in order. */
    fin() {
        if (!this.isOpen) return
        this.peer.end()
        this.over("broker")
    }

    /** Resets. */
    rst() {
        if (!this.isOpen) return
        this.peer.reset()
        this.over("broker")
    }

    // ---- what the device sent ----

    /** The packets of one kind that the device sent here. */
    sent<C extends Packet["cmd"]>(cmd: C): Received<C>[] {
        return this.packets.filter(
            r => r.packet.cmd === cmd,
        ) as unknown as Received<C>[]
    }

    /** @internal */
    over(by: "broker" | Ending) {
        if (!this.isOpen) return
        this.closedMs = this.broker.world.nowMs
        this.closedBy = by
        this.say(by === "broker" ? "closed by broker" : `ended: ${by}`)
        this.play.end?.(this)
    }

    say(what: string) {
        this.broker.world.say(this.broker.address, `c${this.index} ${what}`)
    }
}
