// One connection to the strict broker: packets in, answers out, every breach noted with its clause.
import type { Broker } from "./broker"
import type { Message, Session } from "./broker-session"
import type { Peer } from "./link"
import {
    describePacket,
    encode,
    filterMatches,
    WireReader,
    type Packet,
    type PacketOf,
    type Version,
} from "./mqtt-wire"
import { filterFault, topicFault } from "./topic-faults"
import type { Ending } from "./wire"

/** A connection without CONNECT is closed after this long. */
const CONNECT_WAIT_MS = 10_000

/** A client that has said DISCONNECT has this long to close. */
const LEAVE_MS = 1000

/** One connection. */
export class Client {
    clientId = ""
    session: Session | undefined
    private will: Message | undefined
    private keepAliveMs = 0
    private lastMs: number
    private isOpen = true
    private said = false
    private gone = false
    /** QoS 2 messages between PUBLISH and PUBREL. */
    private readonly received = new Set<number>()
    /** When an answer to a packet identifier left. */
    private readonly answeredMs = new Map<number, number>()
    private sessionPresent = false
    private version: Version = 4
    /** QoS 1 messages without PUBACK that the client may be sent. */
    private receiveMaximum = 65535
    /** The largest packet the client takes. */
    private maximumPacketBytes = Infinity

    constructor(
        private readonly broker: Broker,
        readonly peer: Peer,
    ) {
        this.lastMs = broker.world.nowMs
        const reader = new WireReader(
            packet => this.take(packet),
            reason => this.breach("MQTT-4.8.0-1", `malformed: ${reason}`),
        )
        peer.onData = bytes => {
            if (this.gone)
                return this.note("MQTT-3.14.4-2", "bytes after DISCONNECT")
            if (this.isOpen) reader.push(bytes)
        }
        peer.onEnd = how => this.ended(how)
        broker.world.after(CONNECT_WAIT_MS, () => {
            if (this.isOpen && !this.said) this.lose("fin")
        })
    }

    /** Ends the connection; the will is sent. */
    lose(how: Ending, reasonCode = 0) {
        if (reasonCode && this.version === 5 && this.isOpen && this.session)
            this.send({ cmd: "disconnect", reasonCode })
        this.drop(how)
        this.sendWill()
    }

    /** Ends the connection and nothing else. */
    drop(how: Ending) {
        if (!this.isOpen) return
        if (how === "fin") this.peer.end()
        else this.peer.reset()
        this.over(`closed: ${how}`)
    }

    private ended(how: Ending) {
        if (!this.isOpen) return
        this.over(`ended by device: ${how}`)
        this.sendWill()
    }

    private over(why: string) {
        this.isOpen = false
        this.say(why)
        this.broker.forget(this)
        this.session?.detach()
        if (this.session?.clean) this.broker.sessions.delete(this.clientId)
        this.session = undefined
    }

    private sendWill() {
        const { will } = this
        this.will = undefined
        if (!will) return
        const { clientId, broker } = this
        const atMs = broker.world.nowMs
        broker.wills.push({ ...will, atMs, clientId, dup: false })
        this.say(`will ${will.topic}`)
        broker.spread(will)
    }

    private say(what: string) {
        this.broker.world.say(
            this.broker.address,
            `${this.peer.device} ${what}`,
        )
    }

    private note(clause: string, what: string) {
        this.broker.violation(this.peer.device, clause, what)
    }

    /** A breach: noted, and the connection ends. */
    private breach(clause: string, what: string) {
        this.note(clause, what)
        this.lose("fin")
    }

    private send(packet: Packet) {
        this.say(`-> ${describePacket(packet)}`)
        const bytes = encode(packet, this.version)
        // [MQTT-3.1.2-28]: as if it had been sent, and answered.
        if (bytes.length > this.maximumPacketBytes) {
            this.say(`not sent, ${bytes.length} B are too many`)
            if (packet.cmd === "publish" && packet.qos)
                this.session!.acked(packet.messageId!)
            return
        }
        this.peer.write(bytes)
    }

    private take(packet: Packet) {
        if (!this.isOpen) {
            if (this.gone)
                this.note("MQTT-3.14.4-2", `${packet.cmd} after DISCONNECT`)
            return
        }
        this.say(`<- ${describePacket(packet)}`)
        this.lastMs = this.broker.world.nowMs
        if (!this.said) {
            if (packet.cmd !== "connect")
                return this.breach("MQTT-3.1.0-1", `${packet.cmd} first`)
            this.said = true
            return this.connect(packet)
        }
        switch (packet.cmd) {
            case "connect":
                return this.breach("MQTT-3.1.0-2", "second CONNECT")
            case "publish":
                return this.publish(packet)
            case "puback":
                if (!this.session!.acked(packet.messageId!))
                    this.note("MQTT-4.3.2-2", "PUBACK for nothing")
                return
            case "pubrel":
                this.received.delete(packet.messageId!)
                return this.send({
                    cmd: "pubcomp",
                    messageId: packet.messageId,
                })
            case "subscribe":
                return this.subscribe(packet)
            case "unsubscribe":
                return this.unsubscribe(packet)
            case "pingreq":
                return this.send({ cmd: "pingresp" })
            case "disconnect":
                // The client closes [MQTT-3.14.4-1]; what else it sends is still heard.
                this.will = undefined
                this.gone = true
                this.over("has left")
                this.broker.world.after(LEAVE_MS, () => this.peer.end())
                return
            default:
                return this.breach(
                    "MQTT-2.2.1",
                    `${packet.cmd} is not for clients to send`,
                )
        }
    }

