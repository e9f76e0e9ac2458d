// One MQTT 3.1.1 session over one connection after another: what is subscribed, which packet
// identifiers are in use, when to ping and when to give the peer up. Pure: bytes and time in,
// packets out through a port, and `dueMs` says when it wants its next tick.
//
// The peer is judged by silence: any packet from it counts as a sign of life, ours count only for
// "is there anything to keep alive". So a device that publishes all day into a half-open
// connection finds out as soon as one that is idle.
import type { Codec } from "./codec"
import {
    disconnectPacket,
    pingreqPacket,
    publishPacket,
    pubackPacket,
    subscribePacket,
    unsubscribePacket,
    type ConnectOptions,
} from "./encode"
import type { Connack, Packet, Publish, Suback } from "./parser"
import { matches } from "./topic"

/** What the session says at each connection, and how patient it is. */
export interface SessionOptions {
    connect: ConnectOptions
    /** Published after every CONNACK, before anything else. */
    birth?: Announcement
    /** Published before DISCONNECT on a clean stop: the broker sends no will then. */
    farewell?: Announcement
    /** How long a PINGREQ, and a SUBSCRIBE, may stay unanswered. */
    pingMs: number
    /** The version of MQTT, with the limit on packets taken whole; nobody else uses it. */
    codec: Codec
    /** QoS 1 out, where the program uses it. */
    reliable?: Reliable
}

/** A message the session publishes by itself, QoS 0. */
export interface Announcement {
    topic: string
    payload: string
    retain: boolean
}

/** How far a subscription is with the broker. */
export type SubscriptionState =
    "new" | "asked" | "live" | "refused" | "unanswered" | "dropped"

/** One filter the application wants; made again at every connection until it is dropped. */
export interface Subscription {
    filter: string
    qos: 0 | 1
    state: SubscriptionState
    /** Why it is refused, in words. */
    why?: string
    handler: (message: Publish) => void | Promise<void>
}

/**
 * The session's effects and news. None may call back into the session, but for `close()` in answer
 * to a `connack` that refuses, a `violation` or `silent`, and `forget()` in answer to `settled`.
 */
export interface SessionPort {
    /** Writes one packet; 0, or a negative code when the socket did not take it. */
    send(packet: Buffer): number
    /** CONNACK came. */
    connack(code: number, sessionPresent: boolean): void
    /** A message for one subscription. */
    deliver(subscription: Subscription, message: Publish): void
    /** A message larger than maxPacketBytes was skipped. */
    skipped(topic: string, packetBytes: number): void
    /** The birth or the farewell could not go: the broker would not take it. */
    unsent(topic: string, packetBytes: number, fault: string): void
    /** The broker ends the connection and says why (MQTT 5). */
    dismissed(code: number): void
    /** Something that no correct peer does; the connection must go. */
    violation(clause: string, reason: string): void
    /** Nothing came from the peer for keep alive + ping. */
    silent(): void
    /** A subscription's state is settled, or it was dropped before that. One that is refused and not forgotten now is asked for again. */
    settled(subscription: Subscription): void
    /** The broker has answered UNSUBSCRIBE, or did not in time. */
    unsubscribed(subscription: Subscription): void
}

/** QoS 1 out, as far as a session has to do with it: in-flight.ts. Only a program that uses it carries it. */
export interface Reliable {
    /** CONNECT is about to be made of this. */
    opening(connect: ConnectOptions): void
    /** Sees each packet before the session; true when that is all there is to do about it. */
    takes(packet: Packet, session: Session, nowMs: number): boolean
    /** Whether a packet identifier is in use. */
    holds(packetId: number): boolean
    /** Nobody wants this any more, and the broker, who may keep the session, could not be told. */
    left(subscription: Subscription): void
    /** Tells of one of those, while there is room; false when none is left. */
    retracts(session: Session, nowMs: number): boolean
}

/** A SUBSCRIBE or UNSUBSCRIBE without its answer. */
interface Pending {
    packetId: number
    leaving: boolean
    subscription: Subscription
    dueMs: number
}

/** SUBSCRIBEs on their way at a time: a reconnect with many filters is no burst. */
const SUBSCRIBE_WINDOW = 4

