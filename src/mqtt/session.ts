// One MQTT 3.1.1 session over one connection after another: what is subscribed, which packet
// identifiers are in use, when to ping and when to give the peer up. Pure: bytes and time in,
// packets out through a port, and `dueMs` says when it wants its next tick.
//
// The peer is judged by silence: any packet from it counts as a sign of life, ours count only for
// "is there anything to keep alive". So a device that publishes all day into a half-open
// connection finds out as soon as one that is idle.
import { Why, type Reason } from "../core/reason"
import type { Codec } from "./codec"
import {
    begin,
    filterPacket,
    publishPacket,
    pubackPacket,
    type ConnectOptions,
} from "./encode"
import { endStream, nextPacket, resetFramer } from "./framing"
import type { Connack, Packet, Publish, Suback } from "./packets"
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

/** How far a subscription is with the broker; one that is dropped stays until UNSUBSCRIBE has its answer. */
export type SubscriptionState =
    "new" | "asked" | "live" | "refused" | "unanswered" | "dropped"

/** One filter the application wants; made again at every connection until it is dropped. */
export interface Subscription {
    /** Not called `filter`: the device's library would come with its `Array.filter` for the name alone. */
    topicFilter: string
    qos: 0 | 1
    state: SubscriptionState
    /** It has wildcards; set by `Session.subscribe`. */
    isWild?: boolean
    /** How it was settled first; whoever asked for it may look later than the next connection. */
    settled?: SubscriptionState
    /** What the broker says of a refusal, in words; only MQTT 5 says anything. */
    why?: string
    /** One; an element of an array stays the same closure, and can be compared, as a field can't. */
    handlers: ((message: Publish) => void | Promise<void>)[]
    /** Of the SUBSCRIBE or UNSUBSCRIBE without its answer; 0 when there is none. */
    packetId: number
    /** When its answer is waited for no longer. */
    dueMs: number
}

/**
 * The session's effects and news. None may call back into the session, but for `close()` in answer
 * to a `connack` that refuses, a `violation` or `silent`.
 */
export interface SessionPort {
    /** Writes one packet; 0, or a negative code when the socket did not take it. */
    send(packet: Buffer): number
    /** CONNACK came. */
    connack(code: number, sessionPresent: boolean): void
    /** A message for one subscription, while `Session.calls` is not empty. */
    deliver(subscription: Subscription, message: Publish): void
    /**
     * Something will not be: a message "in" that is larger than maxPacketBytes, one "out" (birth or farewell) that the broker
     * would not take, or a "subscription" that it refuses, which has no bytes. `count` says how many messages that is.
     */
    dropped(
        what: string,
        topic: string,
        packetBytes: number | undefined,
        reason: string,
        count: number,
    ): void
    /** The broker ends the connection and says why (MQTT 5). */
    dismissed(code: number): void
    /** Something that no correct peer does; the connection must go. */
    violation(reason: Reason): void
    /** Nothing came from the peer for keep alive + ping. */
    silent(): void
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

/** SUBSCRIBEs on their way at a time: a reconnect with many filters is no burst. */
const SUBSCRIBE_WINDOW = 4

/** After a refusal, until what the application still wants is asked for again: access rules may still be loading. */
const ASK_AGAIN_MS = 60000

/** Packet identifiers are 1..65535 [MQTT-2.3.1-1]. */
const MAX_PACKET_ID = 65535

/** First bytes of packets: types, and the flags they must have. */
const SUBSCRIBE = 0x82
const UNSUBSCRIBE = 0xa2
const PINGREQ = 0xc0
const DISCONNECT = 0xe0

/** @devsWhenUsed */
export class Session {
    /** What the application wants, and what is being unsubscribed. */
    readonly subscriptions: Subscription[] = []
    /** True between CONNACK 0 and the end of the connection. */
    up = false
    /** Something other than a message has come, or the answer to a PINGREQ: `dueMs` may be earlier than it was. */
    stirred = false
    readonly codec: Codec
    lastPacketId = 0
    // From here on set when a connection begins.
    /** That of the options, where each packet finds it sooner. */
    reliable: Reliable | undefined
    /** SUBSCRIBEs and UNSUBSCRIBEs without their answer. */
    asked!: number
    lastInMs!: number
    lastOutMs!: number
    /** When the PINGREQ left that has had no answer; -1 when there is none. */
    pingedMs!: number
    /** When what was refused is asked for again; -1 when there is nothing. */
    askAgainMs!: number
    pingAfterMs!: number

