// The faults, one small function each: `world.net.fault("broker:1883", refuse())` switches one on,
// `.off()` on the result switches it off. They add up in the order they were switched on.
// Percentages and jitter are drawn from the network's seed.
import type { Fault } from "./link"
import { HELD, LOST, type Piece, type WireFault } from "./wire"

// ---- dialling ----

/** RST to every SYN: nobody listens. */
export const refuse = (): WireFault => () => ({
    dial: () => ({ error: "connect ECONNREFUSED" }),
})

/** No route: an error after a while, as ARP gives up. */
export const unreachable =
    (afterMs = 3000): Fault =>
    () => ({ dial: () => ({ error: "connect EHOSTUNREACH", afterMs }) })

/** The name does not resolve. */
export const noSuchHost =
    (afterMs = 50): Fault =>
    link => ({
        dial: () => ({ error: `getaddrinfo ENOTFOUND ${link.host}`, afterMs }),
    })

/** SYNs vanish: no success, and no error for longer than a device waits. */
export const blackHole = (): Fault => () => ({ dial: () => "silence" })

/**
 * The peer takes the connection and says nothing in the TLS handshake: the ESP32's socket worker blocks in it for ever, and
 * later dials wait behind it. It ends when Wi-Fi goes or the chip resets.
 */
export const handshakeHangs = (): Fault => () => ({ blocks: () => true })

/** Only some dials fail, by another fault's rule. */
export const sometimes =
    (percent: number, fault: Fault): Fault =>
    link =>
        link.random.chance(percent) ? fault(link) : {}

// ---- the device's natives ----

/** `_socketOpen` throws `network not available`. Only for the address "*". */
export const noNetwork = (): Fault => () => ({ isUp: () => false })

/** The write native returns a code: -1 (queue full), -10 (no socket), -100 (not open). */
export const writeReturns =
    (code: number): Fault =>
    () => ({ write: () => code })

/** The open native fails, which the runtime swallows: `_socketOpen` returns 0 and nothing comes. */
export const openFails = (): Fault => () => ({ open: () => false })

/** The open native throws: the VM dies, as a chip that resets. */
export const openThrows =
    (message = "fault of the lab"): Fault =>
    () => ({
        open() {
            throw new Error(message)
        },
    })

/**
 * The CLOSE of a connection reaches the program late, when the next one is already open or dialling
 * (ESP32: the worker's queue outlives the socket).
 */
export const lateClose =
    (afterMs = 50): Fault =>
    link => ({
        closed: () =>
            link.after(afterMs, () => {
                const next = link.view.current
                if (next && next !== link) next.tellClosed()
            }),
    })

// ---- the way of the bytes ----

/** Slower: `ms` more one way, and up to `jitterMs` on top for every piece. */
export const latency =
    (ms: number, jitterMs = 0): WireFault =>
    wire => {
        const slow = (p: Piece) => [
            { ...p, delayMs: p.delayMs + ms + wire.random.below(jitterMs + 1) },
        ]
        return { toDevice: slow, toBroker: slow }
    }

/** Every write arrives in pieces of 1 to `maxBytes` bytes, drawn anew each time, 1 ms apart. */
export const split =
    (maxBytes = 8): WireFault =>
    wire => {
        const cut = (p: Piece) =>
            inPieces(p, () => 1 + wire.random.below(maxBytes), 1)
        return { toDevice: cut, toBroker: cut }
    }

/** A slow trickle to the device: one byte every `everyMs`. */
export const trickle =
    (everyMs: number): WireFault =>
    wire => {
        let freeMs = 0
        return {
            toDevice: p => {
                const nowMs = wire.nowMs()
                const startMs = Math.max(freeMs - nowMs, 0)
                const out = inPieces(
                    { ...p, delayMs: p.delayMs + startMs },
                    () => 1,
                    everyMs,
                )
                freeMs = nowMs + startMs + out.length * everyMs
                return out
            },
        }
    }

