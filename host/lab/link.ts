// One connection of the lab's network, seen from the middle, and where faults may take hold of it.
// What TCP guarantees holds unless a fault says otherwise: bytes arrive once and in order. Faults are looked
// up for every byte, so switching one on hits connections already open.
import { inChunks, type Socket, type SocketEvents } from "../vm/network"
import type { NetworkView } from "./net"
import type { LabRandom } from "./random"

/** How a connection ends. */
export type Ending = "fin" | "reset"

/** What travels on a connection: bytes, or its end; `delayMs` comes on top of the latency. */
export interface Piece {
    bytes?: Uint8Array
    end?: Ending
    delayMs: number
}

/** A fault's answer for a piece: it waits until the fault is switched off. */
export const HELD: Piece[] = []
/** A fault's answer for a piece: it is gone, and so is all that follows in this direction. */
export const LOST: Piece[] = []

/** Where a fault may take hold of one connection. A hook left out changes nothing. */
export interface Hooks {
    /** False: `_socketOpen` throws `network not available` on the device. */
    isUp?(): boolean
    /** Runs inside the open native: a throw kills the VM; false makes the native fail unseen. */
    open?(): boolean | void
    /** The dial's fate: an error the device is told, or silence for ever; undefined: it goes on. */
    dial?(): { error: string; afterMs?: number } | "silence" | undefined
    /** TCP is up, as the device sees it. */
    opened?(): void
    /** The code the write native returns instead of sending. */
    write?(bytes: Uint8Array): number | undefined
    toDevice?(piece: Piece): Piece[]
    toBroker?(piece: Piece): Piece[]
    /** The device has closed its end. */
    closed?(): void
}

/** A kind of fault: makes the hooks for one connection, which may keep state there. */
export type Fault = (link: Link) => Hooks

/** A fault that is switched on. */
export interface ActiveFault {
    /** Switches it off; what it held is delivered. */
    off(): void
}

/** Whom a fault concerns: an address (`host:port`, `*` for all), and maybe only one device. */
export interface Rule {
    address: string
    device: string | undefined
    fault: Fault
    on: boolean
}

/** The broker's end of a connection. */
export interface Peer {
    /** The name of the device that dials. */
    readonly device: string
    readonly tls: boolean
    write(bytes: Uint8Array): void
    /** Closes in order: the device gets what was written, then `close`. */
    end(): void
    /** Resets: the device gets `error`. */
    reset(): void
    onData: (bytes: Uint8Array) => void
    /** The connection is over, by the device or by the network. */
    onEnd: (how: Ending) => void
}

/** What answers at an address. */
export type Listener = (peer: Peer) => void

/** Told of everything that the network does; for logs. */
export type Tap = (device: string, what: string, bytes?: Uint8Array) => void

/** One direction of a connection. */
interface Lane {
    /** Nothing passes any more. */
    dead: boolean
    held: Piece[]
    /** Nothing may arrive before what was sent earlier. */
    lastMs: number
}

const newLane = (): Lane => ({ dead: false, held: [], lastMs: 0 })

/** One connection, seen from the middle. */
export class Link implements Socket {
    readonly id: number
    readonly address: string
    private readonly toDevice = newLane()
    private readonly toBroker = newLane()
    private readonly made = new Map<Rule, Hooks>()
    private peer: Peer | undefined
    private ownRandom: LabRandom | undefined
    /** The device's end is open, or still dialling. */
    deviceOpen = true
    /** The broker's end is open. */
    brokerOpen = false

    constructor(
        readonly view: NetworkView,
        readonly host: string,
        readonly port: number,
        readonly tls: boolean,
        readonly events: SocketEvents,
    ) {
        this.address = `${host}:${port}`
        this.id = port ? ++view.dials : 0
    }

    /** Random numbers of this connection's own: what one meets does not depend on the others. */
    get random(): LabRandom {
        return (this.ownRandom ??= this.view.random.stream(`${this.id}`))
    }

    /** The hooks of all faults that concern this connection now. */
    hooks(): Hooks[] {
        return this.view.net
            .rulesFor(this.view.device, this.address)
            .map(rule => {
                let hooks = this.made.get(rule)
                if (!hooks) this.made.set(rule, (hooks = rule.fault(this)))
                return hooks
            })
    }

    after(delayMs: number, run: () => void) {
        this.view.net.clock.setTimeout(run, delayMs)
    }

    private say(what: string, bytes?: Uint8Array) {
        this.view.net.tap(this.view.device, `#${this.id} ${what}`, bytes)
    }

    // ---- dialling ----

    dial() {
        this.say(`dial ${this.tls ? "tls" : "tcp"} ${this.address}`)
        const rttMs = 2 * this.view.net.latencyMs
        for (const hooks of this.hooks()) {
            const fate = hooks.dial?.()
            if (fate === "silence") return
            if (fate) {
                const { error, afterMs = rttMs } = fate
                return this.after(afterMs, () => this.fail(error))
            }
        }
        this.after(this.view.net.latencyMs, () => {
            const listener = this.view.net.listener(this.address)
            if (!this.deviceOpen) return
            if (listener) this.accept(listener)
            else
                this.after(rttMs / 2, () =>
                    this.fail(`connect ECONNREFUSED ${this.address}`),
                )
        })
    }

    private accept(listener: Listener) {
        this.brokerOpen = true
        const peer: Peer = {
            device: this.view.device,
            tls: this.tls,
            write: bytes =>
                this.down({ bytes: Uint8Array.from(bytes), delayMs: 0 }),
            end: () => this.endByBroker("fin"),
            reset: () => this.endByBroker("reset"),
            onData: () => {},
            onEnd: () => {},
        }
        this.peer = peer
        this.later(this.toDevice, 0, () => {
            if (!this.deviceOpen) return
            this.say("open")
            this.events.open()
            for (const hooks of this.hooks()) hooks.opened?.()
        })
        listener(peer)
    }

