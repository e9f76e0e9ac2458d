// The device's one TCP or TLS socket: the four natives and nothing else.
//
// Why not `Socket` of @devicescript/net: its `connect()` throws an assertion when data or FIN
// come right after accept, an RST raises only onerror and a FIN only onclose, its emitters lose
// events that come in one turn, `recv()` never returns after one's own close, and `send` throws
// when the queue is merely full. Underneath, the natives are simple and sound.
import * as ds from "@devicescript/core"

/** What the runtime reports; `arg` is the bytes of "data" or the message of "error". */
export type SocketEvent = "open" | "close" | "data" | "error"

type Natives = typeof ds & {
    _socketOpen(host: string, port: number): number
    _socketClose(): number
    _socketWrite(buf: Buffer): number
    _socketOnEvent(event: SocketEvent, arg?: Buffer | string): ds.AsyncVoid
}
const natives = ds as Natives

/** Sends all socket events to `handler`, each on a fiber of its own. */
export function socketListen(
    handler: (event: SocketEvent, arg: Buffer | string) => ds.AsyncVoid,
) {
    natives._socketOnEvent = handler
}

/** Starts to connect; a negative port means TLS, to the native. Returns what went wrong, or undefined. */
export function socketOpen(
    host: string,
    port: number,
    tls: boolean,
): string | undefined {
    try {
        const code = natives._socketOpen(host, tls ? -port : port)
        return code === 0 ? undefined : `socket open returned ${code}`
    } catch (e) {
        return message(e)
    }
}

/** Queues bytes for sending; 0, or a negative code. */
export function socketWrite(bytes: Buffer): number {
    try {
        return natives._socketWrite(bytes)
    } catch (e) {
        return -1
    }
}

/** Closes the socket; harmless when there is none. */
export function socketClose() {
    try {
        natives._socketClose()
    } catch (e) {}
}

/**
 * Closes the socket and tells whoever listens that it is over. The fibers of @devicescript/net wait for ever otherwise; to
 * terminate one is a panic as soon as its emitter resumes it.
 */
export async function socketGiveUp() {
    socketClose()
    try {
        await natives._socketOnEvent("error", "given up")
    } catch (e) {}
}

function message(e: unknown): string {
    const text = (e as Error)?.message
    return text ? text : "unknown error"
}
