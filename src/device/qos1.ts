// QoS 1 out, for programs that use it: the option `qos1` of startMqtt. in-flight.ts has the rules; here they meet the client.
import * as ds from "@devicescript/core"
import { mustBe } from "../core/int"
import { Why, wordsOf } from "../core/reason"
import { stalled } from "../core/verdict"
import { sizeOf } from "../mqtt/bytes"
import { publishPacket, topicOf } from "../mqtt/encode"
import {
    flightOf,
    InFlight,
    POISON_TRIES,
    type Flight,
} from "../mqtt/in-flight"
import { Outbox, type Overflow } from "../mqtt/outbox"
import {
    OUTBOX_FULL,
    sooner,
    type Client,
    type Outcome,
    type PublishOptions,
    type Qos1Port,
} from "./client"
import { addCall, startCalls } from "./handlers"

/** How QoS 1 messages are kept; all may be left out. */
export interface Qos1Options {
    /** Most messages accepted and not yet acknowledged, 1..1000; default 16. */
    entries?: number
    /** Most bytes of all of them, 64..65535; default 4,096. */
    bytes?: number
    /** What goes when one does not fit: `dropOldest` (default), `dropNewest` or `latestPerTopic`. Never one in flight. */
    overflow?: Overflow
    /** Most messages sent and not yet acknowledged, 1..64; default 4. */
    inFlight?: number
    /** How long a PUBACK may take before the connection counts as stalled, ms, 100..2^31-1; default 30,000. */
    ackMs?: number
    /** `await flashOutbox()`: what has waited for 10 s survives restarts and power cuts. */
    flash?: FlashPort
}

/** A flash-backed outbox; flash-outbox.ts has the one there is. */
export interface FlashPort {
    /** Called once, before anything else; returns what comes back from flash, in order. */
    attach(client: Client, queue: InFlight): Flight[]
    /** A message has left for good. */
    settled(flight: Flight, nowMs: number): void
    /** Does what is due. */
    tick(nowMs: number): void
    /** When `tick` is wanted, or -1 for never. */
    dueMs(nowMs: number): number
    /** The device is about to reboot: what can still be kept is written. */
    save(): Promise<void>
}

/** Of a PUBLISH, besides topic and payload: at most this. */
const PUBLISH_HEAD_BYTES = 8

/** So many in a row, and the next waits a little: the VM ends a program that never waits. */
const PER_TURN = 8

/**
 * Keeps QoS 1 messages until the broker acknowledges them. For one client.
 * @throws RangeError naming option, value and range
 */
export function qos1(options: Qos1Options = {}): Qos1Port {
    const { overflow, flash } = options
    const entries = within("qos1.entries", options.entries, 1, 1000, 16)
    const bytes = within("qos1.bytes", options.bytes, 64, 65535, 4096)
    const window = within("qos1.inFlight", options.inFlight, 1, 64, 4)
    const ackMs = within("qos1.ackMs", options.ackMs, 100, 0x7fffffff, 30000)
    if (overflow && typeof overflow !== "function")
        throw new RangeError(`qos1.overflow is ${overflow}: must be a function`)
    if (flash && !flash.attach)
        throw new RangeError(`qos1.flash is ${flash}: must be flashOutbox()`)
    const outbox = new Outbox<Flight>(entries, bytes, overflow)
    return new Qos1(outbox, window, ackMs, flash)
}

function within(
    name: string,
    value: number | undefined,
    min: number,
    max: number,
    otherwise: number,
): number {
    if (value === undefined) return otherwise
    mustBe(name, value, min, max)
    return value
}

class Qos1 extends InFlight implements Qos1Port {
    private client: Client
    private burst = 0

    constructor(
        outbox: Outbox<Flight>,
        window: number,
        ackMs: number,
        private readonly flash: FlashPort | undefined,
    ) {
        super(outbox, window, ackMs)
    }

    attach(client: Client) {
        this.client = client
        if (!this.flash) return
        for (const flight of this.flash.attach(client, this)) {
            const dropped = this.outbox.push(flight)
            if (dropped) this.drop(dropped, undefined, "outbox full")
        }
    }

    async save() {
        if (this.flash) await this.flash.save()
    }