    /** @param calls what handlers are to be called with, subscription and message by turns; the owner's to empty */
    constructor(
        readonly options: SessionOptions,
        readonly port: SessionPort,
        readonly calls: any[],
    ) {
        this.codec = options.codec
        endStream(this.codec.parser)
    }

    /** A socket is open: says CONNECT. Returns the socket's code. */
    open(nowMs: number): number {
        this.close()
        const { connect, reliable } = this.options
        this.reliable = reliable
        if (reliable) reliable.opening(connect)
        this.lastOutMs = nowMs
        const packet = this.codec.connect(connect)
        resetFramer(this.codec.parser)
        return this.port.send(packet)
    }

    /** The connection is gone. What was asked of the broker will be asked again. */
    close() {
        const subscriptions = this.subscriptions
        const reliable = this.options.reliable
        this.up = false
        endStream(this.codec.parser)
        this.pingedMs = -1
        this.askAgainMs = -1
        this.asked = 0
        for (let i = 0; i < subscriptions.length;) {
            const s = subscriptions[i]
            s.packetId = 0
            if (s.state === "dropped") {
                subscriptions.insert(i, -1)
                if (reliable) reliable.left(s)
                continue
            }
            s.state = "new"
            ++i
        }
    }

    /** Says goodbye: the farewell, then DISCONNECT. */
    leave(nowMs: number) {
        if (!this.up) return
        announce(this, this.options.farewell, nowMs)
        sendPacket(this, begin(DISCONNECT, 0), nowMs)
        this.up = false
        endStream(this.codec.parser)
    }

    /** When `tick` is wanted, or -1 for never. */
    dueMs(): number {
        if (!this.up) return -1
        let dueMs = this.askAgainMs
        if (this.pingAfterMs > 0) {
            const pingMs = pingDueMs(this)
            if (dueMs < 0 || pingMs < dueMs) dueMs = pingMs
        }
        if (this.asked > 0)
            for (const s of this.subscriptions)
                if (s.packetId && (dueMs < 0 || s.dueMs < dueMs))
                    dueMs = s.dueMs
        return dueMs
    }

    /** Does what is due. Give it all input first: a PINGRESP in the queue is a sign of life. */
    tick(nowMs: number) {
        if (!this.up) return
        if (this.asked > 0 || this.askAgainMs >= 0) expire(this, nowMs)
        if (this.pingAfterMs === 0 || nowMs < pingDueMs(this)) return
        if (this.pingedMs >= 0) return this.port.silent()
        this.pingedMs = nowMs
        sendPacket(this, begin(PINGREQ, 0), nowMs)
    }

    /** Adds a subscription and asks for it as soon as that is possible; its `state` tells how far that is. */
    subscribe(subscription: Subscription, nowMs: number) {
        const filter = subscription.topicFilter
        // Looked for once, not at each message.
        subscription.isWild =
            filter.indexOf("#") >= 0 || filter.indexOf("+") >= 0
        this.subscriptions.push(subscription)
        askMore(this, nowMs)
    }

    /** Drops a subscription; nothing is delivered to it any more. Its `packetId` is 0 once the broker has answered or need not. */
    unsubscribe(subscription: Subscription, nowMs: number) {
        if (subscription.state === "dropped") return
        if (subscription.packetId) this.asked--
        subscription.packetId = 0
        settle(subscription, "dropped")
        const reliable = this.options.reliable
        if (!this.up && reliable) reliable.left(subscription)
        this.retract(subscription, nowMs)
    }

    /** Tells the broker that nobody wants a filter any more. */
    retract(subscription: Subscription, nowMs: number) {
        const subscriptions = this.subscriptions
        // The same filter may still be wanted by another handler. If not, even one that was never
        // asked for is taken back: the broker may hold it for a handler dropped before.
        if (!this.up || wants(this, subscription.topicFilter))
            return this.forget(subscription)
        if (subscriptions.indexOf(subscription) < 0)
            subscriptions.push(subscription)
        ask(this, UNSUBSCRIBE, subscription, nowMs)
    }

    /** Takes a subscription out without a word to the broker. */
    forget(subscription: Subscription) {
        const at = this.subscriptions.indexOf(subscription)
        if (at >= 0) this.subscriptions.insert(at, -1)
    }

