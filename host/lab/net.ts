// The lab's network: TCP in memory on any clock, and the switchboard of its faults (faults.ts).
import type { Clock } from "../vm/clock"
import {
    noSocket,
    type Network,
    type Socket,
    type SocketEvents,
} from "../vm/network"
import { Link, type Fault, type Listener, type Rule, type Tap } from "./link"
import { LabRandom } from "./random"
import type { ActiveFault } from "./wire"

export type { Fault, Link, Listener, Peer } from "./link"
export type { ActiveFault, Ending } from "./wire"

export class LabNetwork {
    /** One way; an RTT is twice as much. */
    latencyMs = 2
    tap: Tap = () => {}
    private readonly listeners = new Map<string, Listener>()
    private readonly views = new Map<string, NetworkView>()
    private rules: Rule[] = []
    readonly links = new Set<Link>()

    constructor(
        readonly clock: Clock,
        readonly random: LabRandom,
    ) {}

    /** Accepts connections to host:port; undefined refuses them again. */
    listen(host: string, port: number, listener: Listener | undefined) {
        if (listener) this.listeners.set(`${host}:${port}`, listener)
        else this.listeners.delete(`${host}:${port}`)
    }

    listener(address: string): Listener | undefined {
        return this.listeners.get(address)
    }

    /**
     * Switches a fault on.
     * @param address `host:port`, or "*" for every address
     * @param device only for this device (its name)
     */
    fault(address: string, fault: Fault, device?: string): ActiveFault {
        const rule: Rule = { address, device, fault, on: true }
        this.rules.push(rule)
        return { off: () => this.off([rule]) }
    }

    /** Switches every fault off. */
    heal() {
        this.off(this.rules)
    }

    private off(rules: Rule[]) {
        for (const rule of rules) rule.on = false
        this.rules = this.rules.filter(r => r.on)
        for (const link of this.links) link.release()
    }

    /** The rules that concern a connection, in the order they were switched on. */
    rulesFor(device: string, address: string): Rule[] {
        if (!this.rules.length) return this.rules
        return this.rules.filter(
            r =>
                (r.address === "*" || r.address === address) &&
                (r.device === undefined || r.device === device),
        )
    }

    /** The network as one device sees it. */
    view(device: string): NetworkView {
        let view = this.views.get(device)
        if (!view)
            this.views.set(device, (view = new NetworkView(this, device)))
        return view
    }
}

/** One device's way into the network. */
export class NetworkView implements Network {
    /** Whether the device has a network at all (Wi-Fi with an address). */
    up = true
    /** False from a power cut until the device dials again: nobody answers for it. */
    present = true
    /** A dial never comes back, and holds up all later ones, until Wi-Fi goes or the chip resets. */
    blocked = false
    /** The connection opened last. */
    current: Link | undefined
    /** Connections so far. */
    dials = 0
    readonly random: LabRandom

    constructor(
        readonly net: LabNetwork,
        readonly device: string,
    ) {
        this.random = net.random.stream(device)
    }

    isUp() {
        if (!this.up) return false
        // Which address will be dialled is not known yet: only faults for all of them count.
        const rules = this.net.rulesFor(this.device, "")
        if (!rules.length) return true
        const probe = new Link(this, "", 0, false, NO_EVENTS)
        return rules.every(r => r.fault(probe).isUp?.() !== false)
    }

    /** Wi-Fi is gone: every connection of this device fails, and the other ends hear nothing. */
    lose() {
        this.up = false
        this.blocked = false
        for (const link of [...this.net.links])
            if (link.view === this) link.lose("network is down")
    }

    open(
        host: string,
        port: number,
        tls: boolean,
        events: SocketEvents,
    ): Socket {
        this.present = true
        const link = new Link(this, host, port, tls, events)
        for (const hooks of link.hooks())
            if (hooks.open?.() === false) return noSocket
        this.current = link
        this.net.links.add(link)
        link.dial()
        return link
    }
}

const NO_EVENTS: SocketEvents = {
    open() {},
    data() {},
    error() {},
    close() {},
}
