// Time as a parameter: the real clock and a virtual one behind the same small interface.
// Everything in host/ that waits takes a Clock; nothing calls setTimeout or Date.now itself.

/** What a Clock's timers hand out; only that clock can read it. */
export type Timer = object

/** A source of time in milliseconds and of one-shot timers. */
export interface Clock {
    /** Milliseconds since the clock's own epoch; never goes back. */
    nowMs(): number
    /** Calls `run` once, `delayMs` (>= 0) from now, never within this call. */
    setTimeout(run: () => void, delayMs: number): Timer
    /** Cancels a timer; one that has fired, or undefined, is ignored. */
    clearTimeout(timer: Timer | undefined): void
}

/** Node's own time. */
export class RealClock implements Clock {
    private readonly startMs = performance.now()

    nowMs() {
        return performance.now() - this.startMs
    }
    setTimeout(run: () => void, delayMs: number): Timer {
        return setTimeout(run, delayMs)
    }
    clearTimeout(timer: Timer | undefined) {
        clearTimeout(timer as NodeJS.Timeout | undefined)
    }
}

interface Entry {
    atMs: number
    seq: number
    run: (() => void) | undefined
}

/**
 * Time that moves only when told to. Timers that are due at the same instant run in the
 * order they were set, so a run depends on nothing but its inputs.
 */
export class VirtualClock implements Clock {
    private heap: Entry[] = []
    private now = 0
    private seq = 0
    /**
     * True when something on this clock works with promises or streams (a Jacdac bus, an
     * in-process broker): then Node's own queues are drained after every instant.
     */
    drains = false

    nowMs() {
        return this.now
    }

    /** Timers not yet run, cancelled ones included. */
    get pending() {
        return this.heap.length
    }

    setTimeout(run: () => void, delayMs: number): Timer {
        const entry: Entry = {
            atMs: this.now + (delayMs > 0 ? delayMs : 0),
            seq: this.seq++,
            run,
        }
        siftUp(this.heap, entry)
        return entry
    }

    clearTimeout(timer: Timer | undefined) {
        if (timer) (timer as Entry).run = undefined
    }

    /** Runs the earliest timer if it is due by `untilMs`; false when there is none. */
    private step(untilMs: number): boolean {
        const first = this.heap[0]
        if (!first || first.atMs > untilMs) return false
        siftDown(this.heap)
        if (first.run) {
            this.now = first.atMs
            const run = first.run
            first.run = undefined
            run()
        }
        return true
    }

    /** Runs every timer due within the next `durationMs`, without draining Node's queues. */
    runForSync(durationMs: number) {
        const untilMs = this.now + durationMs
        while (this.step(untilMs));
        this.now = untilMs
    }

    /** Runs every timer due within the next `durationMs`. */
    async runFor(durationMs: number) {
        await this.runUntil(() => false, durationMs)
    }

    /**
     * Runs timers until `done()` holds, at most `limitMs` from now.
     * @returns whether it held in time
     */
    async runUntil(done: () => boolean, limitMs: number): Promise<boolean> {
        const untilMs = this.now + limitMs
        let lastMs = this.now
        if (this.drains) await drain()
        while (!done()) {
            if (!this.step(untilMs)) {
                this.now = untilMs
                return done()
            }
            if (this.drains && this.now !== lastMs) {
                lastMs = this.now
                await drain()
            }
        }
        return true
    }
}

/** Lets everything that Node has queued (promises, ticks, immediates) run. */
function drain(): Promise<void> {
    return new Promise(resolve => setImmediate(resolve))
}

function before(a: Entry, b: Entry) {
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq)
}

function siftUp(heap: Entry[], entry: Entry) {
    let i = heap.length
    heap.push(entry)
    while (i > 0) {
        const parent = (i - 1) >> 1
        if (before(heap[parent], entry)) break
        heap[i] = heap[parent]
        i = parent
    }
    heap[i] = entry
}

function siftDown(heap: Entry[]) {
    const last = heap.pop()!
    const size = heap.length
    if (!size) return
    let i = 0
    for (;;) {
        let child = 2 * i + 1
        if (child >= size) break
        if (child + 1 < size && before(heap[child + 1], heap[child])) ++child
        if (before(last, heap[child])) break
        heap[i] = heap[child]
        i = child
    }
    heap[i] = last
}