/** What the broker sends within `ms` arrives as one segment. */
export const coalesce =
    (ms: number): WireFault =>
    wire => {
        let waiting: Uint8Array[] | undefined
        return {
            toDevice: p => {
                if (!p.bytes) return [{ ...p, delayMs: p.delayMs + ms }]
                if (!waiting) {
                    const all: Uint8Array[] = (waiting = [])
                    wire.after(ms, () => {
                        waiting = undefined
                        wire.deliver(Buffer.concat(all))
                    })
                }
                waiting.push(p.bytes)
                return []
            },
        }
    }

// ---- silence ----

/** Half-open: what the broker sends is lost for good, the connection stays. */
export const swallowToDevice = (): WireFault => () => ({ toDevice: () => LOST })

/** Half-open: what the device sends is lost for good, the connection stays. */
export const swallowToBroker = (): WireFault => () => ({ toBroker: () => LOST })

/** Half-open both ways. */
export const swallow = (): WireFault => () => ({
    toDevice: () => LOST,
    toBroker: () => LOST,
})

/** Nothing passes and nothing is lost: new SYNs vanish, open connections go on where they were once it is off. */
export const partition = (): WireFault => () => ({
    dial: () => "silence",
    toDevice: () => HELD,
    toBroker: () => HELD,
})

// ---- load ----

/**
 * A broker that completes only so many connections a second, the first that came first, those that have
 * left meanwhile included. The others wait with TCP open and their CONNECT unread.
 * @param backlog connections that may wait; for one more: its `overflow`
 */
export const admitPerSecond = (
    perSecond: number,
    backlog = Infinity,
    overflow: "reset" | "silence" = "reset",
): WireFault => {
    let waiting = 0
    let freeMs = 0
    return wire => {
        // One that was there before is served.
        let admitted = true
        return {
            opened() {
                admitted = false
                if (waiting >= backlog) {
                    if (overflow === "reset") wire.cut("reset")
                    return
                }
                waiting++
                freeMs = Math.max(freeMs, wire.nowMs()) + 1000 / perSecond
                wire.after(freeMs - wire.nowMs(), () => {
                    waiting--
                    admitted = true
                    wire.release()
                })
            },
            toBroker: p => (admitted ? [p] : HELD),
        }
    }
}

// ---- ends ----

/** RST `ms` after the connection is open. */
export const resetAfter =
    (ms: number): WireFault =>
    wire => ({ opened: () => wire.after(ms, () => wire.cut("reset")) })

/** FIN `ms` after the connection is open. */
export const finAfter =
    (ms: number): WireFault =>
    wire => ({ opened: () => wire.after(ms, () => wire.cut("fin")) })

/** RST after this many bytes to the device: they arrive, the rest does not. */
export const resetAfterBytes = (bytes: number) => endAfterBytes(bytes, "reset")

/** FIN after this many bytes to the device. */
export const finAfterBytes = (bytes: number) => endAfterBytes(bytes, "fin")

const endAfterBytes =
    (bytes: number, end: "fin" | "reset"): WireFault =>
    wire => {
        let left = bytes
        return {
            toDevice: p => {
                if (!p.bytes) return [p]
                if (p.bytes.length < left) {
                    left -= p.bytes.length
                    return [p]
                }
                const last = { ...p, bytes: p.bytes.subarray(0, left) }
                left = 0
                wire.after(0, () => wire.cut(end))
                return last.bytes.length ? [last] : []
            },
        }
    }

/** RST once the broker has got this many bytes from the device. */
export const resetAfterBytesToBroker =
    (bytes: number): WireFault =>
    wire => {
        let left = bytes
        return {
            toBroker: p => {
                if (!p.bytes) return [p]
                const last = { ...p, bytes: p.bytes.subarray(0, left) }
                left -= last.bytes.length
                if (left === 0) wire.after(0, () => wire.cut("reset"))
                return last.bytes.length ? [last] : []
            },
        }
    }

function inPieces(p: Piece, size: () => number, everyMs: number): Piece[] {
    if (!p.bytes) return [p]
    const out: Piece[] = []
    for (let at = 0; at < p.bytes.length;) {
        const end = at + size()
        out.push({
            bytes: p.bytes.subarray(at, end),
            delayMs: p.delayMs + out.length * everyMs,
        })
        at = end
    }
    return out
}
