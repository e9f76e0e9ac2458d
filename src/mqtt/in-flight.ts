// QoS 1 out: what has been accepted and not yet acknowledged. Pure: it is told of connections,
// acknowledgements and time, and says which packet is to be sent next.
//
// | a message is  | it leaves when                                        | on the way                          |
// |---------------|-------------------------------------------------------|-------------------------------------|
// | waiting       | there is room in the window                           | the outbox's rule may drop it       |
// | in flight     | its PUBACK comes, in whatever order                   | it is never dropped to make room    |
// | to be resent  | after a reconnect, in order, before anything new      | session present: same identifier,   |
// |               |                                                       | DUP; else: as new, without          |
//
// An acknowledgement of what was not sent on this connection changes nothing: the broker can't mean it, and a
// message sent once more is better than one lost.
//
// Messages that the broker closes on. When the peer ends a connection within CLOSED_ON_MS of a message's sending
// and without its PUBACK, the message is suspected. Suspects are sent alone, so that the innocent are found out by
// their PUBACK. From the second time on one is sent only after the session has been quiet for PROOF_MS, so
// that a broker that closes on everything condemns nothing. The third time it is set aside.
import {
    clearDup,
    markDup,
    pubackPacket,
    setPacketId,
    type ConnectOptions,
} from "./encode"
import type { Packet } from "./packets"
import { isRepeat, reconnected, type Repeats } from "./repeats"
import type { Codec } from "./codec"
import {
    sendPacket,
    type Reliable,
    type Session,
    type Subscription,
} from "./session"
import { take, type Entry, type Outbox, type Overflow } from "./outbox"

/** A QoS 1 message on its way. As few fields as can be: four cost two allocations, each more costs a third. */
export interface Flight extends Entry {
    /** 0 while it waits. */
    packetId: number
    /** When it was sent last in this session; -1 for never. */
    sentMs: number
    /** Told once what became of it; see `Settled`. */
    settled?: Settled
    /** Times the broker closed on it, if it ever did. */
    tries?: number
}

/** A message to accept: a packet made by `publishPacket` with QoS 1 and any identifier. */
export function flightOf(
    packet: Buffer,
    sinceMs: number,
    settled?: Settled,
    properties?: Buffer,
): Flight {
    const flight: Flight = { packet, sinceMs, packetId: 0, sentMs: -1 }
    if (settled) flight.settled = settled
    if (properties) flight.properties = properties
    return flight
}

/** Told "acknowledged", or "dropped: why". */
export type Settled = (outcome: string) => void | Promise<void>

/** The peer closed this soon after a message, or for some other reason. */
const CLOSED_ON_MS = 5000

/** A session that has lasted this long is not one in which everything fails. */
const PROOF_MS = 10000

/** Filters dropped without a connection that the broker is told of. */
const MAX_GONE = 64

/** So many times, and a message is set aside. */
export const POISON_TRIES = 3

/**
 * What has been accepted: first what has been sent on this connection, then what is to be resent, then what waits. Its
 * methods are what the session calls; for all else there are functions, which cost no heap.
 * @devsWhenUsed
 */
export abstract class InFlight implements Outbox<Flight>, Reliable {
    readonly list: Flight[] = []
    held = 0
    bytes = 0
    /** How many have been sent on this connection. */
    sent = 0
    /** Since when there is a connection; -1 while there is none. */
    upMs = -1
    // From here on set at need: what is not set costs nothing, unless it is asked for at each message.
    /** Messages in. */
    inbound?: Repeats
    /** Filters dropped without a connection, or without an answer. */
    gone?: Subscription[]
    /** The next CONNECT asks for a new session: there is something in the old one that can't be taken. */
    startClean?: boolean

    /**
     * @param window most in flight at a time, 1..65535
     * @param ackMs how long a PUBACK may take
     */
    constructor(
        readonly maxEntries: number,
        readonly maxBytes: number,
        readonly window: number,
        readonly ackMs: number,
        readonly overflow?: Overflow,
    ) {}

    /**
     * A message has left: the broker has answered it, and from 0x80 on `code` says why it does not want it (MQTT 5); or,
     * with a `fault`, it was not sent, for the broker has said that it would not take it.
     */
    abstract settle(flight: Flight, code: number, fault?: string): void

    /** The session is to be kept: what the broker knows of it is what DUP is for. */
    opening(connect: ConnectOptions) {
        connect.cleanSession = !!this.startClean
    }

