// What a broker keeps for one client id: subscriptions, and QoS 1 messages on their way.
// It outlives connections unless it is clean [MQTT-3.1.2-4, -6].
import { filterMatches, type Packet } from "./mqtt-wire"

/** An application message. */
export interface Message {
    topic: string
    payload: Buffer
    qos: 0 | 1
    retain: boolean
}

/** QoS 1 messages that may be without a PUBACK at a time; more wait. */
const WINDOW = 20

/** Messages kept for a client that is away; the oldest go first. */
const MAX_WAITING = 1000

export class Session {
    /** Filter -> granted QoS. */
    readonly subscriptions = new Map<string, 0 | 1>()
    private readonly inFlight = new Map<number, Message>()
    private waiting: Message[] = []
    private send: ((packet: Packet) => void) | undefined
    private window = WINDOW
    private lastId = 0

    constructor(
        readonly clientId: string,
        readonly clean: boolean,
    ) {}

    /** A connection is up: first what was in flight, in its order [MQTT-4.4.0-1, 4.6.0-1]. */
    attach(send: (packet: Packet) => void, receiveMaximum = WINDOW) {
        this.send = send
        this.window = Math.min(WINDOW, receiveMaximum)
        for (const [id, message] of this.inFlight) this.write(message, id, true)
        this.more()
    }

    detach() {
        this.send = undefined
    }

    /** Adds or replaces a subscription; returns the QoS granted. */
    subscribe(filter: string, qos: 0 | 1): 0 | 1 {
        this.subscriptions.set(filter, qos)
        return qos
    }

    /** The QoS this client gets a topic's messages with, if it wants them. */
    grantedFor(topic: string): 0 | 1 | undefined {
        let granted: 0 | 1 | undefined
        for (const [filter, qos] of this.subscriptions)
            if (filterMatches(filter, topic) && (granted ?? -1) < qos)
                granted = qos
        return granted
    }

    deliver(message: Message) {
        if (message.qos === 0) {
            this.write(message, undefined, false)
            return
        }
        if (!this.send && this.clean) return
        this.waiting.push(message)
        if (this.waiting.length > MAX_WAITING) this.waiting.shift()
        this.more()
    }

    /** PUBACK; false for an identifier that is not in flight. */
    acked(id: number): boolean {
        const known = this.inFlight.delete(id)
        this.more()
        return known
    }

    private more() {
        while (
            this.send &&
            this.waiting.length &&
            this.inFlight.size < this.window
        ) {
            const message = this.waiting.shift()!
            do this.lastId = (this.lastId % 65535) + 1
            while (this.inFlight.has(this.lastId))
            this.inFlight.set(this.lastId, message)
            this.write(message, this.lastId, false)
        }
    }

    private write(message: Message, id: number | undefined, dup: boolean) {
        this.send?.({ cmd: "publish", ...message, messageId: id, dup })
    }
}