    // ---- broker to device ----

    private endByBroker(end: Ending) {
        if (!this.brokerOpen) return
        this.brokerOpen = false
        this.forget()
        this.down({ end, delayMs: 0 })
    }

    private down(piece: Piece) {
        if (piece.bytes && !this.brokerOpen) return
        this.pass(this.toDevice, "toDevice", piece, p => this.reachDevice(p))
    }

    private reachDevice(piece: Piece) {
        if (!this.deviceOpen) {
            // A stack that is there and knows no such connection resets it.
            if (this.view.present && this.view.up && piece.bytes)
                this.after(this.view.net.latencyMs, () =>
                    this.reachBroker({ end: "reset", delayMs: 0 }),
                )
            return
        }
        if (piece.bytes) {
            this.say("<", piece.bytes)
            inChunks(piece.bytes, chunk => this.events.data(chunk))
        } else this.deviceEnded(piece.end!)
    }

    private deviceEnded(end: Ending) {
        this.deviceOpen = false
        this.forget()
        this.say(end === "fin" ? "closed by peer" : "reset by peer")
        if (end === "fin") this.events.close()
        else this.events.error("read ECONNRESET")
        // The device's own FIN; a reset needs none.
        if (end === "fin") this.up({ end: "fin", delayMs: 0 })
    }

    private fail(message: string) {
        if (!this.deviceOpen) return
        this.deviceOpen = false
        this.forget()
        this.say(`error ${message}`)
        this.events.error(message)
    }

    /** The network under the device's end is gone. */
    lose(message: string) {
        this.toBroker.dead = true
        this.fail(message)
    }

    // ---- device to broker ----

    write(bytes: Uint8Array): number {
        for (const hooks of this.hooks()) {
            const code = hooks.write?.(bytes)
            if (code === undefined) continue
            this.say(`write returned ${code}`)
            return code
        }
        if (!this.deviceOpen) return -10
        this.say(">", bytes)
        this.up({ bytes: Uint8Array.from(bytes), delayMs: 0 })
        return 0
    }

    close() {
        if (!this.deviceOpen) return
        this.deviceOpen = false
        this.say("close")
        this.up({ end: "fin", delayMs: 0 })
        this.forget()
        for (const hooks of this.hooks()) hooks.closed?.()
    }

    /** The device lost power: the broker hears nothing of it until it writes. */
    destroy() {
        if (!this.deviceOpen) return
        this.deviceOpen = false
        this.view.present = false
        this.say("gone")
        this.forget()
    }

    private up(piece: Piece) {
        this.pass(this.toBroker, "toBroker", piece, p => this.reachBroker(p))
    }

    private reachBroker(piece: Piece) {
        const peer = this.peer
        if (!peer) return
        if (piece.bytes) {
            if (this.brokerOpen) peer.onData(piece.bytes)
            return
        }
        if (this.brokerOpen) {
            this.brokerOpen = false
            this.forget()
            peer.onEnd(piece.end!)
        }
    }

    // ---- what faults do ----

    /** Ends the connection from the middle, both ways. */
    cut(end: Ending) {
        this.later(this.toDevice, 0, () => {
            if (this.deviceOpen) this.deviceEnded(end)
        })
        this.later(this.toBroker, 0, () =>
            this.reachBroker({ end, delayMs: 0 }),
        )
    }

    /** Brings bytes to the device past the faults, as one segment. */
    deliver(bytes: Uint8Array) {
        this.later(this.toDevice, 0, () =>
            this.reachDevice({ bytes, delayMs: 0 }),
        )
    }

    /** Delivers what was held, unless another fault still holds it. */
    release() {
        for (const [lane, way, to] of [
            [this.toDevice, "toDevice", (p: Piece) => this.reachDevice(p)],
            [this.toBroker, "toBroker", (p: Piece) => this.reachBroker(p)],
        ] as const) {
            const held = lane.held
            lane.held = []
            for (const piece of held) this.pass(lane, way, piece, to)
        }
    }

    private pass(
        lane: Lane,
        way: "toDevice" | "toBroker",
        piece: Piece,
        reach: (piece: Piece) => void,
    ) {
        if (lane.dead) return
        if (lane.held.length) {
            lane.held.push(piece)
            return
        }
        let pieces = [piece]
        for (const hooks of this.hooks()) {
            if (!hooks[way]) continue
            const out: Piece[] = []
            for (const p of pieces) {
                const result = hooks[way](p)
                if (result === HELD) {
                    lane.held.push(p)
                    continue
                }
                if (result === LOST) lane.dead = true
                out.push(...result)
            }
            pieces = out
        }
        for (const p of pieces) this.later(lane, p.delayMs, () => reach(p))
    }

    /** Runs once the latency and `delayMs` are over, but after all that was sent before. */
    private later(lane: Lane, delayMs: number, run: () => void) {
        const { clock, latencyMs } = this.view.net
        const nowMs = clock.nowMs()
        lane.lastMs = Math.max(lane.lastMs, nowMs + latencyMs + delayMs)
        clock.setTimeout(run, lane.lastMs - nowMs)
    }

    /** Drops what nobody needs any more. */
    private forget() {
        if (this.view.current === this && !this.deviceOpen)
            this.view.current = undefined
        if (!this.deviceOpen && !this.brokerOpen)
            this.view.net.links.delete(this)
    }
}
