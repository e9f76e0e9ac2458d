// The MQTT connection of a device. The rules are in core and mqtt; here they meet the natives.
//
// Two kinds of fibers work on it, one at a time (`busy`): the supervisor, for what is due and what others (the application,
// Wi-Fi) post into its mailbox; and the one that a chunk from the socket comes on, unless something is before it.
import * as ds from "@devicescript/core"
import { AdaptiveBackoff } from "../core/adaptive"
import {
    Connection,
    type Decision,
    type Endpoint,
    type Explain,
    type Port,
} from "../core/connection"
import type { Policy } from "../core/policy"
import type { Random } from "../core/random"
import { Why, type Reason } from "../core/reason"
import { retry, slow, type Cause, type SocketFault } from "../core/verdict"
import { sizeOf } from "../mqtt/bytes"
import { publishPacket } from "../mqtt/encode"
import type { Publish } from "../mqtt/packets"
import {
    byBroker,
    hear,
    sendPacket,
    Session,
    type Reliable,
    type SessionOptions,
    type SessionPort,
    type Subscription,
    type SubscriptionState,
} from "../mqtt/session"
import {
    addCall,
    Handlers,
    isFull,
    messageBytes,
    runCalls,
    startCalls,
} from "./handlers"
import { deviceRandom } from "./random"
import {
    socketClose,
    socketListen,
    socketOpen,
    socketWrite,
    type SocketEvent,
} from "./socket"

/**
 * What became of a request: "sent" (handed to the socket), "queued" (waits for a connection), "accepted" (kept until the broker
 * acknowledges it), "granted" (by the broker), "done", "unanswered: ..." (asked again at the next connection), or "refused: why".
 */
export type Outcome = string

/** What a client is made of; index.ts makes it from the user's options. Parts that are left out are not carried by the program. */
export interface Parts extends Endpoint, SessionOptions {
    policy: Policy
    /** Draws what the policy asks for; without it adaptive and proportional. */
    strategies?: Strategies
    /** Most bytes of a QoS 0 message with its head. */
    maxMessageBytes: number
    /** Tells what happens; log.ts has the one that prints lines. */
    log?: Log
    /** Keeps messages while there is no connection; without it they are refused. */
    outbox?: Outbox0
    /** Looks at what the application gives, before anything is made of it. */
    checks?: Checks
    /** Reads what the runtime says of the socket's end. */
    explain?: Explain
    /** QoS 1 out; qos1.ts has the one there is. */
    qos1?: Qos1Port
    /** Watches the network; without it the network counts as up. */
    link?: LinkPart
}

/** Who is told what happens. */
export interface Log {
    /** As `Port.log`. */
    decision(
        client: Client,
        what: Decision,
        nowMs: number,
        cause: Cause | undefined,
        flag: boolean | undefined,
    ): void
    /** `counters.dropped` has grown. */
    drop(
        client: Client,
        what: string,
        topic: string | undefined,
        bytes: number | undefined,
        reason: string,
    ): void
}

/** Says what is wrong with an application's arguments, in words; "" or undefined when nothing is. */
export interface Checks {
    message(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
        hasQos1: boolean,
    ): string | undefined
    subscription(
        filter: string,
        handler: (message: Publish) => ds.AsyncVoid,
        qos: 0 | 1,
    ): string | undefined
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
    /** 0 (default), or 1 in a program that gives the client the option `qos1`. */
    qos?: 0 | 1
    /** Encoded properties of MQTT 5, without their length; left out where 3.1.1 is spoken. */
    properties?: Buffer
    /**
     * With QoS 1: called once with what became of an accepted message: "acknowledged" (the broker has it)
     * or "dropped: why" (the outbox was full; the broker closed on it each time).
     */
    settled?: (outcome: string) => ds.AsyncVoid
}

/** Messages that wait for a connection, as far as the client has to do with them. */
export interface Store {
    /** Called once, before anything else. */
    attach(client: Client): void
    /** Does what is due: sends, and gives up waiting. */
    tick(nowMs: number): void
    /** When `tick` is wanted, or -1 for never. */
    dueMs(): number
    /** Messages that wait. */
    entries(): number
}

/** Where QoS 0 messages wait. */
export interface Outbox0 extends Store {
    /** Takes a PUBLISH that could not be sent; says "queued" or "refused: why". */
    keep(packet: Buffer, properties: Buffer, nowMs: number): Outcome
}

