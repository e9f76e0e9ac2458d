// The MQTT connection of a device: one supervisor fiber owns the socket, and everything else
// (the application, the socket's callback, Wi-Fi) posts into its mailbox. The rules are in core
// and mqtt; here they meet the natives.
import * as ds from "@devicescript/core"
import { Backoff, type Policy } from "../core/backoff"
import { Connection, type Endpoint, type Port } from "../core/connection"
import { retry, slow, type SocketFault } from "../core/verdict"
import type { Line } from "../core/line"
import { sizeOf } from "../mqtt/bytes"
import { publishPacket } from "../mqtt/encode"
import { Outbox, type Entry, type Overflow } from "../mqtt/outbox"
import type { Publish } from "../mqtt/parser"
import {
    Session,
    type Reliable,
    type SessionOptions,
    type SessionPort,
    type Subscription,
} from "../mqtt/session"
import { checkTopicFilter, checkTopicName } from "../mqtt/topic"
import { Handlers } from "./handlers"
import type { LinkChange } from "../core/link"
import type { LinkHandler } from "./link"
import { log } from "./log"
import { deviceRandom } from "./random"
import { socketClose, socketListen, socketOpen, socketWrite } from "./socket"

/**
 * What became of a request: "sent" (handed to the socket), "queued" (waits for a connection), "accepted" (kept until the broker
 * acknowledges it), "granted" (by the broker), "done", "unanswered: ..." (asked again at the next connection), or "refused: why".
 */
export type Outcome = string

/** What a client is made of; index.ts makes it from the user's options. */
export interface ClientOptions {
    endpoint: Endpoint
    policy: Policy
    session: SessionOptions
    outboxEntries: number
    outboxBytes: number
    overflow?: Overflow
    /** QoS 1 out; qos1.ts has the one there is. */
    qos1?: Qos1Port
    /** Watches the network; without it the network counts as up. */
    link?: (changed: LinkHandler) => void
}

/** Who wants to know that the supervisor and its natives still answer; see core/watchdog.ts. */
export interface Monitor {
    beat(nowMs: number, promisedDueMs: number): void
    nativeStarted(nowMs: number, limitMs: number): void
    nativeDone(): void
}

/** How a message is published; all may be left out. */
export interface PublishOptions {
    /** Whether the broker keeps it for later subscribers. Default false. */
    retain?: boolean
    /** 0 (default), or 1 in a program that gives `startMqtt` the option `qos1`. */
    qos?: 0 | 1
    /** Encoded properties of MQTT 5, without their length; left out where 3.1.1 is spoken. */
    properties?: Buffer
    /**
     * With QoS 1: called once with what became of an accepted message: "acknowledged" (the broker has it)
     * or "dropped: why" (the outbox was full; the broker closed on it each time).
     */
    settled?: (outcome: string) => ds.AsyncVoid
}

/** QoS 1 out, as far as the client has to do with it. */
export interface Qos1Port extends Reliable {
    /** Called once, before anything else. */
    attach(client: Client): void
    publish(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
    ): Promise<Outcome>
    /** Does what is due: sends, and gives up waiting. */
    tick(nowMs: number): void
    /** When `tick` is wanted, or -1 for never. */
    dueMs(): number
    /** Messages that go again at a new connection. */
    entries(): number
    /** The connection is over; `byPeer` when the peer ended it, and not we or the network. */
    closed(byPeer: boolean): void
}

/** Counters since the program started. */
export interface Counters {
    /** Times a CONNACK 0 came. */
    connects: number
    /** Sessions that ended without being asked to. */
    losses: number
    /** Messages given to the socket. */
    published: number
    /** Messages given to handlers. */
    received: number
    /** Messages dropped, both ways. */
    dropped: number
    /** Handlers that threw. */
    handlerErrors: number
}

/** Something for the supervisor to do. */
type Post = () => ds.AsyncVoid

/**
 * A subscription that can be found by its handler. Reading a closure from a field makes another closure,
 * which is not `===` to the first, so the handler is kept in an array too.
 */