    takes(packet: Packet, session: Session, nowMs: number): boolean {
        if (packet.type === "puback" && session.up) {
            const flight = acked(this, packet.packetId)
            if (flight) this.settle(flight, packet.code ? packet.code : 0)
            return true
        }
        if (packet.type === "publish" && packet.qos === 1 && session.up) {
            if (!this.inbound) this.inbound = { ids: [], marks: [], earlier: 0 }
            if (!isRepeat(this.inbound, packet)) return false
            sendPacket(session, pubackPacket(packet.packetId as number), nowMs)
            return true
        }
        if (packet.type === "malformed") this.startClean = true
        if (packet.type === "connack" && packet.code === 0)
            connected(this, packet.sessionPresent, nowMs)
        return false
    }

    holds(packetId: number): boolean {
        return find(this, packetId, this.held) >= 0
    }

    left(subscription: Subscription) {
        if (!this.gone) this.gone = []
        if (this.gone.length < MAX_GONE) this.gone.push(subscription)
    }

    retracts(session: Session, nowMs: number): boolean {
        const gone = this.gone
        if (!gone || !gone.length) return false
        const subscription = gone[0]
        gone.insert(0, -1)
        session.retract(subscription, nowMs)
        return true
    }
}

/** CONNACK 0 came. */
export function connected(q: InFlight, sessionPresent: boolean, nowMs: number) {
    q.upMs = nowMs
    q.sent = 0
    if (q.startClean) q.startClean = false
    if (q.inbound) reconnected(q.inbound, sessionPresent)
    if (sessionPresent) return
    if (q.gone) q.gone = undefined
    // The broker knows nothing of what was sent before.
    for (let i = 0; i < q.held; ++i) {
        q.list[i].sentMs = -1
        clearDup(q.list[i].packet)
    }
}

/**
 * The connection is over.
 * @param byPeer the peer ended it, and not we or the network
 * @returns the message that is set aside for it
 */
export function land(
    q: InFlight,
    byPeer: boolean,
    nowMs: number,
): Flight | undefined {
    const sent = q.sent
    q.upMs = -1
    q.sent = 0
    let poison = -1
    for (let i = 0; i < sent; ++i) {
        const f = q.list[i]
        if (!byPeer || nowMs - f.sentMs > CLOSED_ON_MS) continue
        f.tries = f.tries ? f.tries + 1 : 1
        if (f.tries >= POISON_TRIES) poison = i
    }
    return poison < 0 ? undefined : take(q, poison)
}

/** When there is something to send: 0 for now, a time, or -1 for not before something else happens. */
export function readyMs(q: InFlight, limit: number): number {
    const list = q.list
    const sent = q.sent
    if (q.upMs < 0 || sent === list.length || sent >= q.window || sent >= limit)
        return -1
    // A suspect goes alone: nothing follows it, and nothing is out before it.
    if (sent > 0 && list[0].tries) return -1
    // What waits has not been closed on.
    const tries = sent < q.held && list[sent].tries
    if (!tries) return 0
    if (sent > 0) return -1
    return tries < 2 ? 0 : q.upMs + PROOF_MS
}

/** Sends the message whose turn it is; false when there is none, or the socket did not take it. */
export function send(q: InFlight, session: Session, nowMs: number): boolean {
    const codec = session.codec
    while (true) {
        const dueMs = readyMs(q, codec.receiveMaximum)
        if (dueMs < 0 || nowMs < dueMs) return false
        const sent = q.sent
        const f = q.list[sent]
        const fault = codec.refuses ? faultOf(f, codec, nowMs) : undefined
        if (fault === undefined) {
            if (sent === q.held) {
                // What has waited is in flight from now on, with an identifier of its own.
                f.packetId = session.freePacketId()
                setPacketId(f.packet, f.packetId)
                q.held++
            } else if (f.sentMs >= 0) markDup(f.packet)
            if (sendPacket(session, f.packet, nowMs, f.properties) !== 0)
                return false
            f.sentMs = nowMs
            q.sent++
            return true
        }
        q.settle(take(q, sent), 0, fault)
    }
}

/** Why a message can't go. */
function faultOf(f: Flight, codec: Codec, nowMs: number): string | undefined {
    // What the broker may know goes once more, however late [MQTT-4.4.0-1].
    if (codec.expires && codec.expires(f, nowMs) && f.sentMs < 0)
        return "expired"
    return codec.refuses && codec.refuses(f.packet, f.properties)
}

/** When the PUBACK that is expected first is overdue; -1 when none is. They are sent in order, so it is the first. */
export function ackDueMs(q: InFlight): number {
    return q.sent > 0 ? q.list[0].sentMs + q.ackMs : -1
}

/** PUBACK came: the message it is for, or undefined when none was sent with this identifier. */
export function acked(q: InFlight, packetId: number): Flight | undefined {
    const at = find(q, packetId, q.sent)
    if (at < 0) return undefined
    q.sent--
    return take(q, at)
}

function find(q: InFlight, packetId: number, among: number): number {
    const list = q.list
    for (let i = 0; i < among; ++i) if (list[i].packetId === packetId) return i
    return -1
}