/** QoS 1 out. */
export interface Qos1Port extends Reliable, Store {
    publish(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
    ): Outcome
    /** The device is about to reboot: writes to flash what it can, if it can. */
    save(): Promise<void>
    /** The connection is over; `byPeer` when the peer ended it, and not we or the network. */
    closed(byPeer: boolean): void
}

/** Makes a backoff for policies that ask for more than the client's own. */
export type Strategies = (policy: Policy, random: Random) => AdaptiveBackoff

/** Watches the network and tells the client's connection. */
export type LinkPart = (client: Client) => void

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

/** What the application asks the supervisor for. */
const enum Wish {
    stop = 1,
    start = 2,
    retry = 4,
}

/** Something for the supervisor to do. */
type Post = () => ds.AsyncVoid

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

/** What `publish` says when the outbox's rule is to keep what it has. */
export const OUTBOX_FULL = "refused: outbox full"

/** Between two looks at whether the broker has answered. */
const LOOK_MS = 10

/** The supervisor looks around at least this often. */
const MAX_SLEEP_MS = 60000

/** @devsWhenUsed */
export class Client {
    // The VM takes longest to find what isn't set: so what each message reads is set, if to undefined; the rest when it is needed.
    readonly session: Session
    readonly connection: Connection
    readonly handlers: Handlers
    /** The supervisor, or the socket's fiber in its place, is at work; it may be waiting in the midst of it. */
    busy = false
    /** What the socket says: events and their arguments by turns. What one that is closed still said is forgotten. */
    events: any[] = []
    work = 0
    /** Sees each packet and chunk, both ways. */
    wire: (way: string, bytes: Buffer) => void = undefined
    readonly counters: Counters = {
        connects: 0,
        losses: 0,
        published: 0,
        received: 0,
        dropped: 0,
        handlerErrors: 0,
    }
    /** Publishes in the millisecond `burstMs`. */
    burst = 0
    burstMs = 0
    readonly checks: Checks
    readonly qos1: Qos1Port
    readonly outbox: Outbox0
    mailbox: Post[] = []
    /** What `stop()` and `start()` ask for; in a row they come to at most one of each, in this order. */
    wants = 0
    monitor: Monitor = undefined
    /** How, set by who asks: a program that never stops carries no goodbye. */
    stopNow: (connection: Connection, nowMs: number) => void
    retriesNow: (connection: Connection, nowMs: number) => void
    fiber: ds.Fiber
    /** When the supervisor looks next by itself. */
    untilMs: number
    /** The dial has had no answer. */
    dialling = false
    /** The peer ended the connection that is being closed. */
    byPeer: boolean
    /** Chunks were dropped: this connection can't go on. */
    flooded: boolean
    /** How much of HANDLERS_MS is used up; nothing again once the handlers have caught up. */
    waitedMs: number
    /** Nothing that has waited is sent before. */
    drainMs: number
    /** Messages left that waited through the outage. */
    paced: number
    /** Told of each change of state. */
    onChange: () => void

    constructor(readonly parts: Parts) {
        const policy = parts.policy
        const strategies = parts.strategies
        const codec = parts.codec
        const checks = parts.checks
        const explain = parts.explain
        const qos1 = parts.qos1
        const outbox = parts.outbox
        const link = parts.link
        const effects = new Effects(this)
        this.handlers = new Handlers(this.counters)
        this.session = new Session(parts, effects, this.handlers.calls)
        const random = deviceRandom()
        const backoff = strategies
            ? strategies(policy, random)
            : new AdaptiveBackoff(policy, random)
        const connection = new Connection(parts, backoff, effects)
        this.connection = connection
        this.checks = checks
        this.qos1 = qos1
        this.outbox = outbox
        connection.reviewer = codec
        if (explain) connection.explain = explain
        if (qos1) qos1.attach(this)
        if (outbox) outbox.attach(this)
        const self = this
        socketClose() // what a crash left open
        this.listen()
        const run = async () => {
            self.fiber = ds.Fiber.self()
            while (true) await turn(self)
        }
        run.start()
        if (link) link(this)
        this.start()
    }

