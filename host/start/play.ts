// The outage that `npm start` plays by itself, and the time a device has to be back.
import type { ConfigSource } from "../../src/core/config"
import type { Line } from "../../src/core/line"
import { readPolicy } from "../../src/core/policy-settings"
import { span } from "../show"
import type { Clock } from "../vm/clock"
import type { Settings } from "../vm/env"
import type { Broker } from "./broker"
import type { HostLine } from "./event"

/** Beyond the longest wait: the dial itself, the program's start, a slow computer. */
const MARGIN_MS = 5000

/** How often the play looks whether what it waits for has happened. */
const LOOK_MS = 20

/** What the firmware's policy promises, read from the same settings. */
export interface Promised {
    /** No wait is longer while the broker is merely down. */
    longestWaitMs: number
    /** A session this old is stable. */
    stableMs: number
}

/** Settings that are not allowed count as the firmware counts them: as their defaults. */
export function promised(settings: Settings): Promised {
    const from: ConfigSource = {
        raw: key => settings[key],
        complain: () => {},
    }
    const { minMs, capMs, overloadCapMs, spreadMs, stableMs } = readPolicy(from)
    // Fitted: waits are up to a tenth longer than the spread, the first one up to min longer.
    const fittedMs = spreadMs + Math.max(minMs, Math.ceil(spreadMs / 10))
    return {
        longestWaitMs: spreadMs > 0 ? Math.min(fittedMs, overloadCapMs) : capMs,
        stableMs,
    }
}

/** Follows a device's lines: is it connected, since when, what did it say last. */
export class Follower {
    /** When the session began that is open now. */
    connectedMs: number | undefined
    /** The waits chosen since `startOver`. */
    delaysMs: number[] = []
    private last = "nothing came from the device"
    /** The device will not try again by itself. */
    halted = false

    constructor(private readonly clock: Clock) {}

    take(line: Line | HostLine) {
        switch (line.ev) {
            case "connected":
                this.connectedMs = this.clock.nowMs()
                break
            case "retry":
                this.delaysMs.push(line.delayMs)
                this.ended(line.reason)
                break
            case "lost":
                this.ended(line.reason)
                break
            case "halt":
            case "held":
                this.halted = line.ev === "halt"
                this.ended(`${line.ev}: ${line.reason}`)
                break
            case "boot":
                this.halted = false
                this.ended("the program started")
                break
            case "panic":
                this.ended(`the program died (${line.code})`)
                break
            case "link":
            case "power":
                if (line.ev === "link" ? !line.up : !line.on)
                    this.ended(`${line.ev} is down`)
        }
    }

    private ended(why: string) {
        this.connectedMs = undefined
        this.last = why
    }

    startOver() {
        this.connectedMs = undefined
        this.delaysMs = []
    }

    /** Whether the open session began after `sinceMs` and has lasted `forMs`. */
    isConnected(sinceMs: number, forMs: number): boolean {
        const { connectedMs } = this
        return (
            connectedMs !== undefined &&
            connectedMs >= sinceMs &&
            this.clock.nowMs() - connectedMs >= forMs
        )
    }

    /** Why it is not connected, as the device put it. */
    get why() {
        return this.last
    }
}

export interface Play {
    clock: Clock
    broker: Broker
    follower: Follower
    outageMs: number
    promised: Promised
    say: (text: string) => void
}

/** Plays it; the result says in words what was seen. */
export async function playOutage(
    play: Play,
): Promise<HostLine & { ev: "outage" }> {
    const { clock, broker, follower, outageMs, promised, say } = play
    const { longestWaitMs, stableMs } = promised
    const boundMs = longestWaitMs + MARGIN_MS
    const bound = `${span(boundMs)} (longest wait ${span(longestWaitMs)} + ${span(MARGIN_MS)})`
    const failed = (reason: string) => ({
        ev: "outage" as const,
        ok: false,
        reason,
        outageMs,
        delaysMs: follower.delaysMs,
    })
    // A session this old ends as a loss; a younger one would be a flap, which is another story.
    const wholeMs = stableMs + LOOK_MS
    say(`the device has to connect within ${bound}`)
    say(
        `and stay for ${span(stableMs)}: a shorter session would be a flap, no loss`,
    )
    if (!(await settled(play, 0, boundMs, wholeMs)))
        return failed(
            `not connected and stable within ${span(boundMs + wholeMs)}: ${follower.why}`,
        )

    say(`the outage: ${span(outageMs)} without the broker`)
    follower.startOver()
    await broker.down()
    await sleep(clock, outageMs)
    const backMs = clock.nowMs()
    await broker.up()
    say(`the device has to be back within ${bound}`)
    say(`and stay for ${span(stableMs)}`)
    const isBack = await settled(play, backMs, boundMs, wholeMs)
    const { connectedMs, delaysMs } = follower
    if (!isBack || connectedMs === undefined)
        return failed(
            `not back and stable within ${span(boundMs + wholeMs)}: ${follower.why}`,
        )
    return {
        ev: "outage",
        ok: true,
        reason:
            `back ${span(connectedMs - backMs)} after the broker, stable for ${span(stableMs)}; ` +
            `it had waited ${delaysMs.map(span).join(", ")}`,
        outageMs,
        delaysMs,
        backMs: Math.round(connectedMs - backMs),
    }
}

/** Waits for a session begun after `sinceMs` and within `boundMs` from now that lasts `forMs`. */
async function settled(
    { clock, follower }: Play,
    sinceMs: number,
    boundMs: number,
    forMs: number,
): Promise<boolean> {
    const latestMs = clock.nowMs() + boundMs
    for (;;) {
        const { connectedMs } = follower
        if (follower.isConnected(sinceMs, forMs))
            return connectedMs! <= latestMs
        if (follower.halted) return false
        const isOpen = connectedMs !== undefined && connectedMs >= sinceMs
        if (!isOpen && clock.nowMs() > latestMs) return false
        await sleep(clock, LOOK_MS)
    }
}

function sleep(clock: Clock, delayMs: number): Promise<void> {
    return new Promise(done => clock.setTimeout(done, delayMs))
}
