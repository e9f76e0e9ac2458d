// The network as a parameter: what a device's socket natives stand on.

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
    /**
     * Starts a connection; failures arrive as events, a throw stops the VM. `noSocket`: the native
     * itself failed, which the runtime keeps from the program.
     */
    open(host: string, port: number, tls: boolean, events: SocketEvents): Socket
}

/** The ESP32 hands data to the program in pieces of at most this many bytes. */
export const MAX_CHUNK_BYTES = 1024

/** Calls `each` with consecutive pieces of at most MAX_CHUNK_BYTES. */
export function inChunks(bytes: Uint8Array, each: (piece: Uint8Array) => void) {
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
        each(bytes.subarray(at, at + MAX_CHUNK_BYTES))
}

/** What `open` returns when the native could not even begin. */
export const noSocket: Socket = {
    write: () => -10,
    close() {},
    destroy() {},
}

/** No network at all: what a VM needs that only runs a program. */
export const noNetwork: Network = {
    isUp: () => false,
    open: () => noSocket,
}