    /** Takes the device's one socket. */
    listen() {
        listener = this
        socketListen(socketSays)
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

    // ---- what the socket says ----

    /** Somebody else takes the socket: closes a dial that was given up, whose end we would not hear any more. */
    release() {
        if (!this.dialling) return
        socketClose()
        answered(this, "close")
    }

    // ---- publishing ----

    /** Nobody wants a connection. */
    isStopped(): boolean {
        return this.connection.state === "halted" && !(this.wants & Wish.start)
    }

    /** Before a message leaves that has waited: when the next may, if it waited through the outage. */
    pace(nowMs: number) {
        if (!this.paced) return
        this.paced--
        this.drainMs = nowMs + DRAIN_MS
    }

    /** Counts what is dropped, and says so. */
    dropped(
        what: string,
        topic: string | undefined,
        bytes: number | undefined,
        reason: string,
        count: number,
    ) {
        this.counters.dropped += count
        const log = this.parts.log
        if (log) log.drop(this, what, topic, bytes, reason)
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
        const checks = this.checks
        const qos1 = this.qos1
        const maxMessageBytes = this.parts.maxMessageBytes
        const fault = checks && checks.message(topic, payload, options, !!qos1)
        if (fault) return "refused: " + fault
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
        if (options && options.qos)
            return qos1
                ? qos1.publish(topic, payload, options)
                : "refused: no qos1"
        // Before it is copied: there may not be room for two of it. A character is at most four bytes.
        const most = (topic.length + payload.length + PUBLISH_HEAD_BYTES) << 2
        if (most > maxMessageBytes) {
            const bytes = sizeOf(topic) + sizeOf(payload) + PUBLISH_HEAD_BYTES
            if (bytes > maxMessageBytes)
                return `refused: ${bytes} bytes, at most ${maxMessageBytes}`
        }
        const retain = !!options && !!options.retain
        const packet = publishPacket(topic, payload, 0, retain, 0, false)
        const properties = options && options.properties
        return publishNow(this, packet, nowMs, properties)
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
        const session = this.session
        const checks = this.checks
        const fault = checks && checks.subscription(filter, handler, qos)
        if (fault) return "refused: " + fault
        const known = find(this, filter, handler)
        if (known) {
            // One that was refused after "queued" is asked for again, now.
            if (known.state !== "refused") return subscribed(known.state)
            session.forget(known)
        }
        if (session.subscriptions.length >= MAX_SUBSCRIPTIONS)
            return `refused: ${MAX_SUBSCRIPTIONS} subscriptions are the most`
        const s: Subscription = {
            topicFilter: filter,
            qos,
            state: "new",
            handlers: [handler],
            packetId: 0,
            dueMs: 0,
        }
        session.subscribe(s, ds.millis())
        this.wake()
        while (session.up && !s.settled) await ds.sleep(LOOK_MS)
        // Whoever was told "queued" counts on it; whoever is told "refused" does not.
        if (s.settled === "refused") session.forget(s)
        return subscribed(s.settled, s.why)
    }

    /** Ends every subscription with this filter and handler (all handlers when left out). */
    async unsubscribe(
        filter: string,
        handler?: (message: Publish) => ds.AsyncVoid,
    ): Promise<Outcome> {
        let outcome = "refused: not subscribed"
        while (true) {
            const s = find(this, filter, handler)
            if (s === undefined) return outcome
            outcome = "done"
            this.session.unsubscribe(s, ds.millis())
            this.wake()
            while (s.packetId) await ds.sleep(LOOK_MS)
        }
    }

    /** Connects; harmless when it already does. */
    start() {
        this.wants |= Wish.start
        this.wake()
    }

    /** Says goodbye to the broker and stays away until `start()`. What is in the outbox stays there. */
    stop() {
        this.wants = (this.wants & Wish.retry) | Wish.stop
        this.stopNow = stopNow
        this.wake()
    }

    /** Makes the next attempt now, and forgets that the broker was overloaded. */
    retryNow() {
        this.wants |= Wish.retry
        this.retriesNow = retriesNow
        this.wake()
    }

    /** Prints what goes over the wire on the console, as `?` lines, for the next `forMs` (0: no more). */
    logFor(forMs: number) {
        const self = this
        const untilMs = ds.millis() + forMs
        this.wire = (way, bytes) => {
            if (ds.millis() < untilMs)
                console.debug(
                    `mqtt ${way}: type ${bytes[0] >> 4}, ${bytes.length} B`,
                )
            else self.wire = undefined
        }
    }

    /** The connection's state by name: halted, noLink, holdOff, connecting, awaitingConnack, connected, disconnecting, or parked while the socket is lent out. */
    state(): string {
        return this.connection.state
    }

    /** Calls `handler` with the state's name after it has changed; of several changes in a row with the last. */
    onState(handler: (state: string) => ds.AsyncVoid) {
        const self = this
        const others = this.onChange
        let waits = false
        const tell = async () => {
            waits = false
            await handler(self.state())
        }
        const owner = { state: "", handlers: [tell] }
        this.onChange = () => {
            if (others) others()
            if (waits) return
            waits = true
            addCall(self.handlers, owner, undefined)
            startCalls(self.handlers)
        }
    }
}

/**
 * What connection and session do to the device. An object of its own with one field: on Client, to find a
 * method takes a comparison with every field.
 * @devsWhenUsed
 */
class Effects implements Port, SessionPort {
    constructor(private readonly client: Client) {}