    private connect(p: PacketOf<"connect">) {
        this.version = p.protocolVersion === 5 ? 5 : 4
        const code = this.judge(p)
        if (code) {
            this.send({
                cmd: "connack",
                returnCode: code,
                sessionPresent: false,
            })
            return this.drop("fin")
        }
        this.clientId =
            p.clientId || `anonymous-${this.broker.world.random.next()}`
        const clean = p.clean !== false
        this.receiveMaximum = p.properties?.receiveMaximum ?? 65535
        this.maximumPacketBytes = p.properties?.maximumPacketSize ?? Infinity
        const { session, present } = this.broker.takeSession(
            this.clientId,
            clean,
        )
        this.session = session
        this.sessionPresent = present
        if (p.will)
            this.will = {
                topic: p.will.topic,
                payload: Buffer.from(p.will.payload as Buffer),
                qos: Math.min(p.will.qos ?? 0, 1) as 0 | 1,
                retain: !!p.will.retain,
            }
        this.keepAliveMs = (p.keepalive ?? 0) * 1500
        if (this.keepAliveMs) this.watch(this.keepAliveMs)
        this.broker.connects++
        this.send({ cmd: "connack", returnCode: 0, sessionPresent: present })
        session.attach(packet => this.send(packet), this.receiveMaximum)
    }

    private judge(p: PacketOf<"connect">): number {
        if (p.protocolVersion !== 4 && p.protocolVersion !== 5) return 1
        if (!p.clientId && p.clean === false) return 2
        const { users } = this.broker.options
        if (!users) return 0
        const password = p.username ? users[p.username] : undefined
        return password !== undefined && password === p.password?.toString()
            ? 0
            : 4
    }

    /** [MQTT-3.1.2-24] */
    private watch(inMs: number) {
        this.broker.world.after(inMs, () => {
            if (!this.isOpen) return
            const leftMs =
                this.lastMs + this.keepAliveMs - this.broker.world.nowMs
            if (leftMs > 0) return this.watch(leftMs)
            this.broker.keepAliveTimeouts++
            this.say("keep alive is over")
            this.lose("fin", 0x8d)
        })
    }

    private publish(p: PacketOf<"publish">) {
        const fault = topicFault(p.topic)
        if (fault) return this.breach(fault.clause, fault.what)
        if (p.qos === 0 && p.dup) this.note("MQTT-3.3.1-2", "DUP with QoS 0")
        if (p.qos > 0) {
            if (!this.checkId(p)) return
            if (p.dup && !this.sessionPresent)
                this.note("MQTT-3.3.1-1", "DUP in a new session")
        }
        const message: Message = {
            topic: p.topic,
            payload: Buffer.from(p.payload as Buffer),
            qos: Math.min(p.qos, 1) as 0 | 1,
            retain: p.retain,
        }
        if (p.qos === 2) {
            const again = this.received.has(p.messageId!)
            this.received.add(p.messageId!)
            this.send({ cmd: "pubrec", messageId: p.messageId })
            if (again) return
        }
        const atMs = this.broker.world.nowMs
        const { clientId } = this
        this.broker.messages.push({ ...message, atMs, clientId, dup: p.dup })
        this.broker.spread(message)
        if (p.qos === 1) {
            this.answer(p.messageId!)
            this.send({ cmd: "puback", messageId: p.messageId })
        }
    }

    private subscribe(p: PacketOf<"subscribe">) {
        if (!this.checkId(p)) return
        for (const { topic } of p.subscriptions) {
            const fault = filterFault(topic)
            if (fault) return this.breach(fault.clause, fault.what)
        }
        const granted = p.subscriptions.map(({ topic, qos }) =>
            this.session!.subscribe(topic, Math.min(qos, 1) as 0 | 1),
        )
        this.answer(p.messageId!)
        this.send({ cmd: "suback", messageId: p.messageId, granted })
        // Retained messages come anew with every SUBSCRIBE [MQTT-3.8.4-3].
        p.subscriptions.forEach(({ topic: filter }, i) => {
            for (const m of this.broker.retained.values())
                if (filterMatches(filter, m.topic))
                    this.session!.deliver({
                        ...m,
                        qos: Math.min(granted[i], m.qos) as 0 | 1,
                    })
        })
    }

    private unsubscribe(p: PacketOf<"unsubscribe">) {
        if (!this.checkId(p)) return
        for (const filter of p.unsubscriptions)
            this.session!.subscriptions.delete(filter)
        this.answer(p.messageId!)
        this.send({
            cmd: "unsuback",
            messageId: p.messageId,
            granted: p.unsubscriptions.map(() => 0),
        })
    }

    /** Identifiers are not 0 and not in use [MQTT-2.3.1-1, -2]. */
    private checkId(p: Packet): boolean {
        const id = p.messageId
        if (!id) {
            this.breach("MQTT-2.3.1-1", `${p.cmd} with packet identifier 0`)
            return false
        }
        // The answer to the last use cannot have been there and back yet.
        const sinceMs =
            this.broker.world.nowMs - (this.answeredMs.get(id) ?? -Infinity)
        if (sinceMs < 2 * this.broker.world.net.latencyMs)
            this.note("MQTT-2.3.1-2", `${p.cmd}: identifier ${id} is in use`)
        return true
    }

    private answer(id: number) {
        this.answeredMs.set(id, this.broker.world.nowMs)
    }
}
