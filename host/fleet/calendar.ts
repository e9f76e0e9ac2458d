// The simulator's event queue: at most one event for each device, in whole milliseconds. A ring of
// buckets, one a millisecond, with the devices of a bucket chained through a typed array: adding and
// taking an event cost the same for ten devices and for a million. Events of the same millisecond are
// shuffled: in a fleet so big that many fall into one, any fixed order would favour the short waits or
// the long ones, and who comes first decides who is served.
import type { Random } from "../../src/core/random"

/** Milliseconds the ring spans; later events wait in a list of their own. */
const SPAN_MS = 1 << 21

const NONE = -1

export class Calendar {
    private readonly heads = new Int32Array(SPAN_MS).fill(NONE)
    private readonly next: Int32Array
    private nowMs = 0
    private waiting = 0
    /** The current millisecond's devices, shuffled, and how many of them are still to be taken. */
    private readonly batch: number[] = []
    private left = 0
    /** Devices whose event was beyond the ring when it was set, and when it is due. */
    private far = new Map<number, number>()

    constructor(
        private readonly devices: number,
        private readonly random: Random,
    ) {
        this.next = new Int32Array(devices).fill(NONE)
    }

    /** Events that are waiting. */
    get size() {
        return this.waiting
    }

    /** The time of the event taken last, ms. */
    get time() {
        return this.nowMs
    }

    /** Sets the event of a device that has none; a time in the past counts as now. */
    add(device: number, atMs: number) {
        const dueMs = Math.max(Math.ceil(atMs), this.nowMs)
        this.waiting++
        if (dueMs - this.nowMs >= SPAN_MS) this.far.set(device, dueMs)
        else this.link(device, dueMs)
    }

    private link(device: number, dueMs: number) {
        const slot = dueMs & (SPAN_MS - 1)
        this.next[device] = this.heads[slot]
        this.heads[slot] = device
    }

    /** Takes the earliest event due by `untilMs`; -1 when there is none. Its time is then `time`. */
    take(untilMs: number): number {
        while (this.waiting > 0) {
            if (this.left > 0) {
                this.waiting--
                return this.batch[--this.left]
            }
            const slot = this.nowMs & (SPAN_MS - 1)
            if (this.heads[slot] !== NONE) {
                this.gather(slot)
                continue
            }
            if (this.nowMs >= untilMs) return NONE
            this.nowMs++
            if ((this.nowMs & (SPAN_MS - 1)) === 0) this.bringNear()
        }
        return NONE
    }

    private gather(slot: number) {
        const { batch, heads, next } = this
        let count = 0
        for (let device = heads[slot]; device !== NONE; device = next[device]) {
            // Slightly uneven, for at most some thousands of devices in a millisecond: one part in 2^20.
            const at = (this.random.next() >>> 0) % (count + 1)
            batch[count] = batch[at]
            batch[at] = device
            count++
        }
        heads[slot] = NONE
        this.left = count
    }

    /** Once a turn of the ring: links what has come within reach. */
    private bringNear() {
        for (const [device, dueMs] of this.far) {
            if (dueMs - this.nowMs >= SPAN_MS) continue
            this.far.delete(device)
            this.link(device, dueMs)
        }
    }

    /** Moves every event for which `to` has a time, the others stay: costs as much as the fleet and the ring are big. */
    moveAll(to: (device: number) => number | undefined) {
        const dueMs = new Float64Array(this.devices).fill(-1)
        for (let offset = 0; offset < SPAN_MS; ++offset) {
            const slot = (this.nowMs + offset) & (SPAN_MS - 1)
            let device = this.heads[slot]
            this.heads[slot] = NONE
            for (; device !== NONE; device = this.next[device])
                dueMs[device] = this.nowMs + offset
        }
        for (const [device, atMs] of this.far) dueMs[device] = atMs
        while (this.left > 0) dueMs[this.batch[--this.left]] = this.nowMs
        this.far = new Map()
        this.waiting = 0
        for (let device = 0; device < this.devices; ++device) {
            const atMs = to(device) ?? dueMs[device]
            if (atMs >= 0) this.add(device, atMs)
        }
    }
}