    // ---- of the connection ----

    dial(): string | undefined {
        const client = this.client
        const monitor = client.monitor
        const { host, port, tls } = client.connection.endpoint
        const problem = socketOpen(host, port, tls)
        client.dialling = problem === undefined
        // A native that fails has answered, and what an earlier dial does can't be heard any more.
        if (monitor)
            if (client.dialling) monitor.nativeStarted(ds.millis(), 0)
            else monitor.nativeDone()
        return problem
    }

    connect(): string | undefined {
        const code = this.client.session.open(ds.millis())
        return code === 0 ? undefined : "socket write failed"
    }

    disconnect() {
        this.client.session.leave(ds.millis())
    }

    close() {
        closeSocket(this.client)
    }

    log(what: Decision, nowMs: number, cause?: Cause, flag?: boolean) {
        const client = this.client
        if (what === "lost") client.counters.losses++
        const log = client.parts.log
        if (log) log.decision(client, what, nowMs, cause, flag)
    }

    changed() {
        const onChange = this.client.onChange
        if (onChange) onChange()
    }

    // ---- of the session ----

    send(packet: Buffer): number {
        const client = this.client
        if (client.wire) client.wire("out", packet)
        const code = socketWrite(packet)
        if (code !== 0) heard(client, "native", "")
        return code
    }

    deliver(subscription: Subscription, message: Publish) {
        const client = this.client
        if (!addCall(client.handlers, subscription, message)) {
            const bytes = messageBytes(message)
            client.dropped("in", message.topic, bytes, "handlers too slow", 1)
        }
    }

    connack(code: number, sessionPresent: boolean) {
        const nowMs = ds.millis()
        const client = this.client
        const connection = client.connection
        if (code !== 0) {
            const verdict = client.session.codec.verdict(code, false)
            connection.broken(verdict, nowMs)
            return
        }
        client.counters.connects++
        startPacing(client, nowMs)
        connection.accepted(sessionPresent, nowMs)
    }

    dropped(
        what: string,
        topic: string,
        bytes: number | undefined,
        reason: string,
        count: number,
    ) {
        this.client.dropped(what, topic, bytes, reason, count)
    }

    /** Waiting cures no broken peer in a hurry: the slow lane, not the schedule. */
    violation(reason: Reason) {
        this.client.connection.broken(slow(reason), ds.millis())
    }

    dismissed(code: number) {
        const client = this.client
        const verdict = client.session.codec.verdict(code, true)
        client.byPeer = true
        client.connection.broken(verdict, ds.millis())
        client.byPeer = false
    }

