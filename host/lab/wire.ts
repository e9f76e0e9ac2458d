// The way of the bytes between a device and a broker, and where faults may take hold of it. The lab's
// connections (link.ts) and those of the proxy before a real broker (fault-proxy.ts) are both made of this, so
// that one fault is one function in both.
import type { Clock } from "../vm/clock"
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
export interface WireHooks {
    /** The dial's fate: an error the device is told, or silence for ever; undefined: it goes on. */
    dial?(): { error: string; afterMs?: number } | "silence" | undefined
    /** TCP is up, as the device sees it. */
    opened?(): void
    toDevice?(piece: Piece): Piece[]
    toBroker?(piece: Piece): Piece[]
}

/** One connection, as faults see it. */
export interface Wire {
    /** Random numbers of its own: what one connection meets does not depend on the others. */
    readonly random: LabRandom
    nowMs(): number
    after(delayMs: number, run: () => void): void
    /** Ends the connection from the middle, both ways. */
    cut(end: Ending): void
    /** Brings bytes to the device past the faults, as one segment. */
    deliver(bytes: Uint8Array): void
    /** Delivers what was held, unless a fault still holds it. */
    release(): void
}

/** A kind of fault that any connection can meet: makes the hooks for one, which may keep state there. */
export type WireFault = (wire: Wire) => WireHooks

/** A fault that is switched on. */
export interface ActiveFault {
    /** Switches it off; what it held is delivered. */
    off(): void
}

/** One direction of a connection. Nothing overtakes what was sent before it. */
export class Lane {
    /** Nothing passes any more. */
    dead = false
    private held: Piece[] = []
    private readonly underWay: (() => void)[] = []
    private lastMs = 0

    constructor(
        private readonly way: "toDevice" | "toBroker",
        private readonly clock: Clock,
        private readonly latencyMs: () => number,
        /** The hooks that concern the connection now. */
        private readonly hooks: () => WireHooks[],
        private readonly reach: (piece: Piece) => void,
    ) {}

    /** Sends a piece through all faults. */
    pass(piece: Piece) {
        if (this.dead) return
        if (this.held.length) {
            this.held.push(piece)
            return
        }
        let pieces = [piece]
        for (const hooks of this.hooks()) {
            const hook = hooks[this.way]
            if (!hook) continue
            const out: Piece[] = []
            for (const p of pieces) {
                const result = hook(p)
                if (result === HELD) {
                    this.held.push(p)
                    continue
                }
                if (result === LOST) this.dead = true
                // One by one: a giant that trickles is more pieces than a call may have arguments.
                for (const piece of result) out.push(piece)
            }
            pieces = out
        }
        for (const p of pieces) this.later(p.delayMs, () => this.reach(p))
    }

    /** Brings a piece to the end past the faults. */
    deliver(piece: Piece) {
        this.later(piece.delayMs, () => this.reach(piece))
    }

    release() {
        const held = this.held
        this.held = []
        for (const piece of held) this.pass(piece)
    }

    /** Runs once the latency and `delayMs` are over, but after all that was sent before. */
    later(delayMs: number, run: () => void) {
        const nowMs = this.clock.nowMs()
        this.lastMs = Math.max(this.lastMs, nowMs + this.latencyMs() + delayMs)
        // Each timer brings the one that is first: Node's own timers may swap places within a millisecond.
        this.underWay.push(run)
        this.clock.setTimeout(
            () => this.underWay.shift()!(),
            this.lastMs - nowMs,
        )
    }
}
