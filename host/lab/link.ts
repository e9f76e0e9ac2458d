// One connection of the lab's network, seen from the middle, and where faults may take hold of it.
// What TCP guarantees holds unless a fault says otherwise: bytes arrive once and in order. Faults are looked
// up for every byte, so switching one on hits connections already open.
import { inChunks, type Socket, type SocketEvents } from "../vm/network"
import type { NetworkView } from "./net"
import type { LabRandom } from "./random"
import {
    Lane,
    type Ending,
    type Piece,
    type Wire,
    type WireHooks,
} from "./wire"

/** Where a fault may take hold of a connection of the lab: the device's natives are there too. */
export interface Hooks extends WireHooks {
    /** False: `_socketOpen` throws `network not available` on the device. */
    isUp?(): boolean
    /** Runs inside the open native: a throw kills the VM; false makes the native fail unseen. */
    open?(): boolean | void
    /** The device's worker never comes back from this dial, and later ones wait behind it. */
    blocks?(): boolean
    /** The code the write native returns instead of sending. */
    write?(bytes: Uint8Array): number | undefined
    /** The device has closed its end. */
    closed?(): void
}

/** A kind of fault of the lab's connections; every WireFault is one. */
export type Fault = (link: Link) => Hooks

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

/**
 * A stack gives up a SYN that nobody answers, and says so, if the program still listens. lwIP does after some 18 s for each address;
 * here it is a little more than a device waits by default, so that the waiting is what one sees.
 */
const SYN_MS = 30_500

/** One connection, seen from the middle. */
export class Link implements Socket, Wire {
    readonly id: number
    readonly address: string
    private readonly toDevice: Lane
    private readonly toBroker: Lane
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
        const { net } = view
        const lane = (
            way: "toDevice" | "toBroker",
            reach: (piece: Piece) => void,
        ) =>
            new Lane(
                way,
                net.clock,
                () => net.latencyMs,
                () => this.hooks(),
                reach,
            )
        this.toDevice = lane("toDevice", p => this.reachDevice(p))
        this.toBroker = lane("toBroker", p => this.reachBroker(p))
    }

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

    nowMs() {
        return this.view.net.clock.nowMs()
    }

    after(delayMs: number, run: () => void) {
        this.view.net.clock.setTimeout(run, delayMs)
    }

    private say(what: string, bytes?: Uint8Array) {
        this.view.net.tap(this.view.device, `#${this.id} ${what}`, bytes)
    }

    /** The program hears that this connection is closed, which it is not. */
    tellClosed() {
        this.say("told closed")
        this.events.close()
    }

    // ---- dialling ----

    dial() {
        this.say(`dial ${this.tls ? "tls" : "tcp"} ${this.address}`)
        if (this.view.blocked) return
        const rttMs = 2 * this.view.net.latencyMs
        for (const hooks of this.hooks()) {
            if (hooks.blocks?.()) {
                this.view.blocked = true
                return
            }
            const fate = hooks.dial?.()
            if (fate === "silence")
                return this.after(SYN_MS, () =>
                    this.fail(`connect ETIMEDOUT ${this.address}`),
                )
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
        this.toDevice.later(0, () => {
            if (!this.deviceOpen) return
            this.say("open")
            // First the faults: the device may write within the event.
            for (const hooks of this.hooks()) hooks.opened?.()
            this.events.open()
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
        this.toDevice.pass(piece)
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
        this.toBroker.pass(piece)
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

    cut(end: Ending) {
        this.toDevice.deliver({ end, delayMs: 0 })
        this.toBroker.deliver({ end, delayMs: 0 })
    }

    deliver(bytes: Uint8Array) {
        this.toDevice.deliver({ bytes, delayMs: 0 })
    }

    release() {
        this.toDevice.release()
        this.toBroker.release()
    }

    /** Drops what nobody needs any more. */
    private forget() {
        if (this.view.current === this && !this.deviceOpen)
            this.view.current = undefined
        if (!this.deviceOpen && !this.brokerOpen)
            this.view.net.links.delete(this)
    }
}