    async publish(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
    ): Promise<Outcome> {
        const { qos, settled, retain } = options
        if (qos !== 1)
            return "refused: qos must be 0 or 1; for once and only once use 1 and a key"
        if (settled && typeof settled !== "function")
            return "refused: settled is no function"
        const { maxBytes } = this.outbox
        const bytes = sizeOf(topic) + sizeOf(payload) + PUBLISH_HEAD_BYTES
        if (bytes > maxBytes)
            return `refused: ${bytes} bytes, at most ${maxBytes}`
        const packet = publishPacket(topic, payload, 1, !!retain, 1, false)
        if (++this.burst >= PER_TURN) {
            this.burst = 0
            await ds.sleep(1)
        }
        if (this.client.isStopped()) return "refused: stopped"
        const nowMs = ds.millis()
        return this.accept(flightOf(packet, nowMs, settled, options.properties))
    }

    private accept(flight: Flight): Outcome {
        const { outbox } = this
        const reason = outbox.isFull(flight.packet.length)
            ? "outbox full"
            : "replaced by a newer one"
        const dropped = outbox.push(flight)
        if (dropped) this.drop(dropped, flight, reason)
        if (dropped && dropped[dropped.length - 1] === flight)
            return OUTBOX_FULL
        this.drain(ds.millis())
        // The supervisor has to know when the answer is due, and of what could not go yet.
        this.client.wake()
        return "accepted"
    }

    /** Reports what the outbox dropped for a new message; if that went itself, `publish` says so. */
    private drop(
        dropped: Flight[],
        flight: Flight | undefined,
        reason: string,
    ) {
        const topic = topicOf(dropped[0].packet)
        const count = dropped.length
        this.client.dropped("outbox", topic, undefined, reason, count)
        for (const f of dropped)
            if (f !== flight) this.tell(f, "dropped: " + reason)
    }

    private tell(flight: Flight, outcome: string) {
        const { settled } = flight
        if (this.flash) this.flash.settled(flight, ds.millis())
        if (!settled) return
        const owner = { state: "", handlers: [settled] }
        addCall(this.client.handlers, owner, outcome)
        startCalls(this.client.handlers)
    }

    override acknowledged(flight: Flight, code: number) {
        if (code < 0x80) return this.tell(flight, "acknowledged")
        const { reason } = this.client.session.codec.verdict(code, false)
        this.lose(flight, "broker: " + wordsOf(reason))
    }

    override refused(flight: Flight, fault: string) {
        this.lose(flight, fault)
    }

    /** A message that has left the window without having arrived. */
    private lose(flight: Flight, reason: string) {
        const { packet } = flight
        this.client.dropped("out", topicOf(packet), packet.length, reason, 1)
        this.tell(flight, "dropped: " + reason)
    }

    private drain(nowMs: number) {
        const { client } = this
        for (let i = 0; i < PER_TURN; ++i) {
            if (!client.session.up || nowMs < client.drainMs) return
            if (!this.send(client.session, nowMs)) return
            client.pace(nowMs)
            client.counters.published++
        }
    }

    tick(nowMs: number) {
        if (this.flash) this.flash.tick(nowMs)
        if (!this.client.session.up) return
        const ackMs = this.ackDueMs()
        if (ackMs >= 0 && nowMs >= ackMs)
            this.client.connection.broken(stalled(Why.noPuback), nowMs)
        else this.drain(nowMs)
    }

    dueMs(): number {
        const keepMs = this.flash ? this.flash.dueMs(ds.millis()) : -1
        return sooner(this.sendDueMs(), keepMs)
    }

    private sendDueMs(): number {
        const { session, drainMs } = this.client
        if (!session.up) return -1
        const ackMs = this.ackDueMs()
        let sendMs = this.readyMs(session.codec.receiveMaximum)
        if (sendMs < 0) return ackMs
        if (sendMs < drainMs) sendMs = drainMs
        return ackMs >= 0 && ackMs < sendMs ? ackMs : sendMs
    }

    closed(byPeer: boolean) {
        const poison = this.land(byPeer, ds.millis())
        if (poison)
            this.lose(poison, `broker closed on it ${POISON_TRIES} times`)
    }
}
