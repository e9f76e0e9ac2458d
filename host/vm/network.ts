// The network as a parameter: what a device's socket natives stand on.
import type { Clock } from "./clock"

/** What a socket tells its owner; never called from within `open` or a socket's method. */
export interface SocketEvents {
    /** The connection (with TLS: the handshake too) is up. */
    open(): void
    data(bytes: Uint8Array): void
    /** The last event of a socket that failed; `message` is what the native layer says. */
    error(message: string): void
    /** The last event of a socket the peer has closed. */
    close(): void
}

/** One outgoing connection. After `close` or `destroy` no event follows. */
export interface Socket {
    /** Sends bytes; returns 0, or the negative code the native would return. */
    write(bytes: Uint8Array): number
    /** Sends what is queued, then FIN. */
    close(): void
    /** Drops the connection at once (the device lost power). */
    destroy(): void
}

/** Where devices dial out to. */
export interface Network {
    /** False while there is no network at all: then dialling throws on the device. */
    isUp(): boolean
    /** Starts a connection; failures arrive as events, a throw stops the VM. */
    open(host: string, port: number, tls: boolean, events: SocketEvents): Socket
}

/** The ESP32 hands data to the program in pieces of at most this many bytes. */
export const MAX_CHUNK_BYTES = 1024

/** Calls `each` with consecutive pieces of at most MAX_CHUNK_BYTES. */
export function inChunks(bytes: Uint8Array, each: (piece: Uint8Array) => void) {
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
        each(bytes.subarray(at, at + MAX_CHUNK_BYTES))
}

/** The broker's end of a simulated connection. */
export interface Peer {
    write(bytes: Uint8Array): void
    /** Closes in order: the device gets what was written, then `close`. */
    end(): void
    /** Resets: the device gets `error`. */
    reset(message?: string): void
    onData: (bytes: Uint8Array) => void
    /** The device closed, reset or lost power. */
    onEnd: () => void
}

/** What answers at a simulated address. */
export type Listener = (peer: Peer) => void

/** A network in memory on any clock: listeners at host:port, one latency for every hop. */
export class SimNetwork implements Network {
    up = true
    private readonly listeners = new Map<string, Listener>()

    constructor(
        private readonly clock: Clock,
        private readonly latencyMs = 2,
    ) {}

    isUp() {
        return this.up
    }

    /** Accepts connections to host:port; undefined refuses them again. */
    listen(host: string, port: number, listener: Listener | undefined) {
        if (listener) this.listeners.set(`${host}:${port}`, listener)
        else this.listeners.delete(`${host}:${port}`)
    }

    open(
        host: string,
        port: number,
        _tls: boolean,
        events: SocketEvents,
    ): Socket {
        return new SimSocket(
            this.clock,
            this.latencyMs,
            () => this.listeners.get(`${host}:${port}`),
            events,
        )
    }
}

class SimSocket implements Socket {
    private peer: Peer | undefined
    private gone = false

    constructor(
        private readonly clock: Clock,
        private readonly latencyMs: number,
        find: () => Listener | undefined,
        private readonly events: SocketEvents,
    ) {
        this.later(() => {
            const listener = find()
            if (!listener) return this.fail("connect ECONNREFUSED")
            const peer: Peer = {
                write: bytes => {
                    const copy = bytes.slice()
                    this.later(() => inChunks(copy, p => this.events.data(p)))
                },
                end: () =>
                    this.later(() => {
                        this.gone = true
                        this.events.close()
                    }),
                reset: message => this.fail(message ?? "read ECONNRESET"),
                onData: () => {},
                onEnd: () => {},
            }
            this.peer = peer
            this.events.open()
            listener(peer)
        }, 2 * this.latencyMs)
    }

    private later(run: () => void, delayMs = this.latencyMs) {
        this.clock.setTimeout(() => {
            if (!this.gone) run()
        }, delayMs)
    }

    private fail(message: string) {
        this.later(() => {
            this.gone = true
            this.events.error(message)
        })
    }

    write(bytes: Uint8Array) {
        if (this.gone) return -10
        const copy = bytes.slice()
        this.clock.setTimeout(() => this.peer?.onData(copy), this.latencyMs)
        return 0
    }

    close() {
        if (this.gone) return
        this.gone = true
        this.clock.setTimeout(() => this.peer?.onEnd(), this.latencyMs)
    }

    destroy() {
        this.close()
    }
}