interface Found extends Subscription {
    handlers: ((message: Publish) => ds.AsyncVoid)[]
}

/** Something a fiber asks of the supervisor and waits for. */
interface Request {
    leaving: boolean
    subscription: Subscription
    fiber: ds.Fiber
    outcome: Outcome
}

/** One who wants to know the state; told of the latest when there is time. */
interface StateListener {
    handlers: ((state: string) => ds.AsyncVoid)[]
    waits: boolean
}

/**
 * Work of the supervisor before other fibers get a turn, in packets and filters looked at: the VM ends
 * a program that does not wait for some 130,000 steps.
 */
const WORK_PER_TURN = 96

/** What one thing in the mailbox counts for. */
const WORK_OF_POST = 8

/** Of a PUBLISH, besides topic and payload: at most this. */
const PUBLISH_HEAD_BYTES = 6

/** So many publishes in one millisecond, and the last of them waits for the next. */
const PUBLISHES_PER_TURN = 8

/** Chunks from the socket that may wait; more means the peer floods us. */
const MAX_CHUNKS = 12

/** With more than this the handlers are waited for no longer. */
const MAX_CHUNKS_WAITING = 6

/** How long, in all, a burst of messages waits for handlers that are behind. */
const HANDLERS_MS = 100

/** Subscriptions at a time: each message is compared with every one. */
const MAX_SUBSCRIPTIONS = 64

/** Between two messages that waited through an outage: a returning fleet must not be a second herd. */
const DRAIN_MS = 20

/** At most one line for dropped messages in this time. */
const DROP_LINE_MS = 10000

/** What `publish` says when the outbox's rule is to keep what it has. */
export const OUTBOX_FULL = "refused: outbox full"

/** The supervisor looks around at least this often. */
const MAX_SLEEP_MS = 60000

/** @devsWhenUsed */
export class Client implements Port, SessionPort {
    readonly connection: Connection
    readonly session: Session
    readonly handlers: Handlers
    readonly counters: Counters = {
        connects: 0,
        losses: 0,
        published: 0,
        received: 0,
        dropped: 0,
        handlerErrors: 0,
    }
    monitor: Monitor = undefined
    private readonly outbox: Outbox<Entry>
    private readonly qos1: Qos1Port
    /** The peer ended the connection that is being closed. */
    private byPeer = false
    private mailbox: Post[] = []
    /** What `stop()` and `start()` ask for; in a row they come to at most one of each, in this order. */
    private wantsStop = false
    private wantsStart = false
    private wantsRetry = false
    private fiber: ds.Fiber
    /** Counts sockets: what an old one still has in the mailbox is no news of the next. */
    private epoch = 0
    /** The dial has had no answer. */
    private dialling = false
    private chunks = 0
    /** Chunks were dropped: this connection can't go on. */
    private flooded = false
    private work = WORK_PER_TURN
    /** What is left of HANDLERS_MS; full again once the handlers have caught up. */
    private handlersMs = HANDLERS_MS
    private waiting: Request[] = []
    /** Nothing that has waited is sent before. */
    drainMs = 0
    /** Messages left that waited through the outage. */
    private paced = 0
    /** Publishes in the millisecond `burstMs`. */
    private burst = 0
    private burstMs = 0
    /** The last topic that passed its check: most are published to again and again. */
    private goodTopic: string = undefined
    private dropLineMs = -DROP_LINE_MS
    /** Debug lines are printed until then. */
    private debugMs = 0
    private listeners: StateListener[] = []

    constructor(options: ClientOptions) {
        const backoff = new Backoff(options.policy, deviceRandom())
        this.connection = new Connection(options.endpoint, backoff, this)
        this.session = new Session(options.session, this)
        this.connection.reviewer = options.session.codec
        const { outboxEntries, outboxBytes, overflow } = options
        this.outbox = new Outbox(outboxEntries, outboxBytes, overflow)
        this.qos1 = options.qos1
        if (this.qos1) this.qos1.attach(this)
        this.handlers = new Handlers(this.counters)
        const self = this
        socketClose() // what a crash left open
        this.listen()
        const run = async () => {
            self.fiber = ds.Fiber.self()
            while (true) await self.turn()
        }
        run.start()
        if (options.link)
            options.link(change => self.post(() => self.linkChanged(change)))
        this.start()
    }

