// The simulator's event queue: at most one event for each device, in whole milliseconds. A ring of
// buckets, one a millisecond, with the devices of a bucket chained through typed arrays: adding,
// taking and moving an event cost the same for ten devices and for a million.

/** Milliseconds the ring spans; later events wait in a list of their own. */
const SPAN_MS = 1 << 23

const NONE = -1

export class Calendar {
    private readonly heads = new Int32Array(SPAN_MS).fill(NONE)
    private readonly tails = new Int32Array(SPAN_MS).fill(NONE)
    private readonly next: Int32Array
    private readonly prev: Int32Array
    /** When each device's event is due, ms; -1 when it has none. */
    readonly dueMs: Float64Array
    private nowMs = 0
    private waiting = 0
    /** Devices whose event was beyond the ring when it was set. */
    private readonly far = new Set<number>()

    constructor(devices: number) {
        this.next = new Int32Array(devices).fill(NONE)
        this.prev = new Int32Array(devices).fill(NONE)
        this.dueMs = new Float64Array(devices).fill(-1)
    }

    /** Events that are waiting. */
    get size() {
        return this.waiting
    }

    /** Sets the device's event, replacing the one it had; a time in the past counts as now. */
    set(device: number, atMs: number) {
        if (this.dueMs[device] >= 0) this.remove(device)
        const dueMs = Math.max(Math.ceil(atMs), this.nowMs)
        this.dueMs[device] = dueMs
        this.waiting++
        if (dueMs - this.nowMs >= SPAN_MS) this.far.add(device)
        else this.link(device, dueMs)
    }

    private link(device: number, dueMs: number) {
        const slot = dueMs & (SPAN_MS - 1)
        const tail = this.tails[slot]
        this.next[device] = NONE
        this.prev[device] = tail
        if (tail === NONE) this.heads[slot] = device
        else this.next[tail] = device
        this.tails[slot] = device
    }

    private remove(device: number) {
        const dueMs = this.dueMs[device]
        this.dueMs[device] = -1
        this.waiting--
        if (this.far.delete(device)) return
        const slot = dueMs & (SPAN_MS - 1)
        const { next, prev } = this
        if (prev[device] === NONE) this.heads[slot] = next[device]
        else next[prev[device]] = next[device]
        if (next[device] === NONE) this.tails[slot] = prev[device]
        else prev[next[device]] = prev[device]
    }

    /** Takes the earliest event due by `untilMs`; -1 when there is none. Its time is then `time`. */
    take(untilMs: number): number {
        while (this.waiting > 0) {
            const slot = this.nowMs & (SPAN_MS - 1)
            const device = this.heads[slot]
            if (device !== NONE && this.dueMs[device] === this.nowMs) {
                this.remove(device)
                return device
            }
            if (this.nowMs >= untilMs) return NONE
            this.nowMs++
            if ((this.nowMs & (SPAN_MS - 1)) === 0) this.bringNear()
        }
        return NONE
    }

    /** The time of the event taken last, ms. */
    get time() {
        return this.nowMs
    }

    /** Once a turn of the ring: links what has come within reach. */
    private bringNear() {
        for (const device of this.far) {
            if (this.dueMs[device] - this.nowMs >= SPAN_MS) continue
            this.far.delete(device)
            this.link(device, this.dueMs[device])
        }
    }
}
