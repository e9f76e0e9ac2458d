// What waits to be sent: packets that are ready, bounded in entries and in bytes. Pure.
// When something does not fit, the oldest go: what is new is worth more to a monitoring system.

export class Outbox {
    private packets: Buffer[] = []
    /** Bytes of all packets in it. */
    bytes = 0

    /**
     * @param maxEntries most packets, at least 1
     * @param maxBytes most bytes of all packets together
     */
    constructor(
        readonly maxEntries: number,
        readonly maxBytes: number,
    ) {}

    /** Packets in it. */
    entries(): number {
        return this.packets.length
    }

    /**
     * Appends a packet of at most `maxBytes`.
     * @returns how many old ones were dropped for it
     */
    push(packet: Buffer): number {
        let dropped = 0
        while (
            this.packets.length >= this.maxEntries ||
            (this.packets.length > 0 &&
                this.bytes + packet.length > this.maxBytes)
        ) {
            this.shift()
            dropped++
        }
        this.packets.push(packet)
        this.bytes += packet.length
        return dropped
    }

    /** The packet that is sent next; undefined when it is empty. */
    oldest(): Buffer | undefined {
        return this.packets[0]
    }

    /** Takes the oldest packet out; undefined when it is empty. */
    shift(): Buffer | undefined {
        const packet = this.packets.shift()
        if (packet !== undefined) this.bytes -= packet.length
        return packet
    }
}