/** After a refusal, until what the application still wants is asked for again: access rules may still be loading. */
const ASK_AGAIN_MS = 60000

/** Packet identifiers are 1..65535 [MQTT-2.3.1-1]. */
const MAX_PACKET_ID = 65535

/** @devsWhenUsed */
export class Session {
    readonly subscriptions: Subscription[] = []
    /** True between CONNACK 0 and the end of the connection. */
    up = false
    readonly codec: Codec
    private pending: Pending[] = []
    private lastInMs = 0
    private lastOutMs = 0
    /** When the PINGREQ left that has had no answer; -1 when there is none. */
    private pingedMs = -1
    /** When what was refused is asked for again; -1 when there is nothing. */
    private askAgainMs = -1
    private lastPacketId = 0
    private pingAfterMs = 0

    constructor(
        private readonly options: SessionOptions,
        private readonly port: SessionPort,
    ) {
        this.codec = options.codec
    }

    /** A socket is open: says CONNECT. Returns the socket's code. */
    open(nowMs: number): number {
        this.close()
        const { connect, reliable } = this.options
        if (reliable) reliable.opening(connect)
        this.lastOutMs = nowMs
        return this.port.send(this.codec.connect(connect))
    }

    /** The connection is gone. What was asked of the broker will be asked again. */
    close() {
        this.up = false
        this.codec.parser.reset()
        this.pingedMs = -1
        this.askAgainMs = -1
        const { pending } = this
        const { reliable } = this.options
        this.pending = []
        for (const s of this.subscriptions) s.state = "new"
        for (const p of pending)
            if (p.leaving) {
                if (reliable) reliable.left(p.subscription)
                this.port.unsubscribed(p.subscription)
            }
    }

    /** Says goodbye: the farewell, then DISCONNECT. */
    leave(nowMs: number) {
        if (!this.up) return
        this.announce(this.options.farewell, nowMs)
        this.send(disconnectPacket(), nowMs)
        this.up = false
    }

    /** Takes bytes from the socket; then call `next` until it returns false. */
    push(chunk: Buffer, nowMs: number) {
        this.lastInMs = nowMs
        this.pingedMs = -1
        this.codec.parser.push(chunk)
    }

    /** Handles one packet of what was pushed; false when there is none left. */
    next(nowMs: number): boolean {
        const packet = this.codec.parser.next()
        if (packet === undefined) return false
        this.handle(packet, nowMs)
        return true
    }

    /** When `tick` is wanted, or -1 for never. */
    dueMs(): number {
        if (!this.up) return -1
        let dueMs = this.askAgainMs
        if (this.pingAfterMs > 0) {
            const pingMs =
                this.pingedMs >= 0
                    ? this.pingedMs + this.options.pingMs
                    : this.pingDueMs()
            if (dueMs < 0 || pingMs < dueMs) dueMs = pingMs
        }
        for (const p of this.pending)
            if (dueMs < 0 || p.dueMs < dueMs) dueMs = p.dueMs
        return dueMs
    }

    /** Does what is due. Give it all input first: a PINGRESP in the queue is a sign of life. */
    tick(nowMs: number) {
        if (!this.up) return
        this.expire(nowMs)
        if (this.pingAfterMs === 0) return
        if (this.pingedMs >= 0) {
            if (nowMs >= this.pingedMs + this.options.pingMs) this.port.silent()
        } else if (nowMs >= this.pingDueMs()) {
            this.pingedMs = nowMs
            this.send(pingreqPacket(), nowMs)
        }
    }

    /** Sends one packet of encode.ts, while the session is up; `properties` of a PUBLISH as for `Codec.wire`. */
    send(packet: Buffer, nowMs: number, properties?: Buffer): number {
        const codec = this.codec
        this.lastOutMs = nowMs
        return this.port.send(
            codec.wire ? codec.wire(packet, properties) : packet,
        )
    }

    /** Adds a subscription and asks for it as soon as that is possible. */
    subscribe(subscription: Subscription, nowMs: number) {
        this.subscriptions.push(subscription)
        this.askMore(nowMs)
    }