    /** Takes the socket's events. */
    listen() {
        const self = this
        socketListen((event, arg) => {
            self.answered(event)
            if (event === "data") self.chunk(arg as Buffer)
            else self.socketEvent(event, arg + "")
        })
    }

    // ---- the supervisor ----

    /** Has something done by the supervisor. */
    post(post: Post) {
        this.mailbox.push(post)
        this.wake()
    }

    wake() {
        if (this.fiber && this.fiber.suspended) this.fiber.resume(undefined)
    }

    private async turn() {
        this.work = WORK_PER_TURN
        try {
            // Input first: what has arrived may be the sign of life that a deadline waits for.
            while (this.mailbox.length) {
                const post = this.mailbox.shift()
                await post()
                await this.breathe(WORK_OF_POST)
            }
            const nowMs = ds.millis()
            this.obey(nowMs)
            this.connection.tick(nowMs)
            this.session.tick(nowMs)
            if (this.qos1) this.qos1.tick(nowMs)
            this.drainOutbox(nowMs)
        } catch (e) {
            this.survive(e)
        }
        const nowMs = ds.millis()
        const sleepMs = this.sleepMs(nowMs)
        if (this.monitor) this.monitor.beat(nowMs, nowMs + sleepMs)
        if (sleepMs > 0 && !this.mailbox.length && !this.asked())
            await ds.suspend(sleepMs)
        else await ds.sleep(1)
    }

    /** Does what the application has asked for since the last turn. */
    private obey(nowMs: number) {
        const { wantsStop, wantsStart, wantsRetry } = this
        this.wantsStop = this.wantsStart = this.wantsRetry = false
        if (wantsStop) this.connection.stop(nowMs)
        if (wantsStart) this.connection.start(nowMs)
        if (wantsRetry) this.connection.retryNow(nowMs)
    }

    /** A bug of ours must cost this connection, not the program. */
    private survive(e: unknown) {
        console.error(e as any)
        try {
            this.connection.broken(retry("internal error"), ds.millis())
        } catch (again) {
            this.close()
        }
    }

    private asked(): boolean {
        return this.wantsStop || this.wantsStart || this.wantsRetry
    }

    /** Counts work done; now and then lets the other fibers run. */
    private async breathe(work: number) {
        this.work -= work
        if (this.work > 0) return
        this.work = WORK_PER_TURN
        await ds.sleep(1)
    }

    private linkChanged(change: LinkChange) {
        const nowMs = ds.millis()
        if (change !== "up") this.connection.linkDown(nowMs)
        if (change !== "down") this.connection.linkUp(nowMs)
    }

    private sleepMs(nowMs: number): number {
        let dueMs = this.connection.dueMs()
        dueMs = sooner(dueMs, this.session.dueMs())
        if (this.session.up && this.outbox.entries() > 0)
            dueMs = sooner(dueMs, this.drainMs)
        if (this.qos1) dueMs = sooner(dueMs, this.qos1.dueMs())
        if (dueMs < 0 || dueMs - nowMs > MAX_SLEEP_MS) return MAX_SLEEP_MS
        return dueMs - nowMs
    }

    // ---- what the socket says ----

    /** Has `post` done unless this socket is gone by then. */
    private postOfSocket(post: Post) {
        const self = this
        const epoch = this.epoch
        this.post(async () => {
            if (epoch === self.epoch) await post()
        })
    }

    /** The native that dials has come back. */
    private answered(event: string) {
        this.dialling = false
        if (this.monitor) this.monitor.nativeDone()
        // To a dial that was given up.
        if (event === "open" && this.connection.state.name !== "connecting")
            socketClose()
    }

    /** Somebody else takes the socket: closes a dial that was given up, whose end we would not hear any more. */
    release() {
        if (!this.dialling) return
        socketClose()
        this.answered("close")
    }

