// How much comes from one device. A board's port brings at most some hundred lines a second; what floods it
// is cut to MAX_LINES_PER_S and named, so that nothing behind it (terminal, page, recording) drowns. Pure.

/** Lines of one device let through in a second; 1.5 Mbaud of ordinary lines. */
export const MAX_LINES_PER_S = 1500

/** Noise is told at most once in this time. */
const TELL_MS = 1000

export interface Told {
    noise: (bytes: number) => void
    flood: (bytes: number, dropped: number) => void
}

export class Meter {
    private fromMs = -Infinity
    private lines = 0
    private bytes = 0
    private dropped = 0
    private noise = 0
    private noiseMs = -Infinity

    constructor(private readonly told: Told) {}

    /** Bytes arrived. */
    took(bytes: number, nowMs: number) {
        this.tick(nowMs)
        this.bytes += bytes
    }

    /** Whether a line may pass. */
    passes(nowMs: number): boolean {
        this.tick(nowMs)
        if (++this.lines <= MAX_LINES_PER_S) return true
        this.dropped++
        return false
    }

    gotNoise(bytes: number, nowMs: number) {
        this.noise += bytes
        this.tellNoise(nowMs)
    }

    /** Time passes: tells what is to be told. Call it now and then. */
    tick(nowMs: number) {
        this.tellNoise(nowMs)
        if (nowMs - this.fromMs < 1000) return
        const { bytes, dropped } = this
        this.fromMs = nowMs
        this.lines = this.bytes = this.dropped = 0
        if (dropped) this.told.flood(bytes, dropped)
    }

    /** Nothing more comes: tells the rest. */
    end() {
        this.noiseMs = -Infinity
        this.tellNoise(0)
        if (this.dropped) this.told.flood(this.bytes, this.dropped)
        this.dropped = 0
    }

    private tellNoise(nowMs: number) {
        if (!this.noise || nowMs < this.noiseMs + TELL_MS) return
        const bytes = this.noise
        this.noise = 0
        this.noiseMs = nowMs
        this.told.noise(bytes)
    }
}
