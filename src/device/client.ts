// The MQTT connection of a device: one supervisor fiber owns the socket, and everything else
// (the application, the socket's callback, Wi-Fi) posts into its mailbox. The rules are in core
// and mqtt; here they meet the natives.
import * as ds from "@devicescript/core"
import { Backoff, type Policy } from "../core/backoff"
import { Connection, type Endpoint, type Port } from "../core/connection"
import {
    connackVerdict311,
    type SocketFault,
    type Verdict,
} from "../core/verdict"
import type { Line } from "../core/line"
import { publishPacket } from "../mqtt/encode"
import { Outbox } from "../mqtt/outbox"
import type { Publish } from "../mqtt/parser"
import {
    Session,
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

/** What became of a publish. */
export type Outcome =
    /** Handed to the socket. */
    | "sent"
    /** Waits in the outbox until there is a connection. */
    | "queued"
    /** Not accepted; the text after the colon says why. */
    | string

/** What a client is made of; index.ts makes it from the user's options. */
export interface ClientOptions {
    endpoint: Endpoint
    policy: Policy
    session: SessionOptions
    outboxEntries: number
    outboxBytes: number
    /** Watches the network; without it the network counts as up. */
    link?: (changed: LinkHandler) => void
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

type Post =
    | { on: "open" }
    | { on: "data"; chunk: Buffer }
    | { on: "close" }
    | { on: "error"; text: string }
    /** A native refused; says nothing about the broker. */
    | { on: "native"; text: string }
    | { on: "start" }
    | { on: "stop" }
    | { on: "retryNow" }
    | { on: "link"; change: LinkChange }
    | Request

/** Something a fiber asks of the supervisor and waits for. */
interface Request {
    on: "publish" | "subscribe" | "unsubscribe"
    packet: Buffer
    subscription: Subscription
    fiber: ds.Fiber
    outcome: Outcome
}

/** Packets handled before other fibers get a turn: the VM ends a program that never waits. */
const PACKETS_PER_TURN = 24

/** Chunks from the socket that may wait; more means the peer floods us. */
const MAX_CHUNKS = 12

/** Between two packets of a drained outbox: a returning fleet must not be a second herd. */
const DRAIN_MS = 50

/** At most one line for dropped messages in this time. */
const DROP_LINE_MS = 10000

/** The supervisor looks around at least this often. */
const MAX_SLEEP_MS = 60000

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
    private readonly backoff: Backoff
    private readonly outbox: Outbox
    private mailbox: Post[] = []
    private chunks = 0
    /** Chunks were dropped: this connection can't go on. */
    private flooded = false
    private waiting: Request[] = []
    private fiber: ds.Fiber
    private drainMs = 0
    private dropLineMs = -DROP_LINE_MS
    /** Debug lines are printed until then. */
    private debugMs = 0
    private stateHandlers: ((state: string) => ds.AsyncVoid)[] = []

    constructor(options: ClientOptions) {
        this.backoff = new Backoff(options.policy, deviceRandom())
        this.connection = new Connection(options.endpoint, this.backoff, this)
        this.session = new Session(options.session, this)
        this.outbox = new Outbox(options.outboxEntries, options.outboxBytes)
        this.handlers = new Handlers(this.counters)
        const self = this
        socketClose() // what a crash left open
        socketListen((event, arg) => {
            if (event === "data") self.postChunk(arg as Buffer)
            else if (event === "error") self.post({ on: event, text: arg + "" })
            else self.post({ on: event })
        })
        const run = async () => {
            self.fiber = ds.Fiber.self()
            while (true) await self.turn()
        }
        run.start()
        if (options.link)
            options.link(change => self.post({ on: "link", change }))
        this.post({ on: "start" })
    }

    // ---- the supervisor ----

    /** Posts something for the supervisor and wakes it. */
    post(post: Post) {
        this.mailbox.push(post)
        if (this.fiber && this.fiber.suspended) this.fiber.resume(undefined)
    }

    private postChunk(chunk: Buffer) {
        if (this.chunks < MAX_CHUNKS) {
            this.chunks++
            this.post({ on: "data", chunk })
        } else if (!this.flooded) {
            this.flooded = true
            this.post({ on: "native", text: "input faster than handled" })
        }
    }

    private async turn() {
        try {
            // Input first: what has arrived may be the sign of life that a deadline waits for.
            while (this.mailbox.length) await this.take(this.mailbox.shift())
            const nowMs = ds.millis()
            this.connection.handle({ on: "tick" }, nowMs)
            this.session.tick(nowMs)
            this.drainOutbox(nowMs)
        } catch (e) {
            // A bug of ours must cost this connection, not the program.
            console.error(e as any)
            this.fail("internal error")
        }
        const sleepMs = this.sleepMs(ds.millis())
        if (sleepMs > 0 && !this.mailbox.length) await ds.suspend(sleepMs)
        else await ds.sleep(1)
    }

    private async take(post: Post) {
        const nowMs = ds.millis()
        switch (post.on) {
            case "data":
                return await this.takeChunk(post.chunk)
            case "open":
                this.connection.handle({ on: "opened" }, nowMs)
                return
            case "close":
                this.socketFault("closed", "", nowMs)
                return
            case "error":
                this.socketFault("error", post.text, nowMs)
                return
            case "native":
                this.socketFault("native", post.text, nowMs)
                return
            case "link":
                this.linkChanged(post.change, nowMs)
                return
            case "publish":
                this.takePublish(post, nowMs)
                return
            case "subscribe":
                this.waiting.push(post)
                this.session.subscribe(post.subscription, nowMs)
                return
            case "unsubscribe":
                this.waiting.push(post)
                this.session.unsubscribe(post.subscription, nowMs)
                return
            default:
                this.connection.handle(post, nowMs)
        }
    }

    private async takeChunk(chunk: Buffer) {
        this.chunks--
        const name = this.connection.state.name
        if (name !== "awaitingConnack" && name !== "connected") return
        if (this.debugMs > 0) this.debug("in", chunk[0] >> 4, chunk.length)
        this.session.push(chunk, ds.millis())
        let budget = PACKETS_PER_TURN
        while (this.session.next(ds.millis())) {
            if (--budget > 0) continue
            await ds.sleep(1)
            budget = PACKETS_PER_TURN
        }
    }

    private socketFault(fault: SocketFault, text: string, nowMs: number) {
        this.connection.handle({ on: "socket", fault, text }, nowMs)
    }

    private fail(reason: string) {
        const verdict: Verdict = { lane: "retry", evidence: "refused", reason }
        this.connection.handle({ on: "broken", verdict }, ds.millis())
    }

    private linkChanged(change: LinkChange, nowMs: number) {
        if (change !== "up") this.connection.handle({ on: "linkDown" }, nowMs)
        if (change !== "down") this.connection.handle({ on: "linkUp" }, nowMs)
    }

    private sleepMs(nowMs: number): number {
        let dueMs = this.connection.dueMs()
        dueMs = sooner(dueMs, this.session.dueMs())
        if (this.session.up && this.outbox.entries() > 0)
            dueMs = sooner(dueMs, this.drainMs)
        if (dueMs < 0 || dueMs - nowMs > MAX_SLEEP_MS) return MAX_SLEEP_MS
        return dueMs - nowMs
    }

    // ---- publishing ----

    private takePublish(request: Request, nowMs: number) {
        const { packet } = request
        if (this.connection.state.name === "halted")
            return this.answer(request, "refused: stopped")
        if (this.session.up && this.outbox.entries() === 0) {
            const code = this.session.send(packet, nowMs)
            if (code === 0) this.counters.published++
            return this.answer(
                request,
                code === 0 ? "sent" : `dropped: socket said ${code}`,
            )
        }
        const dropped = this.outbox.push(packet)
        if (dropped > 0) this.dropped("oldest in outbox", "", 0, dropped)
        this.answer(request, "queued")
    }

    private drainOutbox(nowMs: number) {
        if (!this.session.up || nowMs < this.drainMs) return
        const packet = this.outbox.shift()
        if (packet === undefined) return
        this.drainMs = nowMs + DRAIN_MS
        if (this.session.send(packet, nowMs) === 0) this.counters.published++
        else this.dropped("outbox entry", "", packet.length, 1)
    }

    /** Waits for the supervisor's answer to a request. */
    private async ask(
        on: "publish" | "subscribe" | "unsubscribe",
        packet: Buffer,
        subscription: Subscription,
    ): Promise<Outcome> {
        const request: Request = {
            on,
            packet,
            subscription,
            fiber: ds.Fiber.self(),
            outcome: "",
        }
        this.post(request)
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

    private answerFor(subscription: Subscription, on: string, outcome: string) {
        const waiting = this.waiting
        this.waiting = []
        for (const request of waiting)
            if (request.subscription === subscription && request.on === on)
                this.answer(request, outcome)
            else this.waiting.push(request)
    }

    private debug(way: string, type: number, bytes: number) {
        if (ds.millis() < this.debugMs)
            console.debug(`mqtt ${way}: type ${type}, ${bytes} B`)
        else this.debugMs = 0
    }

    /** Counts dropped messages and says so, not too often. */
    private dropped(what: string, topic: string, bytes: number, count: number) {
        this.counters.dropped += count
        const nowMs = ds.millis()
        if (nowMs < this.dropLineMs + DROP_LINE_MS) return
        this.dropLineMs = nowMs
        const dropped = this.counters.dropped
        log({ ev: "drop", what, topic, bytes, reason: "full", dropped })
    }

    // ---- Port: the connection's effects ----

    dial(): string | undefined {
        const { host, port, tls } = this.connection.endpoint
        return socketOpen(host, port, tls)
    }

    connect(): string | undefined {
        const code = this.session.open(ds.millis())
        return code === 0 ? undefined : `socket write returned ${code}`
    }

    disconnect() {
        this.session.leave(ds.millis())
    }

    close() {
        socketClose()
        this.session.close()
        // What the old socket still has in the mailbox is no news of the next one.
        const mailbox = this.mailbox
        this.mailbox = []
        this.chunks = 0
        this.flooded = false
        for (const post of mailbox)
            if (!isSocketPost(post)) this.mailbox.push(post)
    }

    log(line: Line) {
        if (line.ev === "lost") this.counters.losses++
        log(line)
    }

    changed() {
        const name = this.connection.state.name
        for (const handler of this.stateHandlers)
            this.handlers.add(handler, name, 0)
    }

    // ---- SessionPort: the session's effects ----

    send(packet: Buffer): number {
        if (this.debugMs > 0) this.debug("out", packet[0] >> 4, packet.length)
        const code = socketWrite(packet)
        if (code !== 0)
            this.post({ on: "native", text: `socket write returned ${code}` })
        return code
    }

    connack(code: number, sessionPresent: boolean) {
        const nowMs = ds.millis()
        if (code === 0) {
            this.counters.connects++
            this.drainMs = nowMs + DRAIN_MS
            this.connection.handle({ on: "accepted", sessionPresent }, nowMs)
            return
        }
        const verdict = connackVerdict311(code)
        this.connection.handle({ on: "broken", verdict }, nowMs)
    }

    deliver(subscription: Subscription, message: Publish) {
        const bytes = message.payload.length + message.topic.length
        if (this.handlers.add(subscription.handler, message, bytes))
            this.counters.received++
        else this.dropped("message in", message.topic, bytes, 1)
    }

    skipped(topic: string, packetBytes: number) {
        this.counters.dropped++
        const dropped = this.counters.dropped
        const reason = "larger than the packet limit"
        log({
            ev: "drop",
            what: "message in",
            topic,
            bytes: packetBytes,
            reason,
            dropped,
        })
    }

    violation(clause: string, reason: string) {
        const verdict: Verdict = {
            lane: "overload",
            evidence: "reset",
            reason: `${clause} ${reason}`,
        }
        this.connection.handle({ on: "broken", verdict }, ds.millis())
    }

    silent() {
        this.connection.handle(
            { on: "socket", fault: "timeout", text: "" },
            ds.millis(),
        )
    }

    settled(subscription: Subscription) {
        const { state } = subscription
        this.answerFor(
            subscription,
            "subscribe",
            state === "live"
                ? "granted"
                : state === "refused"
                  ? "refused: by the broker"
                  : state === "dropped"
                    ? "refused: unsubscribed"
                    : "refused: no answer in time",
        )
    }

    unsubscribed(subscription: Subscription) {
        this.answerFor(subscription, "unsubscribe", "done")
    }

    // ---- the application's side ----

    /**
     * Publishes a message with QoS 0.
     * @param topic a topic name, without wildcards
     * @param payload text or bytes
     * @param retain whether the broker keeps it for later subscribers
     * @returns "sent", "queued", "dropped: why" or "refused: why"; never throws
     */
    async publish(
        topic: string,
        payload: string | Buffer,
        retain = false,
    ): Promise<Outcome> {
        if (typeof topic !== "string") return "refused: topic is not text"
        if (typeof payload !== "string" && !(payload instanceof Buffer))
            return "refused: payload is neither text nor a Buffer"
        const fault = checkTopicName(topic)
        if (fault !== undefined) return "refused: topic " + fault
        const packet = publishPacket(topic, payload, 0, retain, 0, false)
        const { maxBytes } = this.outbox
        if (packet.length > maxBytes)
            return `refused: ${packet.length} bytes, at most ${maxBytes}`
        return await this.ask("publish", packet, undefined)
    }

    /**
     * Subscribes a handler to a topic filter; at every reconnect it is subscribed again.
     * Waits for the broker's answer, or for the connection if there is none.
     * @returns "granted" or "refused: why"; never throws
     */
    async subscribe(
        filter: string,
        handler: (message: Publish) => ds.AsyncVoid,
        qos: 0 | 1 = 0,
    ): Promise<Outcome> {
        if (typeof filter !== "string") return "refused: filter is not text"
        if (qos !== 0 && qos !== 1) return "refused: qos must be 0 or 1"
        const fault = checkTopicFilter(filter)
        if (fault !== undefined) return "refused: filter " + fault
        const subscription: Subscription = {
            filter,
            qos,
            state: "new",
            handler,
        }
        return await this.ask("subscribe", undefined, subscription)
    }

    /** Ends every subscription with this filter and handler (all handlers when left out). */
    async unsubscribe(
        filter: string,
        handler?: (message: Publish) => ds.AsyncVoid,
    ): Promise<Outcome> {
        const found: Subscription[] = []
        for (const s of this.session.subscriptions)
            if (s.filter === filter && (!handler || s.handler === handler))
                found.push(s)
        for (const s of found) await this.ask("unsubscribe", undefined, s)
        return found.length ? "done" : "refused: not subscribed"
    }

    /** Connects; harmless when it already does. */
    start() {
        this.post({ on: "start" })
    }

    /** Says goodbye to the broker and stays away until `start()`. */
    stop() {
        this.post({ on: "stop" })
    }

    /** Makes the next attempt now and starts the backoff anew. */
    retryNow() {
        this.post({ on: "retryNow" })
    }

    /** Prints what goes over the wire on the console, as `?` lines, for the next `forMs` (0: no more). */
    logFor(forMs: number) {
        this.debugMs = forMs > 0 ? ds.millis() + forMs : 0
    }

    /** The connection's state by name: halted, noLink, holdOff, connecting, awaitingConnack, connected or disconnecting. */
    state(): string {
        return this.connection.state.name
    }

    /** Calls `handler` with the state's name at every change. */
    onState(handler: (state: string) => ds.AsyncVoid) {
        this.stateHandlers.push(handler)
    }
}

function isSocketPost(post: Post): boolean {
    switch (post.on) {
        case "open":
        case "data":
        case "close":
        case "error":
        case "native":
            return true
        default:
            return false
    }
}

/** The earlier of two due times, of which a negative one means never. */
function sooner(a: number, b: number): number {
    if (a < 0) return b
    return b < 0 || a < b ? a : b
}