    /** An identifier that nothing on its way has, 1..65535; the numbers come round. */
    freePacketId(): number {
        const reliable = this.options.reliable
        let id = this.lastPacketId
        while (
            id === this.lastPacketId ||
            (this.asked > 0 && awaiting(this, id) !== undefined) ||
            (reliable && reliable.holds(id))
        )
            id = id < MAX_PACKET_ID ? id + 1 : 1
        this.lastPacketId = id
        return id
    }
}

// What every message needs is a function with the session as its first argument: to find a method the VM compares
// its name with that of every field.

/**
 * Takes what has come from the socket, if anything new has, and handles the next packet in it, if there is a whole one; true
 * when there may be more. Bytes that come without a connection are dropped.
 */
export function hear(session: Session, nowMs: number, chunk?: Buffer): boolean {
    const codec = session.codec
    const reliable = session.reliable
    const parser = codec.parser
    if (chunk) {
        session.lastInMs = nowMs
        if (session.pingedMs >= 0) {
            session.pingedMs = -1
            // The next PINGREQ may be due before this one's time is up.
            session.stirred = true
        }
        // As pushChunk, which would be one call more. The last chunk is used up: until then this answers true.
        parser.chunk = chunk
        parser.at = 0
    }
    const packet = nextPacket(parser)
    if (packet === undefined) return false
    if (codec.heard) {
        const answer = codec.heard(packet, nowMs)
        if (answer !== undefined) session.port.send(answer)
    }
    if (reliable)
        if (reliable.takes(packet, session, nowMs))
            return parser.chunk !== undefined
    // Here as in all that each message passes: `if`s instead of `&&`, for which the VM takes fewer steps.
    if (packet.type === "publish")
        if (session.up) {
            const topic = packet.topic
            if (packet.qos)
                acknowledge(session, packet.packetId as number, nowMs)
            for (const s of session.subscriptions) {
                if (s.topicFilter !== topic) {
                    if (!s.isWild) continue
                    if (!matches(s.topicFilter, topic)) continue
                }
                if (s.state === "refused") continue
                if (s.state === "dropped") continue
                // Mostly nothing waits: no call for that.
                if (session.calls.length === 0) session.calls.push(s, packet)
                else session.port.deliver(s, packet)
            }
            return parser.chunk !== undefined
        }
    handle(session, packet, nowMs)
    return parser.chunk !== undefined
}

/** Sends one packet of encode.ts, while the session is up; `properties` of a PUBLISH as for `Codec.wire`. */
export function sendPacket(
    session: Session,
    packet: Buffer,
    nowMs: number,
    properties?: Buffer,
): number {
    const codec = session.codec
    session.lastOutMs = nowMs
    return session.port.send(
        codec.wire ? codec.wire(packet, properties) : packet,
    )
}

/** When to ping or, after a PINGREQ, to give the peer up. */
function pingDueMs(session: Session): number {
    const pingedMs = session.pingedMs
    const lastInMs = session.lastInMs
    const lastOutMs = session.lastOutMs
    if (pingedMs >= 0) return pingedMs + session.options.pingMs
    return (lastInMs < lastOutMs ? lastInMs : lastOutMs) + session.pingAfterMs
}

function wants(session: Session, filter: string): boolean {
    for (const s of session.subscriptions)
        if (s.topicFilter === filter && s.state !== "dropped") return true
    return false
}

/** All packets but a message when it may come. */
function handle(session: Session, packet: Packet, nowMs: number) {
    session.stirred = true
    if (packet.type === "malformed")
        return session.port.violation(packet.reason)
    if (packet.type === "connack") return connack(session, packet, nowMs)
    if (!session.up) return session.port.violation(Why.notConnack)
    switch (packet.type) {
        case "oversize":
            if (packet.qos) acknowledge(session, packet.packetId, nowMs)
            return session.port.dropped(
                "in",
                packet.topic,
                packet.packetBytes,
                "larger than packet limit",
                1,
            )
        case "suback":
            return suback(session, packet, nowMs)
        case "unsuback": {
            const s = answered(session, packet.packetId, true)
            if (s === undefined) return
            session.forget(s)
            return askMore(session, nowMs)
        }
        case "disconnect":
            return session.port.dismissed(packet.code)
    }
}

function acknowledge(session: Session, packetId: number, nowMs: number) {
    sendPacket(session, pubackPacket(packetId), nowMs)
}

function connack(session: Session, connack: Connack, nowMs: number) {
    const port = session.port
    const code = connack.code
    const keepAliveSeconds = connack.keepAliveSeconds
    if (session.up) return port.violation(Why.secondConnack)
    if (code !== 0) return port.connack(code, false)
    session.up = true
    let seconds = session.options.connect.keepAliveSeconds
    // [MQTT-3.1.2-21] of MQTT 5: the broker's counts. That bounds how seldom we ping; how soon a dead peer is noticed
    // stays ours, so its own never makes that later, nor (0) never.
    if (keepAliveSeconds && (seconds === 0 || keepAliveSeconds < seconds))
        seconds = keepAliveSeconds
    // A little early, so that the wire's delay does not make it late.
    session.pingAfterMs = seconds * 875
    port.connack(0, connack.sessionPresent)
    announce(session, session.options.birth, nowMs)
    askMore(session, nowMs)
}

function announce(
    session: Session,
    what: Announcement | undefined,
    nowMs: number,
) {
    if (what === undefined) return
    const topic = what.topic
    const payload = what.payload
    const retain = what.retain
    const codec = session.codec
    const packet = publishPacket(topic, payload, 0, retain, 0, false)
    const fault = codec.refuses && codec.refuses(packet)
    if (fault) session.port.dropped("out", topic, packet.length, fault, 1)
    else sendPacket(session, packet, nowMs)
}

/** Asks for what has not been asked for on this connection, a few at a time. */
function askMore(session: Session, nowMs: number) {
    if (!session.up) return
    for (const s of session.subscriptions) {
        if (session.asked >= SUBSCRIBE_WINDOW) return
        if (s.state !== "new") continue
        s.state = "asked"
        ask(session, SUBSCRIBE, s, nowMs)
    }
    const reliable = session.options.reliable
    if (reliable)
        while (session.asked < SUBSCRIBE_WINDOW)
            if (!reliable.retracts(session, nowMs)) return
}

function ask(session: Session, first: number, s: Subscription, nowMs: number) {
    session.asked++
    s.packetId = session.freePacketId()
    s.dueMs = nowMs + session.options.pingMs
    sendPacket(
        session,
        filterPacket(first, s.packetId, s.topicFilter, s.qos),
        nowMs,
    )
}

/** What waits for the answer with this identifier. */
function awaiting(
    session: Session,
    packetId: number,
): Subscription | undefined {
    for (const s of session.subscriptions) if (s.packetId === packetId) return s
    return undefined
}

/** The subscription that an answer is for; undefined for one that came too late. */
function answered(
    session: Session,
    packetId: number,
    leaving: boolean,
): Subscription | undefined {
    const s = awaiting(session, packetId)
    if (s === undefined || (s.state === "dropped") !== leaving) return undefined
    s.packetId = 0
    session.asked--
    return s
}

function suback(
    session: Session,
    { packetId, codes, reason }: Suback,
    nowMs: number,
) {
    const s = answered(session, packetId, false)
    if (s === undefined) return
    if (codes.length !== 1) return session.port.violation(Why.subackCount)
    settle(s, codes[0] >= 0x80 ? "refused" : "live")
    if (s.state === "refused") {
        if (reason !== undefined)
            s.why = session.codec.verdict(codes[0], false).reason as string
        const words = "refused " + byBroker(s.why)
        session.port.dropped("subscription", s.topicFilter, undefined, words, 0)
        session.askAgainMs = nowMs + ASK_AGAIN_MS
    }
    askMore(session, nowMs)
}

/** Gives up waiting for answers that are overdue, and asks again for what was refused; the connection stays. */
function expire(session: Session, nowMs: number) {
    const subscriptions = session.subscriptions
    if (session.asked > 0)
        for (let i = subscriptions.length - 1; i >= 0; --i) {
            const s = subscriptions[i]
            if (!s.packetId || nowMs < s.dueMs) continue
            s.packetId = 0
            session.asked--
            if (s.state === "dropped") subscriptions.insert(i, -1)
            else settle(s, "unanswered")
        }
    if (session.askAgainMs >= 0 && nowMs >= session.askAgainMs) {
        session.askAgainMs = -1
        for (const s of subscriptions)
            if (s.state === "refused") s.state = "new"
    }
    askMore(session, nowMs)
}

function settle(s: Subscription, state: SubscriptionState) {
    s.state = state
    if (s.settled === undefined) s.settled = state
}

/** The broker's refusal, with its words if it has any. */
export function byBroker(why: string | undefined): string {
    return why ? "by the broker: " + why : "by the broker"
}
