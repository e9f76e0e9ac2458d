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
import { Repeats } from "./repeats"
import type { Codec } from "./codec"
import {
    sendPacket,
    type Reliable,
    type Session,
    type Subscription,
} from "./session"
import type { Outbox, Entry } from "./outbox"

/** A QoS 1 message on its way. */
export interface Flight extends Entry {
    /** Told once what became of it; see `Settled`. */
    settled?: Settled
    /** 0 while it waits. */
    packetId: number
    /** When it was sent last; -1 for never. */
    sentMs: number
    /** Times the broker closed on it. */
    tries: number
}

/** A message to accept: a packet made by `publishPacket` with QoS 1 and any identifier. */
export function flightOf(
    packet: Buffer,
    sinceMs: number,
    settled?: Settled,
    properties?: Buffer,
): Flight {
    const sentMs = -1
    return {
        packet,
        properties,
        sinceMs,
        settled,
        packetId: 0,
        sentMs,
        tries: 0,
    }
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

/** @devsWhenUsed */
export class InFlight implements Reliable {
    /** In flight, in the order they were first sent. */
    readonly flying: Flight[] = []
    /** How many of `flying` have been sent on this connection. */
    private sent = 0
    private up = false
    private upMs = 0
    /** The broker knows what was sent before: it goes with DUP. */
    private known = false
    /** Messages in. */
    readonly inbound = new Repeats()
    /** Filters dropped without a connection, or without an answer. */
    private gone: Subscription[] = []
    /** The next CONNECT asks for a new session: there is something in the old one that can't be taken. */
    private startClean = false

    /**
     * @param outbox where messages wait for room in the window
     * @param window most in flight at a time, 1..65535
     * @param ackMs how long a PUBACK may take
     */
    constructor(
        readonly outbox: Outbox<Flight>,
        private readonly window: number,
        private readonly ackMs: number,
    ) {}

    /**
     * The broker has answered a message; from 0x80 on, `code` says why it does not want it (MQTT 5). Whoever wants to
     * know of it extends this class.
     */
    acknowledged(_flight: Flight, _code: number) {}

    /** A message has left unsent: the broker said that it would not take it. */
    refused(_flight: Flight, _fault: string) {}

    // ---- what the session says ----

    /** The session is to be kept: what the broker knows of it is what DUP is for. */
    opening(connect: ConnectOptions) {
        connect.cleanSession = this.startClean
    }

    takes(packet: Packet, session: Session, nowMs: number): boolean {
        if (packet.type === "malformed") this.startClean = true
        if (packet.type === "connack" && packet.code === 0)
            this.connected(packet.sessionPresent, nowMs)
        if (!session.up) return false
        if (packet.type === "puback") {
            const flight = this.acked(packet.packetId)
            if (flight) this.acknowledged(flight, packet.code ? packet.code : 0)
            return true
        }
        if (packet.type !== "publish" || packet.qos !== 1) return false
        if (!this.inbound.repeats(packet)) return false
        sendPacket(session, pubackPacket(packet.packetId as number), nowMs)
        return true
    }

    /** Sends the message whose turn it is; false when there is none, or the socket did not take it. */
    send(session: Session, nowMs: number): boolean {
        const { codec } = session
        let f = this.next(nowMs, codec.receiveMaximum)
        while (f !== undefined) {
            const fault = this.faultOf(f, codec, nowMs)
            if (fault === undefined) break
            this.refused(this.take(this.sent), fault)
            f = this.next(nowMs, codec.receiveMaximum)
        }
        if (f === undefined) return false
        if (f.packetId === 0) this.name(f, session.freePacketId())
        if (sendPacket(session, f.packet, nowMs, f.properties) !== 0)
            return false
        this.written(nowMs)
        return true
    }

    /** Why a message can't go. */
    private faultOf(
        f: Flight,
        codec: Codec,
        nowMs: number,
    ): string | undefined {
        // What the broker may know goes once more, however late [MQTT-4.4.0-1].
        const isOwed = this.known && f.sentMs >= 0
        if (codec.expires && codec.expires(f, nowMs) && !isOwed)
            return "expired"
        return codec.refuses ? codec.refuses(f.packet, f.properties) : undefined
    }

    left(subscription: Subscription) {
        if (this.gone.length < MAX_GONE) this.gone.push(subscription)
    }

    retracts(session: Session, nowMs: number): boolean {
        const { gone } = this
        if (!gone.length) return false
        session.retract(gone.shift() as Subscription, nowMs)
        return true
    }

    // ---- what is in flight ----

    /** Accepted and not acknowledged. */
    entries(): number {
        return this.flying.length + this.outbox.entries()
    }

    /** Whether an identifier is in use. */
    holds(packetId: number): boolean {
        return this.find(packetId, this.flying.length) >= 0
    }

    /** CONNACK 0 came. */
    connected(sessionPresent: boolean, nowMs: number) {
        this.up = true
        this.upMs = nowMs
        this.known = sessionPresent
        this.startClean = false
        this.sent = 0
        this.inbound.connected(sessionPresent)
        if (!sessionPresent) this.gone = []
    }

    /**
     * The connection is over.
     * @param byPeer the peer ended it, and not we or the network
     * @returns the message that is set aside for it
     */
    land(byPeer: boolean, nowMs: number): Flight | undefined {
        const { flying, sent } = this
        this.up = false
        this.sent = 0
        let poison = -1
        for (let i = 0; i < sent; ++i) {
            const f = flying[i]
            if (!byPeer || nowMs - f.sentMs > CLOSED_ON_MS) continue
            f.tries++
            if (f.tries >= POISON_TRIES) poison = i
        }
        return poison < 0 ? undefined : this.take(poison)
    }

    /**
     * The next message to send now: what is to be resent, then what waits. One with the identifier 0 gets one by
     * `name`; then its packet is ready, and `written` is called once the socket has it.
     * @param limit what the broker takes without PUBACK (MQTT 5 Receive Maximum)
     */
    next(nowMs: number, limit: number): Flight | undefined {
        const dueMs = this.readyMs(limit)
        if (dueMs < 0 || nowMs < dueMs) return undefined
        const { flying, sent } = this
        if (sent < flying.length) {
            const f = flying[sent]
            if (this.known && f.sentMs >= 0) markDup(f.packet)
            else clearDup(f.packet)
            return f
        }
        const f = this.outbox.shift() as Flight
        this.outbox.held++
        this.outbox.heldBytes += f.packet.length
        flying.push(f)
        return f
    }

    /** Gives a message its identifier, 1..65535. */
    name(f: Flight, packetId: number) {
        setPacketId(f.packet, packetId)
        f.packetId = packetId
    }

    /** What `next` returned has been given to the socket. */
    written(nowMs: number) {
        this.flying[this.sent].sentMs = nowMs
        this.sent++
    }

    /** When `next` has something: 0 for now, a time, or -1 for not before something else happens. */
    readyMs(limit: number): number {
        const { flying, sent } = this
        if (!this.up || this.entries() === sent || !this.hasRoom(limit))
            return -1
        // What waits has not been closed on.
        if (sent === flying.length || flying[sent].tries < 2) return 0
        return this.upMs + PROOF_MS
    }

    private hasRoom(limit: number): boolean {
        const { flying, sent, window } = this
        // A suspect goes alone: nothing is out before it, and nothing follows.
        if (sent > 0 && (flying[0].tries > 0 || this.resendsSuspect()))
            return false
        return sent < window && sent < limit
    }

    private resendsSuspect(): boolean {
        const { flying, sent } = this
        return sent < flying.length && flying[sent].tries > 0
    }

    /** When the PUBACK that is expected first is overdue; -1 when none is. */
    ackDueMs(): number {
        let dueMs = -1
        for (let i = 0; i < this.sent; ++i) {
            const atMs = this.flying[i].sentMs + this.ackMs
            if (dueMs < 0 || atMs < dueMs) dueMs = atMs
        }
        return dueMs
    }

    /** PUBACK came: the message it is for, or undefined when none was sent with this identifier. */
    acked(packetId: number): Flight | undefined {
        const at = this.find(packetId, this.sent)
        return at < 0 ? undefined : this.take(at)
    }

    private take(at: number): Flight {
        const { flying } = this
        const f = flying[at]
        for (let i = at + 1; i < flying.length; ++i) flying[i - 1] = flying[i]
        flying.pop()
        if (at < this.sent) this.sent--
        this.outbox.held--
        this.outbox.heldBytes -= f.packet.length
        return f
    }

    private find(packetId: number, among: number): number {
        for (let i = 0; i < among; ++i)
            if (this.flying[i].packetId === packetId) return i
        return -1
    }
}
