// A correct and strict broker of MQTT 3.1.1 and MQTT 5: sessions, subscriptions, retained messages, wills, QoS
// 0 and 1 both ways, keep alive at one and a half times, take-over. All bookkeeping is its own, only
// the bytes are mqtt-packet's. It never tolerates: every breach of the standard by a client is noted in `violations`
// with its clause, and ends the connection as the standard asks.
import { Client } from "./broker-client"
import { Session, type Message } from "./broker-session"
import type { Peer } from "./link"
import type { World } from "./world"
import type { Ending } from "./wire"

/** Options of a Broker. */
export interface BrokerOptions {
    /** Password by user name; default: everybody may connect. */
    users?: Record<string, string>
}

/** A client did what the standard forbids. */
export interface Violation {
    atMs: number
    device: string
    clause: string
    what: string
}

/** A message a client published. */
export interface Inbound extends Message {
    atMs: number
    clientId: string
    dup: boolean
}

export class Broker {
    readonly violations: Violation[] = []
    /** What clients published, wills not included; empty it when it grows. */
    messages: Inbound[] = []
    /** Wills that were sent. */
    wills: Inbound[] = []
    readonly sessions = new Map<string, Session>()
    readonly retained = new Map<string, Message>()
    /** Connections closed because nothing came in time. */
    keepAliveTimeouts = 0
    /** CONNACKs with code 0. */
    connects = 0
    /** The most sockets open at one time, by device. */
    readonly maxOpenOf: Record<string, number> = {}
    private readonly clients = new Set<Client>()
    private readonly host: string
    private readonly port: number

    constructor(
        readonly world: World,
        readonly address: string,
        readonly options: BrokerOptions = {},
    ) {
        const at = address.lastIndexOf(":")
        this.host = address.slice(0, at)
        this.port = Number(address.slice(at + 1))
        this.start()
    }

    /** Accepts connections; after a crash, with whatever survived. */
    start() {
        this.world.say(this.address, "start")
        this.world.net.listen(this.host, this.port, peer => this.accept(peer))
    }

    /**
     * Dies: connections end, nobody's will is sent, new ones are refused until `start`.
     * @param keep what is on its disk: sessions and retained messages
     */
    crash({ keep = true, how = "reset" as Ending } = {}) {
        this.world.say(this.address, `crash, ${keep ? "keeps" : "loses"} all`)
        this.world.net.listen(this.host, this.port, undefined)
        for (const client of [...this.clients]) client.drop(how)
        if (keep) {
            for (const [id, session] of this.sessions)
                if (session.clean) this.sessions.delete(id)
            return
        }
        this.sessions.clear()
        this.retained.clear()
    }

    /** Client ids that are connected now. */
    get connected(): string[] {
        return [...this.clients].filter(c => c.session).map(c => c.clientId)
    }

    /** Publishes as if some other client had. */
    publish(
        topic: string,
        payload: string | Uint8Array,
        { qos = 0 as 0 | 1, retain = false } = {},
    ) {
        const bytes = Buffer.from(payload as Uint8Array)
        this.spread({ topic, payload: bytes, qos, retain })
    }

    /** Takes a connected client off, as an operator can. */
    kick(clientId: string, how: Ending = "fin") {
        for (const client of this.clients)
            if (client.clientId === clientId) client.lose(how)
    }

    private accept(peer: Peer) {
        const client = new Client(this, peer)
        this.clients.add(client)
        const { device } = peer
        let own = 0
        for (const c of this.clients) if (c.peer.device === device) own++
        this.maxOpenOf[device] = Math.max(this.maxOpenOf[device] ?? 0, own)
    }

    // ---- what a Client asks of its broker ----

    forget(client: Client) {
        this.clients.delete(client)
    }

    violation(device: string, clause: string, what: string) {
        this.violations.push({ atMs: this.world.nowMs, device, clause, what })
        this.world.say(this.address, `VIOLATION ${device} [${clause}] ${what}`)
    }

    /** The session for a CONNECT; whoever uses it is disconnected [MQTT-3.1.4-2]. */
    takeSession(clientId: string, clean: boolean) {
        for (const other of this.clients)
            if (other.clientId === clientId && other.session)
                other.lose("fin", 0x8e)
        const known = this.sessions.get(clientId)
        const present = !clean && known !== undefined && !known.clean
        const session = present ? known : new Session(clientId, clean)
        this.sessions.set(clientId, session)
        return { session, present }
    }

    /** To all who want it; the retained copy is kept or cleared [MQTT-3.3.1-5, -10]. */
    spread(message: Message) {
        if (message.retain) {
            if (message.payload.length)
                this.retained.set(message.topic, message)
            else this.retained.delete(message.topic)
        }
        for (const session of this.sessions.values()) {
            const qos = session.grantedFor(message.topic)
            if (qos === undefined) continue
            const live = { ...message, retain: false }
            live.qos = Math.min(qos, message.qos) as 0 | 1
            session.deliver(live)
        }
    }
}
