// A broker that can complete only so many connections a second: the rest wait in line, as at a real one
// that checks certificates and passwords. What gives up meanwhile keeps its place and is served in vain.
import type { Clock } from "../vm/clock"

export class Queue {
    /** Connections a second; undefined: as many as come. */
    perSecond: number | undefined
    private readonly waiting: (() => void)[] = []
    private isBusy = false

    constructor(private readonly clock: Clock) {}

    /** Serves at once, or when its turn comes. */
    join(serve: () => void) {
        if (this.perSecond === undefined && !this.isBusy) return serve()
        this.waiting.push(serve)
        if (!this.isBusy) this.next()
    }

    private next() {
        const serve = this.waiting.shift()
        this.isBusy = serve !== undefined
        if (!serve) return
        const tookMs = this.perSecond === undefined ? 0 : 1000 / this.perSecond
        this.clock.setTimeout(() => {
            serve()
            this.next()
        }, tookMs)
    }

    /** The broker is gone, and everybody in line with it. */
    clear() {
        this.waiting.length = 0
    }

    get length() {
        return this.waiting.length
    }
}