    silent() {
        this.client.connection.socketFailed("timeout", "", ds.millis())
    }
}

function closeSocket(client: Client) {
    // A dial that is given up is listened to until the next: its end shows that the native isn't blocked.
    if (!client.dialling) socketClose()
    client.events = []
    if (client.flooded) client.flooded = false
    client.session.close()
    if (client.qos1) client.qos1.closed(client.byPeer)
}

/** A new connection: what waited through the outage goes at a pace. */
function startPacing(client: Client, nowMs: number) {
    const qos1 = client.qos1
    const outbox = client.outbox
    let waiting = 0
    if (qos1) waiting += qos1.entries()
    if (outbox) waiting += outbox.entries()
    client.paced = waiting
    client.drainMs = nowMs + DRAIN_MS
}

async function turn(client: Client) {
    if (client.busy) return await ds.sleep(1)
    client.busy = true
    client.work = WORK_PER_TURN
    try {
        // Input first: what has arrived may be the sign of life that a deadline waits for. Not what comes meanwhile: it would
        // never end where messages come as fast as their handlers.
        let n = client.events.length
        for (; n > 0 && client.events.length; n -= 2) await socketEvent(client)
        while (client.mailbox.length) {
            const post = client.mailbox[0]
            client.mailbox.insert(0, -1)
            await post()
            client.work -= WORK_OF_POST
            if (client.work <= 0) await breathe(client)
        }
        const nowMs = ds.millis()
        // Most turns are for a message: what is not due costs no call.
        if (client.wants) obey(client, nowMs)
        const dueMs = client.connection.dueMs
        if (dueMs >= 0 && nowMs >= dueMs) client.connection.tick(nowMs)
        client.session.tick(nowMs)
        if (client.qos1) client.qos1.tick(nowMs)
        if (client.outbox) client.outbox.tick(nowMs)
    } catch (e) {
        survive(client, e)
    }
    client.busy = false
    startCalls(client.handlers)
    const nowMs = ds.millis()
    const restMs = sleepMs(client, nowMs)
    client.untilMs = nowMs + restMs
    client.session.stirred = false
    if (client.monitor) client.monitor.beat(nowMs, nowMs + restMs)
    if (restMs > 0) await ds.suspend(restMs)
    else await ds.sleep(1)
}

/** Whom the socket's events are for. */
let listener: Client

/**
 * An event of the socket, on a fiber of its own. What has come is handled on it, and handlers run there: to wake other
 * fibers for a message costs more than all the rest of it. Anything else waits for the supervisor.
 */
async function socketSays(event: SocketEvent, arg: Buffer | string) {
    const client = listener
    // As `if`s, not with `||`, for which the VM takes more steps: this is for each message.
    let later = client.busy
    if (event !== "data") later = true
    if (client.events.length > 0) later = true
    if (later) {
        if (client.dialling) answered(client, event)
        heard(client, event, arg)
        return
    }
    client.busy = true
    const handlers = client.handlers
    let more = false
    try {
        if (client.wire) client.wire("in", arg as Buffer)
        more = hear(client.session, ds.millis(), arg as Buffer)
        if (more) {
            client.work = WORK_PER_TURN
            await takeMore(client)
        } else if (handlers.fiber) await waitForHandlers(client)
    } catch (e) {
        survive(client, e)
    }
    client.busy = false
    if (client.session.stirred) client.wake()
    // Handlers have the VM's whole allowance of steps. Not while busy: with a chunk in each millisecond the supervisor had no turn.
    if (more) await ds.sleep(0)
    await runCalls(handlers)
}

function stopNow(connection: Connection, nowMs: number) {
    connection.stop(nowMs)
}

function retriesNow(connection: Connection, nowMs: number) {
    connection.retryNow(nowMs)
}

/** Does what the application has asked for since the last turn. */
function obey(client: Client, nowMs: number) {
    const wants = client.wants
    const connection = client.connection
    client.wants = 0
    if (wants & Wish.stop) client.stopNow(connection, nowMs)
    if (wants & Wish.start) connection.start(nowMs)
    if (wants & Wish.retry) client.retriesNow(connection, nowMs)
}

/** A bug of ours must cost this connection, not the program. */
function survive(client: Client, e: unknown) {
    console.error(e as any)
    try {
        client.connection.broken(retry(Why.internalError), ds.millis())
        client.wake()
    } catch (again) {
        closeSocket(client)
    }
}

/** So much work has been done that the other fibers must run. */
async function breathe(client: Client) {
    client.work = WORK_PER_TURN
    await ds.sleep(1)
}

/** How long there is nothing to do; 0 when there is something now. */
function sleepMs(client: Client, nowMs: number): number {
    if (client.events.length || client.mailbox.length || client.wants) return 0
    let dueMs = sooner(client.connection.dueMs, client.session.dueMs())
    if (client.qos1) dueMs = sooner(dueMs, client.qos1.dueMs())
    if (client.outbox) dueMs = sooner(dueMs, client.outbox.dueMs())
    if (dueMs < 0 || dueMs - nowMs > MAX_SLEEP_MS) return MAX_SLEEP_MS
    return dueMs - nowMs
}

/** The native that dials has come back. */
function answered(client: Client, event: string) {
    client.dialling = false
    if (client.monitor) client.monitor.nativeDone()
    // To a dial that was given up.
    if (event === "open" && client.connection.state !== "connecting")
        socketClose()
}

/** Keeps an event for the supervisor; a peer that floods us ends the connection. */
function heard(client: Client, event: string, arg: Buffer | string) {
    const events = client.events
    if (event === "data" && events.length >= MAX_CHUNKS + MAX_CHUNKS) {
        if (client.flooded) return
        client.flooded = true
        client.dropped("chunk in", undefined, arg.length, "input too fast", 1)
        event = "flooded"
    }
    events.push(event)
    events.push(arg)
    client.wake()
}

async function socketEvent(client: Client) {
    const event = client.events[0]
    const arg = client.events[1]
    client.events.insert(0, -2)
    if (event === "data") {
        if (client.wire) client.wire("in", arg)
        const more = hear(client.session, ds.millis(), arg)
        if (more) await takeMore(client)
        else await waitForHandlers(client)
    } else if (event === "open") client.connection.opened(ds.millis())
    else if (event === "flooded")
        client.connection.broken(retry(Why.flooded), ds.millis())
    else socketFailed(client, event === "close" ? "closed" : event, arg + "")
    client.work -= WORK_OF_POST
    if (client.work <= 0) await breathe(client)
}

function socketFailed(client: Client, fault: SocketFault, text: string) {
    client.byPeer = fault !== "native"
    client.connection.socketFailed(fault, text, ds.millis())
    client.byPeer = false
}

/** Handles the rest of a chunk, once the handlers have room for it and for the next. */
async function takeMore(client: Client) {
    const session = client.session
    const cost = 1 + session.subscriptions.length
    let more = true
    while (more) {
        client.work -= cost
        if (client.work <= 0) await breathe(client)
        await waitForHandlers(client)
        more = hear(session, ds.millis())
    }
    await waitForHandlers(client)
}

/**
 * After a message, so that the next finds room: a burst waits a little for handlers that are merely behind, not for one
 * that is stuck.
 */
async function waitForHandlers(client: Client) {
    const handlers = client.handlers
    if (!isFull(handlers)) {
        if (client.waitedMs) client.waitedMs = 0
        return
    }
    startCalls(handlers)
    let waitedMs = client.waitedMs || 0
    while (
        isFull(handlers) &&
        waitedMs < HANDLERS_MS &&
        client.events.length < MAX_CHUNKS_WAITING + MAX_CHUNKS_WAITING
    ) {
        waitedMs++
        await ds.sleep(1)
    }
    client.waitedMs = isFull(handlers) ? waitedMs : 0
}

function publishNow(
    client: Client,
    packet: Buffer,
    nowMs: number,
    properties: Buffer,
): Outcome {
    const session = client.session
    const outbox = client.outbox
    const codec = session.codec
    // With a session up it is not stopped, and most codecs take everything: no calls for that.
    if (!session.up && client.isStopped()) return "refused: stopped"
    const fault = codec.refuses && codec.refuses(packet, properties)
    if (fault !== undefined) return "refused: " + fault
    if (session.up && (!outbox || outbox.entries() === 0))
        if (sendPacket(session, packet, nowMs, properties) === 0) {
            client.counters.published++
            return "sent"
        }
    return outbox ? outbox.keep(packet, properties, nowMs) : "refused: offline"
}

/** A subscription with this filter and handler (any, when left out) that is not dropped. */
function find(
    client: Client,
    filter: string,
    handler: (message: Publish) => ds.AsyncVoid,
): Subscription | undefined {
    for (const s of client.session.subscriptions)
        if (
            s.topicFilter === filter &&
            s.state !== "dropped" &&
            (!handler || s.handlers[0] === handler)
        )
            return s
    return undefined
}

/** What `subscribe` says of a subscription in this state. */
function subscribed(state: SubscriptionState, why?: string): Outcome {
    switch (state) {
        case "live":
            return "granted"
        case "refused":
            return "refused: " + byBroker(why)
        case "dropped":
            return "refused: unsubscribed"
        case "unanswered":
            return "unanswered: asked again at the next connection"
        default:
            return "queued"
    }
}

/** Wakes the supervisor unless it looks by then (never: -1) anyway. */
export function wakeBy(client: Client, dueMs: number) {
    if (dueMs >= 0 && dueMs < client.untilMs) client.wake()
}

/** The earlier of two due times, of which a negative one means never. */
export function sooner(a: number, b: number): number {
    if (a < 0) return b
    return b < 0 || a < b ? a : b
}
