// A TCP proxy on loopback before a real broker. Its connections meet the lab's own faults (faults.ts),
// so that one script can be played in the lab and on real sockets and real time.
//
// What a program cannot do to a real SYN: the system has accepted it before the program hears of it. So
// a fault that refuses dials closes the port, and in a partition TCP opens and what is said waits.
import { connect, createServer, type AddressInfo, type Server } from "node:net"
import type { Socket } from "node:net"
import { RealClock } from "../vm/clock"
import { LabRandom } from "./random"
import {
    Lane,
    type ActiveFault,
    type Ending,
    type Piece,
    type Wire,
    type WireFault,
    type WireHooks,
} from "./wire"

const LOOPBACK = "127.0.0.1"

/** A fault that is switched on; the same function may be so twice. */
interface Rule {
    fault: WireFault
}

export class FaultProxy {
    /** Where it listens, once started. */
    port = 0
    /** Connections accepted so far. */
    accepted = 0
    readonly clock = new RealClock()
    readonly random: LabRandom
    private readonly relays = new Set<Relay>()
    private server: Server | undefined
    rules: Rule[] = []

    /**
     * @param targetPort the broker's, on loopback
     * @param seed of all that the faults draw
     */
    constructor(
        readonly targetPort: number,
        seed = 1,
    ) {
        this.random = new LabRandom(seed)
    }

    /** Begins to listen, on a port of its own. */
    async start() {
        await this.listen()
    }

    /** Switches a fault on, also for connections that are open. */
    fault(fault: WireFault): ActiveFault {
        const rule = { fault }
        this.rules = [...this.rules, rule]
        this.follow()
        return {
            off: () => {
                this.rules = this.rules.filter(r => r !== rule)
                this.follow()
                for (const relay of this.relays) relay.release()
            },
        }
    }

    /** Ends everything. */
    close() {
        this.rules = []
        this.server?.close()
        this.server = undefined
        for (const relay of [...this.relays]) relay.destroy()
    }

    forget(relay: Relay) {
        this.relays.delete(relay)
    }

    /** Listens unless a fault refuses dials. */
    private follow() {
        const refuses = this.rules.some(
            ({ fault }) => typeof fault(this.nowhere).dial?.() === "object",
        )
        if (refuses) {
            this.server?.close()
            this.server = undefined
        } else if (!this.server) void this.listen()
    }

    private async listen() {
        const server = createServer({ allowHalfOpen: true }, device => {
            this.relays.add(new Relay(this, device, ++this.accepted))
        })
        this.server = server
        await new Promise<void>(done =>
            server.listen(this.port, LOOPBACK, done),
        )
        this.port = (server.address() as AddressInfo).port
    }

    /** A connection that is none, to ask a fault what it does to dials. */
    private readonly nowhere: Wire = {
        random: new LabRandom(1),
        nowMs: () => this.clock.nowMs(),
        after() {},
        cut() {},
        deliver() {},
        release() {},
    }
}

/** One connection through the proxy. */
class Relay implements Wire {
    readonly random: LabRandom
    private readonly made = new Map<Rule, WireHooks>()
    private readonly toDevice: Lane
    private readonly toBroker: Lane
    private readonly broker: Socket

    constructor(
        private readonly proxy: FaultProxy,
        private readonly device: Socket,
        index: number,
    ) {
        this.random = proxy.random.stream(`${index}`)
        this.toDevice = this.lane("toDevice", p => send(device, p))
        this.toBroker = this.lane("toBroker", p => send(this.broker, p))
        this.broker = connect({
            port: proxy.targetPort,
            host: LOOPBACK,
            allowHalfOpen: true,
        })
        this.tie(device, this.toBroker)
        this.tie(this.broker, this.toDevice)
        for (const hooks of this.hooks()) hooks.opened?.()
    }

    nowMs() {
        return this.proxy.clock.nowMs()
    }

    after(delayMs: number, run: () => void) {
        this.proxy.clock.setTimeout(run, delayMs)
    }

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

    destroy() {
        this.device.destroy()
        this.broker.destroy()
        this.proxy.forget(this)
    }

    private lane(way: "toDevice" | "toBroker", reach: (p: Piece) => void) {
        return new Lane(
            way,
            this.proxy.clock,
            () => 0,
            () => this.hooks(),
            reach,
        )
    }

    private hooks(): WireHooks[] {
        return this.proxy.rules.map(rule => {
            let hooks = this.made.get(rule)
            if (!hooks) this.made.set(rule, (hooks = rule.fault(this)))
            return hooks
        })
    }

    /** What one end says goes to the other. */
    private tie(from: Socket, lane: Lane) {
        from.setNoDelay()
        from.on("data", bytes => lane.pass({ bytes, delayMs: 0 }))
        from.on("end", () => lane.pass({ end: "fin", delayMs: 0 }))
        from.on("error", () => lane.pass({ end: "reset", delayMs: 0 }))
        from.on("close", () => {
            if (this.device.closed && this.broker.closed)
                this.proxy.forget(this)
        })
    }
}

function send(to: Socket, { bytes, end }: Piece) {
    if (end === "reset") to.resetAndDestroy()
    else if (end === "fin") to.end()
    else if (to.writable) to.write(bytes!)
}
