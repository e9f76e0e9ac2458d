// Ready-made plays for a scripted broker, one bad habit each. They combine by spreading:
// `{ ...kick(0), ...noPings() }`.
import type { Conn, Play } from "./scripted-broker"
import type { World } from "./world"

/** Reads CONNECT and never answers. */
export const mute = (): Play => ({ connect() {} })

/** CONNACK with a return code, then FIN, as the standard asks. */
export const refuse = (code: number): Play => ({
    connect(c) {
        c.connack(code)
        if (code) c.fin()
    },
})

/** MQTT 5 without retained messages, which is no place for a retained will [MQTT-3.2.2-13]. */
export const withoutRetained = (): Play => ({
    connect(c, p) {
        if (!p.will?.retain) return c.connack5({ retainAvailable: false })
        c.connack5({}, 0x9a)
        c.fin()
    },
})

/** CONNACK 0, late. */
export const lateConnack = (ms: number): Play => ({
    connect: c => c.after(ms, () => c.connack()),
})

/** CONNACK 0, a byte every so often. */
export const tricklingConnack = (everyMs: number): Play => ({
    connect: c => c.connack(0, false, { pieces: "bytes", everyMs }),
})

/** The connection ends this long after accept, whatever comes. */
export const endAfterAccept = (ms: number, how: "fin" | "rst"): Play => ({
    accept: c => (ms ? c.after(ms, () => c[how]()) : c[how]()),
})

/** CONNACK 0, then out. */
export const kick = (ms = 0, how: "fin" | "rst" = "fin"): Play => ({
    connect(c) {
        c.connack()
        if (ms) c.after(ms, () => c[how]())
        else c[how]()
    },
})

/** CONNACK 0, and then not a word: half-open. */
export const deafAfterConnack = (): Play => ({
    packet(c, p) {
        if (p.cmd === "connect") c.connack()
        return false
    },
})

/** Answers everything but PINGREQ. */
export const noPings = (): Play => ({ pingreq() {} })

/** Answers everything but QoS 1 PUBLISH. */
export const noPubacks = (): Play => ({ publish() {} })

/** Says nothing to SUBSCRIBE. */
export const noSubacks = (): Play => ({ subscribe() {} })

/** Refuses every filter. */
export const subackFailure = (): Play => ({
    subscribe: (c, p) =>
        c.suback(
            p,
            p.subscriptions.map(() => 0x80),
        ),
})

/** Sends these bytes (or hex) as soon as there is a connection. */
export const greetWith = (bytes: Uint8Array | string): Play => ({
    accept: c => c.send(bytes),
})

/** A retained message for every SUBSCRIBE, before its SUBACK if `first`. */
export const retained = (
    topic: string,
    payload: string | Uint8Array,
    { qos = 0 as 0 | 1, first = false } = {},
): Play => ({
    subscribe(c, p) {
        if (!first) c.suback(p)
        c.publish(topic, payload, { retain: true, qos })
        if (first) c.suback(p)
    },
})

/** Holds PUBACKs back and sends them in reverse order, `count` at a time. */
export const reversedPubacks = (count: number): Play => {
    const waiting = new Map<Conn, number[]>()
    return {
        publish(c, p) {
            if (p.qos !== 1) return
            const ids = [...(waiting.get(c) ?? []), p.messageId!]
            waiting.set(c, ids.length < count ? ids : [])
            if (ids.length < count) return
            for (const messageId of ids.reverse()) c.puback({ messageId })
        },
    }
}

/** What an overloaded broker does to whom it has no room for. */
export type Overflow = "rst" | "silent" | "busy"

/** A broker with a limited CONNECT rate: plays of one Overload share one queue. */
export class Overload {
    /** CONNECTs that wait. */
    readonly queue: Conn[] = []
    /** Served while their device was still there. */
    served = 0
    /** Served in vain: the device had given up. */
    wasted = 0
    /** Turned away. */
    turnedAway = 0
    private busy = false

    /**
     * @param perSecond CONNECTs it can serve
     * @param backlog CONNECTs that may wait
     */
    constructor(
        private readonly world: World,
        private readonly perSecond: number,
        private readonly backlog: number,
        private readonly overflow: Overflow = "rst",
    ) {}

    readonly play: Play = {
        connect: c => {
            if (this.queue.length < this.backlog) {
                this.queue.push(c)
                if (!this.busy) this.serve()
                return
            }
            this.turnedAway++
            if (this.overflow === "rst") c.rst()
            else if (this.overflow === "busy") {
                c.connack(3)
                c.fin()
            }
        },
    }

    private serve() {
        const conn = this.queue.shift()
        this.busy = conn !== undefined
        if (!conn) return
        // It works as long for one that has left.
        this.world.after(1000 / this.perSecond, () => {
            if (conn.isOpen) {
                this.served++
                conn.broker.welcome(conn)
            } else this.wasted++
            this.serve()
        })
    }
}