    private socketEvent(event: string, text: string) {
        if (event === "open") this.socketOpened()
        else this.socketFailed(event === "error" ? event : "closed", text)
    }

    private socketOpened() {
        const connection = this.connection
        this.postOfSocket(() => {
            connection.opened(ds.millis())
        })
    }

    private socketFailed(fault: SocketFault, text: string) {
        const self = this
        this.postOfSocket(() => {
            self.byPeer = fault !== "native"
            self.connection.socketFailed(fault, text, ds.millis())
            self.byPeer = false
        })
    }

    private chunk(chunk: Buffer) {
        if (this.chunks >= MAX_CHUNKS) {
            if (this.flooded) return
            this.flooded = true
            this.dropped(
                "chunk in",
                undefined,
                chunk.length,
                "input too fast",
                1,
            )
            this.socketFailed("native", "input too fast")
            return
        }
        this.chunks++
        const self = this
        this.postOfSocket(async () => {
            self.chunks--
            await self.takeChunk(chunk)
        })
    }

    private async takeChunk(chunk: Buffer) {
        const name = this.connection.state.name
        if (name !== "awaitingConnack" && name !== "connected") return
        if (this.debugMs > 0) this.debug("in", chunk[0] >> 4, chunk.length)
        this.session.push(chunk, ds.millis())
        while (this.session.next(ds.millis())) {
            await this.breathe(1 + this.session.subscriptions.length)
            if (this.handlers.full()) await this.waitForHandlers()
        }
    }

    /** A burst waits a little for handlers that are merely behind, not for one that is stuck. */
    private async waitForHandlers() {
        while (
            this.handlers.full() &&
            this.handlersMs > 0 &&
            this.chunks < MAX_CHUNKS_WAITING
        ) {
            this.handlersMs--
            await ds.sleep(1)
        }
        if (!this.handlers.full()) this.handlersMs = HANDLERS_MS
    }

    // ---- publishing ----

    /** Nobody wants a connection. */
    isStopped(): boolean {
        return this.connection.state.name === "halted" && !this.wantsStart
    }

    private publishNow(
        packet: Buffer,
        nowMs: number,
        properties: Buffer,
    ): Outcome {
        if (this.isStopped()) return "refused: stopped"
        const fault = this.refusal(packet, properties)
        if (fault !== undefined) return "refused: " + fault
        if (this.session.up && this.outbox.entries() === 0)
            if (this.session.send(packet, nowMs, properties) === 0) {
                this.counters.published++
                return "sent"
            }
        const entry: Entry = { packet, properties, sinceMs: nowMs }
        const dropped = this.outbox.push(entry)
        if (dropped === undefined) return "queued"
        const count = dropped.length
        this.dropped("outbox", undefined, undefined, "outbox full", count)
        return dropped[count - 1] === entry ? OUTBOX_FULL : "queued"
    }

    private drainOutbox(nowMs: number) {
        for (let i = 0; i < PUBLISHES_PER_TURN; ++i) {
            if (!this.session.up || nowMs < this.drainMs) return
            const entry = this.outbox.oldest()
            if (entry === undefined) return
            // Not what has come since: an application faster than that would never be up to date again.
            this.pace(nowMs)
            const { codec } = this.session
            const late = codec.expires && codec.expires(entry, nowMs)
            const { packet, properties } = entry
            const fault = late ? "expired" : this.refusal(packet, properties)
            if (fault !== undefined) {
                this.outbox.shift()
                this.dropped("outbox", undefined, packet.length, fault, 1)
                continue
            }
            if (this.session.send(packet, nowMs, properties) !== 0) return
            this.outbox.shift()
            this.counters.published++
        }
    }

    /** Why the broker would not take a message, as far as it has said. */
    private refusal(packet: Buffer, properties: Buffer): string | undefined {
        const { codec } = this.session
        return codec.refuses && codec.refuses(packet, properties)
    }

    /** Before a message leaves that has waited: when the next may, if it waited through the outage. */
    pace(nowMs: number) {
        if (this.paced === 0) return
        this.paced--
        this.drainMs = nowMs + DRAIN_MS
    }

