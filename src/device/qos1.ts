// QoS 1 out, for programs that use it: the option `qos1` of startMqtt. in-flight.ts has the rules; here they meet the client.
import * as ds from "@devicescript/core"
import { mustBe } from "../core/int"
import { Why, wordsOf } from "../core/reason"
import { stalled } from "../core/verdict"
import { sizeOf } from "../mqtt/bytes"
import { publishPacket, topicOf } from "../mqtt/encode"
import {
    ackDueMs,
    flightOf,
    InFlight,
    land,
    POISON_TRIES,
    readyMs,
    send,
    type Flight,
} from "../mqtt/in-flight"
import { isFull, put, type Overflow } from "../mqtt/outbox"
import {
    OUTBOX_FULL,
    sooner,
    wakeBy,
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
    const overflow = options.overflow
    const flash = options.flash
    const entries = within("qos1.entries", options.entries, 1, 1000, 16)
    const bytes = within("qos1.bytes", options.bytes, 64, 65535, 4096)
    const window = within("qos1.inFlight", options.inFlight, 1, 64, 4)
    const ackMs = within("qos1.ackMs", options.ackMs, 100, 0x7fffffff, 30000)
    if (overflow && typeof overflow !== "function")
        throw new RangeError(`qos1.overflow is ${overflow}: must be a function`)
    if (flash && !flash.attach)
        throw new RangeError(`qos1.flash is ${flash}: must be flashOutbox()`)
    const part = new Qos1(entries, bytes, window, ackMs, overflow)
    if (flash) part.flash = flash
    return part
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

/** @devsWhenUsed */
class Qos1 extends InFlight implements Qos1Port {
    client: Client
    flash: FlashPort = undefined

    attach(client: Client) {
        this.client = client
        if (!this.flash) return
        for (const flight of this.flash.attach(client, this)) {
            const dropped = put(this, flight)
            if (dropped) drop(this, dropped, undefined, "outbox full")
        }
    }

    async save() {
        if (this.flash) await this.flash.save()
    }

    publish(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
    ): Outcome {
        const qos = options.qos
        const settled = options.settled
        const retain = options.retain
        const properties = options.properties
        const client = this.client
        const maxBytes = this.maxBytes
        if (qos !== 1)
            return "refused: qos must be 0 or 1; for once and only once use 1 and a key"
        if (settled && typeof settled !== "function")
            return "refused: settled is no function"
        // A character is at most four bytes.
        const most = (topic.length + payload.length + PUBLISH_HEAD_BYTES) << 2
        if (most > maxBytes) {
            const bytes = sizeOf(topic) + sizeOf(payload) + PUBLISH_HEAD_BYTES
            if (bytes > maxBytes)
                return `refused: ${bytes} bytes, at most ${maxBytes}`
        }
        const packet = publishPacket(topic, payload, 1, !!retain, 1, false)
        const nowMs = ds.millis()
        if (!client.session.up && client.isStopped()) return "refused: stopped"
        return accept(this, flightOf(packet, nowMs, settled, properties), nowMs)
    }

    override settle(flight: Flight, code: number, fault?: string) {
        // For the next, or to mark it in flash.
        if (this.sent < this.list.length || this.flash) this.client.wake()
        if (fault !== undefined) return lose(this, flight, fault)
        if (code < 0x80) {
            if (flight.settled || this.flash) tell(this, flight, "acknowledged")
            return
        }
        const reason = this.client.session.codec.verdict(code, false).reason
        lose(this, flight, "broker: " + wordsOf(reason))
    }

    tick(nowMs: number) {
        const client = this.client
        const flash = this.flash
        const list = this.list
        const sent = this.sent
        if (flash) flash.tick(nowMs)
        if (!list.length || !client.session.up) return
        if (sent > 0 && nowMs >= ackDueMs(this))
            client.connection.broken(stalled(Why.noPuback), nowMs)
        else if (sent < list.length)
            for (let i = 0; i < PER_TURN; ++i)
                if (!sendNext(this, nowMs)) return
    }

    dueMs(): number {
        const flash = this.flash
        const list = this.list
        const sent = this.sent
        const { session, drainMs } = this.client
        let dueMs = flash ? flash.dueMs(ds.millis()) : -1
        if (!list.length || !session.up) return dueMs
        if (sent > 0) dueMs = sooner(dueMs, ackDueMs(this))
        if (sent === list.length) return dueMs
        const sendMs = readyMs(this, session.codec.receiveMaximum)
        if (sendMs < 0) return dueMs
        return sooner(dueMs, sendMs < drainMs ? drainMs : sendMs)
    }

    entries(): number {
        return this.list.length
    }

    closed(byPeer: boolean) {
        const poison = land(this, byPeer, ds.millis())
        if (poison)
            lose(this, poison, `broker closed on it ${POISON_TRIES} times`)
    }
}

/** A call costs the VM an allocation: a message that has room and goes at once takes as few as can be. */
function accept(q: Qos1, flight: Flight, nowMs: number): Outcome {
    const bytes = flight.packet.length
    const full = isFull(q, bytes)
    if (full || q.overflow) {
        // Only a rule can drop something when there is room.
        const reason = full ? "outbox full" : "replaced by a newer one"
        const dropped = put(q, flight)
        if (dropped) {
            drop(q, dropped, flight, reason)
            if (dropped[dropped.length - 1] === flight) return OUTBOX_FULL
        }
    } else {
        q.list.push(flight)
        q.bytes += bytes
    }
    sendNext(q, nowMs)
    // The supervisor has to know when the answer is due, and of what could not go yet.
    const isPlain = q.sent === q.list.length && !q.flash
    wakeBy(q.client, isPlain ? nowMs + q.ackMs : q.dueMs())
    return "accepted"
}

/** Reports what the outbox dropped for a new message; if that went itself, `publish` says so. */
function drop(
    q: Qos1,
    dropped: Flight[],
    flight: Flight | undefined,
    reason: string,
) {
    const topic = topicOf(dropped[0].packet)
    q.client.dropped("outbox", topic, undefined, reason, dropped.length)
    for (const f of dropped) if (f !== flight) tell(q, f, "dropped: " + reason)
}

/** A message that was accepted has left for good. */
function tell(q: Qos1, flight: Flight, outcome: string) {
    const settled = flight.settled
    if (q.flash) q.flash.settled(flight, ds.millis())
    if (!settled) return
    addCall(q.client.handlers, { state: "", handlers: [settled] }, outcome)
    // Else whoever is at work sees to it in the end.
    if (!q.client.busy) startCalls(q.client.handlers)
}

/** A message has left without having arrived. */
function lose(q: Qos1, flight: Flight, reason: string) {
    const packet = flight.packet
    q.client.dropped("out", topicOf(packet), packet.length, reason, 1)
    tell(q, flight, "dropped: " + reason)
}

/** Sends the message whose turn it is; false when none may go now. */
function sendNext(q: Qos1, nowMs: number): boolean {
    const client = q.client
    const session = client.session
    if (!session.up || nowMs < client.drainMs) return false
    if (!send(q, session, nowMs)) return false
    if (client.paced) client.pace(nowMs)
    client.counters.published++
    return true
}
