// A client made by hand for testing the lab itself: a socket and what happened on it.
import { encode, WireReader, type Packet } from "../../host/lab/mqtt-wire"
import type { World } from "../../host/lab/world"

/** Dials; everything that happens is in `events` as `<ms> <what>`, packets in `packets`. */
export class LabClient {
    readonly events: string[] = []
    readonly packets: Packet[] = []
    readonly bytes: number[] = []
    private readonly socket

    constructor(
        readonly world: World,
        name = "client",
        address = { host: "broker", port: 1883 },
    ) {
        const reader = new WireReader(
            p => this.packets.push({ ...p } as Packet),
            e => this.note(`malformed ${e}`),
        )
        const startMs = world.nowMs
        this.note = what => this.events.push(`${world.nowMs - startMs} ${what}`)
        this.socket = world.net
            .view(name)
            .open(address.host, address.port, false, {
                open: () => this.note("open"),
                data: bytes => {
                    this.note(`${bytes.length} B`)
                    this.bytes.push(...bytes)
                    reader.push(bytes)
                },
                error: message => this.note(`error ${message}`),
                close: () => this.note("close"),
            })
    }

    readonly note: (what: string) => void

    send(...packets: Packet[]): number {
        return this.socket.write(Buffer.concat(packets.map(p => encode(p))))
    }
    raw(hex: string): number {
        return this.socket.write(Buffer.from(hex.replace(/\s/g, ""), "hex"))
    }
    connect(more: object = {}): number {
        return this.send({
            cmd: "connect",
            protocolId: "MQTT",
            protocolVersion: 4,
            clientId: "hand",
            clean: true,
            keepalive: 0,
            ...more,
        })
    }
    close() {
        this.socket.close()
    }
    /** As if the power went. */
    vanish() {
        this.socket.destroy()
    }
    /** What came, without times. */
    get what(): string[] {
        return this.events.map(e => e.slice(e.indexOf(" ") + 1))
    }
}