    /** Has `run` done by the supervisor and waits for the request's answer. */
    private async ask(
        leaving: boolean,
        subscription: Subscription,
        run: (request: Request) => void,
    ): Promise<Outcome> {
        const fiber = ds.Fiber.self()
        const request: Request = { leaving, subscription, fiber, outcome: "" }
        this.waiting.push(request)
        this.post(() => run(request))
        while (!request.outcome) await ds.suspend()
        return request.outcome
    }

    private answer(request: Request, outcome: Outcome) {
        request.outcome = outcome
        try {
            if (request.fiber.suspended) request.fiber.resume(undefined)
        } catch (e) {
            // The fiber that asked was ended by the application.
        }
    }

    /** Answers those who wait for this subscription (all of them, when left out). */
    private answerAll(
        leaving: boolean,
        outcome: Outcome,
        subscription?: Subscription,
    ): boolean {
        const waiting = this.waiting
        this.waiting = []
        for (const request of waiting)
            if (
                request.leaving === leaving &&
                (!subscription || request.subscription === subscription)
            )
                this.answer(request, outcome)
            else this.waiting.push(request)
        return this.waiting.length < waiting.length
    }

    private debug(way: string, type: number, bytes: number) {
        if (ds.millis() < this.debugMs)
            console.debug(`mqtt ${way}: type ${type}, ${bytes} B`)
        else this.debugMs = 0
    }

    /** Counts what is dropped and says so, not too often. */
    dropped(
        what: string,
        topic: string | undefined,
        bytes: number | undefined,
        reason: string,
        count: number,
    ) {
        this.counters.dropped += count
        const nowMs = ds.millis()
        if (nowMs < this.dropLineMs + DROP_LINE_MS) return
        this.dropLineMs = nowMs
        const dropped = this.counters.dropped
        log({ ev: "drop", what, topic, bytes, reason, dropped })
    }

    // ---- Port: the connection's effects ----

    dial(): string | undefined {
        const { host, port, tls } = this.connection.endpoint
        const problem = socketOpen(host, port, tls)
        this.dialling = problem === undefined
        // A native that fails has answered, and what an earlier dial does can't be heard any more.
        if (this.monitor) {
            if (this.dialling) this.monitor.nativeStarted(ds.millis(), 0)
            else this.monitor.nativeDone()
        }
        return problem
    }

    connect(): string | undefined {
        const code = this.session.open(ds.millis())
        return code === 0 ? undefined : `socket write returned ${code}`
    }

    disconnect() {
        this.session.leave(ds.millis())
    }

    close() {
        // A dial that is given up is listened to until the next: its end shows that the native isn't blocked.
        if (!this.dialling) socketClose()
        this.epoch++
        this.chunks = 0
        this.flooded = false
        this.session.close()
        if (this.qos1) this.qos1.closed(this.byPeer)
        this.answerAll(false, "queued")
    }

    log(line: Line) {
        if (line.ev === "lost") this.counters.losses++
        log(line)
    }

    changed() {
        for (const listener of this.listeners) this.tell(listener)
    }

    /** Has a listener told of the latest state, once for however many changes until then. */
    private tell(listener: StateListener) {
        if (listener.waits) return
        listener.waits = true
        const self = this
        const call = async () => {
            listener.waits = false
            const handler = listener.handlers[0]
            await handler(self.state())
        }
        this.handlers.add(call, undefined, 0, undefined)
    }

    // ---- SessionPort: the session's effects ----

    send(packet: Buffer): number {
        if (this.debugMs > 0) this.debug("out", packet[0] >> 4, packet.length)
        const code = socketWrite(packet)
        if (code !== 0)
            this.socketFailed("native", `socket write returned ${code}`)
        return code
    }