    /** Drops a subscription; nothing is delivered to it any more. */
    unsubscribe(subscription: Subscription, nowMs: number) {
        if (!this.forget(subscription))
            return this.port.unsubscribed(subscription)
        const { state } = subscription
        subscription.state = "dropped"
        // Whoever waits for it to be granted must not wait for ever.
        if (state === "new" || state === "asked")
            this.port.settled(subscription)
        const { reliable } = this.options
        if (!this.up && reliable) reliable.left(subscription)
        this.retract(subscription, nowMs)
    }

    /** Tells the broker that nobody wants a filter any more. */
    retract(subscription: Subscription, nowMs: number) {
        // The same filter may still be wanted by another handler. If not, even one that was never
        // asked for is taken back: the broker may hold it for a handler dropped before.
        if (!this.up || this.wants(subscription.filter))
            return this.port.unsubscribed(subscription)
        const packetId = this.expect(subscription, true, nowMs)
        this.send(unsubscribePacket(packetId, [subscription.filter]), nowMs)
    }

    /** Takes a subscription out without a word to the broker; false when it is not there. */
    forget(subscription: Subscription): boolean {
        const at = this.subscriptions.indexOf(subscription)
        if (at >= 0) removeAt(this.subscriptions, at)
        return at >= 0
    }

    private wants(filter: string): boolean {
        for (const s of this.subscriptions) if (s.filter === filter) return true
        return false
    }

    private handle(packet: Packet, nowMs: number) {
        const { codec } = this
        const { reliable } = this.options
        if (codec.heard) {
            const answer = codec.heard(packet, nowMs)
            if (answer !== undefined) this.port.send(answer)
        }
        if (reliable && reliable.takes(packet, this, nowMs)) return
        if (packet.type === "malformed")
            return this.port.violation(packet.clause, packet.reason)
        if (packet.type === "connack") {
            if (this.up)
                return this.port.violation("MQTT-3.2.0-2", "second CONNACK")
            if (packet.code === 0) this.accepted(packet, nowMs)
            else this.port.connack(packet.code, false)
            return
        }
        if (!this.up)
            return this.port.violation("MQTT-3.2.0-1", "first was not CONNACK")
        switch (packet.type) {
            case "publish":
                this.acknowledge(packet.qos, packet.packetId, nowMs)
                this.dispatch(packet)
                return
            case "oversize":
                this.acknowledge(packet.qos, packet.packetId, nowMs)
                this.port.skipped(packet.topic, packet.packetBytes)
                return
            case "suback":
                return this.suback(packet, nowMs)
            case "unsuback":
                return this.unsuback(packet.packetId, nowMs)
            case "disconnect":
                return this.port.dismissed(packet.code)
        }
    }

    private accepted(connack: Connack, nowMs: number) {
        this.up = true
        let seconds = this.options.connect.keepAliveSeconds
        // [MQTT-3.1.2-21] of MQTT 5: the broker's counts. That bounds how seldom we ping; how soon a dead peer is noticed
        // stays ours, so its own never makes that later, nor (0) never.
        const theirs = connack.keepAliveSeconds
        if (theirs && (seconds === 0 || theirs < seconds)) seconds = theirs
        // A little early, so that the wire's delay does not make it late.
        this.pingAfterMs = seconds * 875
        this.port.connack(0, connack.sessionPresent)
        this.announce(this.options.birth, nowMs)
        this.askMore(nowMs)
    }

    private announce(what: Announcement | undefined, nowMs: number) {
        if (what === undefined) return
        const { topic, payload, retain } = what
        const { codec } = this
        const packet = publishPacket(topic, payload, 0, retain, 0, false)
        const fault = codec.refuses ? codec.refuses(packet) : undefined
        if (fault === undefined) this.send(packet, nowMs)
        else this.port.unsent(topic, packet.length, fault)
    }

    private acknowledge(qos: number, packetId: number, nowMs: number) {
        if (qos === 1) this.send(pubackPacket(packetId), nowMs)
    }

    private dispatch(message: Publish) {
        for (const s of this.subscriptions)
            if (s.state !== "refused" && matches(s.filter, message.topic))
                this.port.deliver(s, message)
    }

