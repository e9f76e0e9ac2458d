// The broker of `npm start`: an embedded one that can be taken away and brought back, or an
// outside one that the device can be cut off from. Only loopback is listened on.
import {
    createServer,
    type AddressInfo,
    type Server,
    type Socket,
} from "node:net"
import { Aedes } from "aedes"
import type { Clock } from "../vm/clock"
import type {
    Network,
    Socket as DeviceSocket,
    SocketEvents,
} from "../vm/network"
import type { HostLine } from "./event"
import type { Queue } from "./queue"

/** A broker that can go away. */
export interface Broker {
    readonly host: string
    readonly port: number
    readonly isUp: boolean
    down(): Promise<void>
    /** Throws when the port is taken. */
    up(): Promise<void>
}

/** What opening a connection gives. */
type Opened = ReturnType<Network["open"]>

const LOOPBACK = "127.0.0.1"

/** The longest payload shown, in characters. */
const MAX_TEXT = 200

/** aedes in this process. Like a broker that was restarted, it forgets everything while down. */
export class EmbeddedBroker implements Broker {
    readonly host = LOOPBACK
    port = 0
    private server: Server | undefined
    private aedes: Aedes | undefined
    private readonly sockets = new Set<Socket>()

    /** @param queue where connections wait for their turn; default: none waits */
    constructor(
        private readonly tell: (line: HostLine) => void,
        private readonly queue?: Queue,
    ) {}

    get isUp() {
        return this.server !== undefined
    }

    async up() {
        if (this.server) return
        const aedes = await Aedes.createBroker()
        const server = createServer(socket => {
            this.sockets.add(socket)
            socket.on("error", () => {})
            socket.on("close", () => this.sockets.delete(socket))
            const serve = () => aedes.handle(socket)
            if (this.queue) this.queue.join(serve)
            else serve()
        })
        await new Promise<void>((done, failed) => {
            server.once("error", failed)
            // The free port of the first time is kept: the device knows no other.
            server.listen(this.port, this.host, done)
        })
        this.server = server
        this.aedes = aedes
        this.port = (server.address() as AddressInfo).port
        this.listenTo(aedes)
        this.tell({ ev: "broker", up: true, host: this.host, port: this.port })
    }

    private listenTo(aedes: Aedes) {
        const tell = (line: HostLine) => {
            if (aedes === this.aedes) this.tell(line)
        }
        aedes.on("clientReady", ({ id }) =>
            tell({ ev: "client", id, up: true }),
        )
        aedes.on("clientDisconnect", ({ id }) =>
            tell({ ev: "client", id, up: false }),
        )
        aedes.on("publish", ({ topic, payload, retain }) => {
            // The broker's own messages.
            if (topic.startsWith("$SYS/")) return
            const text = payload.toString().slice(0, MAX_TEXT)
            const bytes = Buffer.byteLength(payload)
            tell({ ev: "publish", topic, text, bytes, retain })
        })
    }

    async down() {
        const { server, aedes } = this
        if (!server || !aedes) return
        this.server = undefined
        this.aedes = undefined
        this.tell({ ev: "broker", up: false, host: this.host, port: this.port })
        this.queue?.clear()
        for (const socket of this.sockets) socket.destroy()
        await new Promise<void>(done => server.close(() => done()))
        await new Promise<void>(done => aedes.close(() => done()))
    }
}

/**
 * The way to a broker that somebody else runs: `down` ends the device's connections and refuses
 * new ones, as if nobody listened there.
 */
export class OutsideBroker implements Broker {
    isUp = true
    /** Ends a connection that is open. */
    private readonly cuts = new Set<() => void>()

    constructor(
        readonly host: string,
        readonly port: number,
        private readonly clock: Clock,
        private readonly tell: (line: HostLine) => void,
    ) {}

    async up() {
        this.isUp = true
        this.tell({ ev: "broker", up: true, host: this.host, port: this.port })
    }

    async down() {
        this.isUp = false
        this.tell({ ev: "broker", up: false, host: this.host, port: this.port })
        for (const cut of this.cuts) cut()
    }

    /** The network the device has to dial through. */
    through(network: Network): Network {
        return {
            isUp: () => network.isUp(),
            open: (host, port, tls, events) =>
                this.isUp
                    ? this.watched(events, watched =>
                          network.open(host, port, tls, watched),
                      )
                    : this.refused(events),
        }
    }

    private watched(
        events: SocketEvents,
        open: (events: SocketEvents) => Opened,
    ): Opened {
        const gone = () => this.cuts.delete(cut)
        const socket = open({
            ...events,
            error: message => {
                gone()
                events.error(message)
            },
            close: () => {
                gone()
                events.close()
            },
        })
        if (!socket) return socket
        const cut = () => {
            gone()
            socket.destroy()
            events.close()
        }
        this.cuts.add(cut)
        return {
            write: bytes => socket.write(bytes),
            close: () => {
                gone()
                socket.close()
            },
            destroy: () => {
                gone()
                socket.destroy()
            },
        }
    }

    private refused(events: SocketEvents): DeviceSocket {
        const timer = this.clock.setTimeout(
            () => events.error("connect ECONNREFUSED"),
            1,
        )
        const end = () => this.clock.clearTimeout(timer)
        return { write: () => -10, close: end, destroy: end }
    }
}