    connack(code: number, sessionPresent: boolean) {
        const nowMs = ds.millis()
        if (code === 0) {
            this.counters.connects++
            this.drainMs = nowMs + DRAIN_MS
            this.paced = this.outbox.entries()
            if (this.qos1) this.paced += this.qos1.entries()
            const { level } = this.session.codec
            const mqtt = level === 4 ? undefined : level
            this.connection.accepted(sessionPresent, nowMs, mqtt)
        } else
            this.connection.broken(
                this.session.codec.verdict(code, false),
                nowMs,
            )
    }

    deliver(subscription: Subscription, message: Publish) {
        const bytes = message.payload.length + message.topic.length
        if (
            this.handlers.add(
                subscription.handler,
                message,
                bytes,
                subscription,
            )
        )
            this.counters.received++
        else this.dropped("in", message.topic, bytes, "handlers too slow", 1)
    }

    skipped(topic: string, packetBytes: number) {
        this.dropped("in", topic, packetBytes, "larger than packet limit", 1)
    }

    unsent(topic: string, packetBytes: number, fault: string) {
        this.dropped("out", topic, packetBytes, fault, 1)
    }

    /** Waiting cures no broken peer in a hurry: the slow lane, not the schedule. */
    violation(clause: string, reason: string) {
        const verdict = slow(`${clause} ${reason}`)
        this.connection.broken(verdict, ds.millis())
    }

    dismissed(code: number) {
        const verdict = this.session.codec.verdict(code, true)
        this.byPeer = true
        this.connection.broken(verdict, ds.millis())
        this.byPeer = false
    }

    silent() {
        this.connection.socketFailed("timeout", "", ds.millis())
    }

    settled(subscription: Subscription) {
        const { state, filter, why } = subscription
        if (state === "refused")
            this.dropped("subscription", filter, undefined, `refused ${why}`, 0)
        const told = this.answerAll(
            false,
            subscribed(subscription),
            subscription,
        )
        // Whoever was told "queued" counts on it: asked for again.
        if (told && state === "refused") this.session.forget(subscription)
    }

    unsubscribed(subscription: Subscription) {
        this.answerAll(true, "done", subscription)
    }

    // ---- the application's side ----

    /**
     * Publishes a message.
     * @param topic a topic name, without wildcards
     * @param payload text or bytes; with topic and head at most `outboxBytes`, with QoS 1 the bytes that `qos1` was given
     * @returns with QoS 0 "sent" (to the socket) or "queued" (until there is a connection), with QoS 1 "accepted" (kept
     * until the broker acknowledges it), or "refused: why"; never throws and never waits for a connection
     */
    async publish(
        topic: string,
        payload: string | Buffer,
        options?: PublishOptions,
    ): Promise<Outcome> {
        if (typeof topic !== "string") return "refused: topic is not text"
        if (typeof payload !== "string" && !(payload instanceof Buffer))
            return "refused: payload is neither text nor a Buffer"
        if (topic !== this.goodTopic) {
            const fault = checkTopicName(topic)
            if (fault !== undefined) return "refused: topic " + fault
            this.goodTopic = topic
        }
        let retain = false
        let properties: Buffer = undefined
        if (options !== undefined) {
            if (typeof options !== "object" || !options)
                return "refused: options is no object"
            retain = !!options.retain
            properties = options.properties
            if (options.qos) {
                if (this.qos1)
                    return await this.qos1.publish(topic, payload, options)
                return "refused: qos 1 needs the option qos1, and 2 is not there"
            }
        }
        // Before it is copied: there may not be room for two of it.
        const { maxBytes } = this.outbox
        const bytes = sizeOf(topic) + sizeOf(payload) + PUBLISH_HEAD_BYTES
        if (bytes > maxBytes)
            return `refused: ${bytes} bytes, at most ${maxBytes}`
        const packet = publishPacket(topic, payload, 0, retain, 0, false)
        // Not through the mailbox: that would cost two more turns and, of a burst, the heap.
        // It writes only between two of the supervisor's steps, and leaves room for others.
        let nowMs = ds.millis()
        if (nowMs !== this.burstMs) this.burst = 0
        this.burstMs = nowMs
        if (++this.burst >= PUBLISHES_PER_TURN) {
            this.burst = 0
            await ds.sleep(1)
            nowMs = ds.millis()
        }
        return this.publishNow(packet, nowMs, properties)
    }

