// Node's sockets behind the Network interface.
import * as net from "node:net"
import * as tls from "node:tls"
import {
    inChunks,
    type Network,
    type Socket,
    type SocketEvents,
} from "./network"

/** Options of a RealNetwork. */
export interface RealNetworkOptions {
    /** PEM of the authorities that TLS connections trust; default: Node's own list. */
    ca?: string | Buffer
    /** The name a certificate must carry; default: the host dialled. */
    serverName?: string
}

/** Dials out for real. `up = false` drops every connection, as a lost Wi-Fi does. */
export class RealNetwork implements Network {
    private readonly sockets = new Set<RealSocket>()
    private isUpNow = true

    constructor(private readonly options: RealNetworkOptions = {}) {}

    isUp() {
        return this.isUpNow
    }

    set up(up: boolean) {
        this.isUpNow = up
        if (!up) for (const socket of this.sockets) socket.lose()
    }

    open(
        host: string,
        port: number,
        secure: boolean,
        events: SocketEvents,
    ): Socket {
        const node = secure
            ? tls.connect({
                  host,
                  port,
                  ca: this.options.ca,
                  // An address may not be sent as a server name [RFC 6066 section 3].
                  servername:
                      this.options.serverName ?? (net.isIP(host) ? "" : host),
              })
            : net.connect({ host, port })
        const socket = new RealSocket(node, secure, events, () =>
            this.sockets.delete(socket),
        )
        this.sockets.add(socket)
        return socket
    }
}

class RealSocket implements Socket {
    private gone = false

    constructor(
        private readonly node: net.Socket,
        private readonly secure: boolean,
        private readonly events: SocketEvents,
        private readonly onGone: () => void,
    ) {
        node.setNoDelay()
        // The ESP32 reports a TLS connection only once the handshake is done.
        node.once(secure ? "secureConnect" : "connect", () => {
            if (!this.gone) events.open()
        })
        node.on("data", bytes =>
            inChunks(bytes, piece => {
                if (!this.gone) events.data(piece)
            }),
        )
        node.on("error", e => this.finish(() => events.error(e.message)))
        node.on("close", () => this.finish(() => events.close()))
    }

    private finish(tell: () => void) {
        if (this.gone) return
        this.gone = true
        this.onGone()
        tell()
    }

    write(bytes: Uint8Array) {
        if (this.gone) return -10
        this.node.write(bytes)
        return 0
    }

    close() {
        this.finish(() => this.node.end())
    }

    destroy() {
        // Node can't reset a TLS socket: closing it is the nearest.
        this.finish(() =>
            this.secure ? this.node.destroy() : this.node.resetAndDestroy(),
        )
    }

    /** The link under the connection is gone: the device sees an error. */
    lose() {
        this.finish(() => {
            this.node.destroy()
            this.events.error("network is down")
        })
    }
}
