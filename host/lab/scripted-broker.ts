// A broker whose every move the test scripts. A connection plays a Play: what to do at each
// event; what a play leaves out is done politely (CONNACK 0, SUBACK, PUBACK, PINGRESP, take-over by
// client id). `next(n, play)` queues plays for the coming connections, `always(play)` sets what
// follows. plays.ts has the ready-made ones.
//
//     broker.next(5, mute()).next(1, refuse(5)).always({ connect: c => c.after(3000, () => c.connack()) })
//
// It records what the devices sent, decoded by mqtt-packet, with times, and the sockets open.
import { Conn, type Play, type Received } from "./conn"
import type { Peer } from "./link"
import { describePacket, WireReader, type Packet } from "./mqtt-wire"
import type { World } from "./world"
import type { Ending } from "./wire"

export type { Conn, Play, Received, SendOptions } from "./conn"

export class ScriptedBroker {
    /** Every connection so far, in the order they were accepted. */
    readonly conns: Conn[] = []
    /** Every packet so far. */
    readonly packets: Received[] = []
    /** The most sockets that were open at one time, by device name. */
    readonly maxOpenOf: Record<string, number> = {}
    /** The most sockets that were open at one time. */
    maxOpen = 0
    private readonly queue: Play[] = []
    private rest: Play = {}
    private packetId = 0
    private readonly host: string
    private readonly port: number

    constructor(
        readonly world: World,
        readonly address: string,
    ) {
        const at = address.lastIndexOf(":")
        this.host = address.slice(0, at)
        this.port = Number(address.slice(at + 1))
        this.up()
    }

    /** The next `count` connections are played so; calls queue up. */
    next(count: number, play: Play): this {
        for (let i = 0; i < count; ++i) this.queue.push(play)
        return this
    }

    /** What every connection beyond the queue is played like; `{}` is polite. */
    always(play: Play): this {
        this.rest = play
        return this
    }

    /** Refuses connections from now on, and ends those that are open. */
    down(how: Ending | "keep" = "reset") {
        this.world.net.listen(this.host, this.port, undefined)
        this.world.say(this.address, "down")
        for (const c of this.open)
            if (how === "fin") c.fin()
            else if (how === "reset") c.rst()
    }

    /** Accepts connections again. */
    up() {
        this.world.say(this.address, "up")
        this.world.net.listen(this.host, this.port, peer => this.accept(peer))
    }

    /** The connections that are open now. */
    get open(): Conn[] {
        return this.conns.filter(c => c.isOpen)
    }

    /** The connection accepted last; throws when there was none. */
    get latest(): Conn {
        const conn = this.conns.at(-1)
        if (!conn) throw new Error(`${this.address} had no connection`)
        return conn
    }

    /** The packets of one kind from all connections. */
    sent<C extends Packet["cmd"]>(cmd: C): Received<C>[] {
        return this.packets.filter(
            r => r.packet.cmd === cmd,
        ) as unknown as Received<C>[]
    }

    nextPacketId(): number {
        this.packetId = (this.packetId % 65535) + 1
        return this.packetId
    }

    private accept(peer: Peer) {
        const play = this.queue.shift() ?? this.rest
        const conn = new Conn(this, this.conns.length + 1, peer, play)
        this.conns.push(conn)
        this.count(peer.device)
        conn.say(`accepted ${peer.device}`)
        const reader = new WireReader(
            packet => this.received(conn, packet),
            reason => {
                conn.malformed = reason
                conn.say(`malformed: ${reason}`)
            },
        )
        peer.onData = bytes => {
            conn.bytesIn += bytes.length
            reader.push(bytes)
        }
        peer.onEnd = how => conn.over(how)
        play.accept?.(conn)
    }

    private count(device: string) {
        const open = this.open
        const own = open.filter(c => c.device === device).length
        this.maxOpen = Math.max(this.maxOpen, open.length)
        this.maxOpenOf[device] = Math.max(this.maxOpenOf[device] ?? 0, own)
    }

    private received(conn: Conn, packet: Packet) {
        const entry: Received = {
            atMs: this.world.nowMs,
            conn,
            packet: { ...packet } as never,
        }
        conn.packets.push(entry)
        this.packets.push(entry)
        conn.say(`<- ${describePacket(packet)}`)
        if (packet.cmd === "connect") {
            conn.clientId = packet.clientId
            conn.version = packet.protocolVersion === 5 ? 5 : 4
        }
        if (conn.isOpen && conn.play.packet?.(conn, packet) !== false)
            this.perform(conn, packet)
    }

    private perform(c: Conn, packet: Packet) {
        const { play } = c
        switch (packet.cmd) {
            case "connect":
                if (play.connect) play.connect(c, packet)
                else this.welcome(c)
                return
            case "subscribe":
                if (play.subscribe) play.subscribe(c, packet)
                else c.suback(packet)
                return
            case "unsubscribe":
                if (play.unsubscribe) play.unsubscribe(c, packet)
                else c.unsuback(packet)
                return
            case "publish":
                if (play.publish) play.publish(c, packet)
                else if (packet.qos === 1) c.puback(packet)
                return
            case "puback":
                play.puback?.(c, packet)
                return
            case "pingreq":
                if (play.pingreq) play.pingreq(c)
                else c.pingresp()
                return
            case "disconnect":
                if (play.disconnect) play.disconnect(c)
                else c.fin()
        }
    }

    /** CONNACK 0; whoever had this client id before is out [MQTT-3.1.4-2; MQTT 5: 3.1.4-3]. */
    welcome(c: Conn) {
        for (const other of this.open)
            if (other !== c && other.clientId === c.clientId)
                if (other.version === 5) other.dismiss(0x8e)
                else other.fin()
        c.connack()
    }
}