    /**
     * Subscribes a handler to a topic filter, at once and again at every reconnect. At most 64 at a time.
     * @returns "granted"; "queued" when there is no connection (then also asked again a minute after each refusal); "unanswered: ..." when the broker was
     * silent (asked again at the next connection); "refused: why" (then it is forgotten); never throws
     */
    async subscribe(
        filter: string,
        handler: (message: Publish) => ds.AsyncVoid,
        qos: 0 | 1 = 0,
    ): Promise<Outcome> {
        if (typeof filter !== "string") return "refused: filter is not text"
        if (typeof handler !== "function")
            return "refused: handler is no function"
        if (qos !== 0 && qos !== 1) return "refused: qos must be 0 or 1"
        const fault = checkTopicFilter(filter)
        if (fault !== undefined) return "refused: filter " + fault
        const known = this.find(filter, handler)
        // One that was refused after "queued" is asked for again, now.
        if (known.length && known[0].state === "refused")
            this.session.forget(known[0])
        else if (known.length) return subscribed(known[0])
        if (this.session.subscriptions.length >= MAX_SUBSCRIPTIONS)
            return `refused: ${MAX_SUBSCRIPTIONS} subscriptions are the most`
        const subscription: Found = {
            filter,
            qos,
            state: "new",
            handler,
            handlers: [handler],
        }
        const self = this
        return await this.ask(false, subscription, () => {
            self.session.subscribe(subscription, ds.millis())
            if (!self.session.up) self.answerAll(false, "queued", subscription)
        })
    }

    /** Ends every subscription with this filter and handler (all handlers when left out). */
    async unsubscribe(
        filter: string,
        handler?: (message: Publish) => ds.AsyncVoid,
    ): Promise<Outcome> {
        const found = this.find(filter, handler)
        const session = this.session
        const leave = (request: Request) => {
            session.unsubscribe(request.subscription, ds.millis())
        }
        for (const s of found) await this.ask(true, s, leave)
        return found.length ? "done" : "refused: not subscribed"
    }

    private find(
        filter: string,
        handler: (message: Publish) => ds.AsyncVoid,
    ): Subscription[] {
        const found: Subscription[] = []
        for (const s of this.session.subscriptions)
            if (
                s.filter === filter &&
                (!handler || (s as Found).handlers[0] === handler)
            )
                found.push(s)
        return found
    }

    /** Connects; harmless when it already does. */
    start() {
        this.wantsStart = true
        this.wake()
    }

    /** Says goodbye to the broker and stays away until `start()`. What is in the outbox stays there. */
    stop() {
        this.wantsStop = true
        this.wantsStart = false
        this.wake()
    }

    /** Makes the next attempt now, and forgets that the broker was overloaded. */
    retryNow() {
        this.wantsRetry = true
        this.wake()
    }

    /** Prints what goes over the wire on the console, as `?` lines, for the next `forMs` (0: no more). */
    logFor(forMs: number) {
        this.debugMs = forMs > 0 ? ds.millis() + forMs : 0
    }

    /** The connection's state by name: halted, noLink, holdOff, connecting, awaitingConnack, connected, disconnecting, or parked while the socket is lent out. */
    state(): string {
        return this.connection.state.name
    }

    /** Calls `handler` with the state's name after it has changed; of several changes in a row with the last. */
    onState(handler: (state: string) => ds.AsyncVoid) {
        this.listeners.push({ handlers: [handler], waits: false })
    }
}

/** What `subscribe` says of a subscription. */
function subscribed({ state, why }: Subscription): Outcome {
    switch (state) {
        case "live":
            return "granted"
        case "refused":
            return "refused: " + why
        case "dropped":
            return "refused: unsubscribed"
        case "unanswered":
            return "unanswered: asked again at the next connection"
        default:
            return "queued"
    }
}

/** The earlier of two due times, of which a negative one means never. */
function sooner(a: number, b: number): number {
    if (a < 0) return b
    return b < 0 || a < b ? a : b
}