    /** Asks for what has not been asked for on this connection, a few at a time. */
    private askMore(nowMs: number) {
        if (!this.up) return
        for (const s of this.subscriptions) {
            if (this.pending.length >= SUBSCRIBE_WINDOW) return
            if (s.state !== "new") continue
            s.state = "asked"
            const packetId = this.expect(s, false, nowMs)
            const { filter, qos } = s
            this.send(subscribePacket(packetId, [{ filter, qos }]), nowMs)
        }
        const { reliable } = this.options
        if (reliable)
            while (this.pending.length < SUBSCRIBE_WINDOW)
                if (!reliable.retracts(this, nowMs)) return
    }

    /** Notes that an answer is expected; returns the packet identifier it will carry. */
    private expect(
        subscription: Subscription,
        leaving: boolean,
        nowMs: number,
    ): number {
        const packetId = this.freePacketId()
        const dueMs = nowMs + this.options.pingMs
        this.pending.push({ packetId, leaving, subscription, dueMs })
        return packetId
    }

    /** An identifier that nothing on its way has, 1..65535; the numbers come round. */
    freePacketId(): number {
        const { reliable } = this.options
        let id = this.lastPacketId
        while (
            id === this.lastPacketId ||
            this.pendingAt(id) >= 0 ||
            (reliable && reliable.holds(id))
        )
            id = id < MAX_PACKET_ID ? id + 1 : 1
        this.lastPacketId = id
        return this.lastPacketId
    }

    private pendingAt(packetId: number): number {
        for (let i = 0; i < this.pending.length; ++i)
            if (this.pending[i].packetId === packetId) return i
        return -1
    }

    /** Takes out the request with this identifier; undefined for an answer that came too late. */
    private answered(packetId: number, leaving: boolean) {
        const at = this.pendingAt(packetId)
        if (at < 0 || this.pending[at].leaving !== leaving) return undefined
        const subscription = this.pending[at].subscription
        removeAt(this.pending, at)
        return subscription
    }

    private suback({ packetId, codes, reason }: Suback, nowMs: number) {
        const s = this.answered(packetId, false)
        if (s === undefined) return
        if (codes.length !== 1)
            return this.port.violation(
                "MQTT-3.8.4-5",
                "SUBACK for another number of filters",
            )
        s.why = "by the broker"
        // Only MQTT 5 says more.
        if (codes[0] >= 0x80 && reason !== undefined)
            s.why += ": " + this.codec.verdict(codes[0], false).reason
        this.settle(s, codes[0] >= 0x80 ? "refused" : "live")
        // Still there: nobody was told, who would ask again himself.
        if (s.state === "refused" && this.subscriptions.indexOf(s) >= 0)
            this.askAgainMs = nowMs + ASK_AGAIN_MS
        this.askMore(nowMs)
    }

    private unsuback(packetId: number, nowMs: number) {
        const s = this.answered(packetId, true)
        if (s === undefined) return
        this.port.unsubscribed(s)
        this.askMore(nowMs)
    }

    private settle(s: Subscription, state: SubscriptionState) {
        if (s.state === "dropped") return
        s.state = state
        this.port.settled(s)
    }

    /** Gives up waiting for answers that are overdue, and asks again for what was refused; the connection stays. */
    private expire(nowMs: number) {
        for (let i = 0; i < this.pending.length;) {
            const p = this.pending[i]
            if (nowMs < p.dueMs) {
                ++i
                continue
            }
            removeAt(this.pending, i)
            if (p.leaving) this.port.unsubscribed(p.subscription)
            else this.settle(p.subscription, "unanswered")
        }
        if (this.askAgainMs >= 0 && nowMs >= this.askAgainMs) {
            this.askAgainMs = -1
            for (const s of this.subscriptions)
                if (s.state === "refused") s.state = "new"
        }
        this.askMore(nowMs)
    }

    private pingDueMs(): number {
        const last =
            this.lastInMs < this.lastOutMs ? this.lastInMs : this.lastOutMs
        return last + this.pingAfterMs
    }
}

/** Removes one element in place; DeviceScript has no splice, Node no insert. */
function removeAt<T>(list: T[], at: number) {
    for (let i = at + 1; i < list.length; ++i) list[i - 1] = list[i]
    list.pop()
}
