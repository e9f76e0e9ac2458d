// One outage of any clients at a real mosquitto, on the real clock, behind a proxy that admits so many connections a
// second. What is measured is measured at the proxy, where all clients look alike: a CONNECT, a CONNACK, an end.
import { setTimeout as sleep } from "node:timers/promises"
import { FaultProxy } from "../lab/fault-proxy"
import * as faults from "../lab/faults"
import { freePort, Mosquitto } from "../lab/mosquitto"
import { WireReader } from "../lab/mqtt-wire"
import type { WireFault } from "../lab/wire"
import { densest, quantile } from "./stats"

/** What happens. */
export interface Outage {
    devices: number
    /** Connections admitted a second. */
    rate: number
    /** Connections that may wait for that; one more gets TCP and then nothing. */
    backlog: number
    /** All have been connected for so long when the broker goes, and it is away for so long. */
    calmS: number
    outageS: number
    /** Watched for so long after that. */
    limitS: number
    seed: number
}

/** Clients in a process of their own. */
export interface Herd {
    /** Starts them; they dial 127.0.0.1. */
    start(port: number, outage: Outage): Promise<void>
    /** Why it is gone, if it is. */
    readonly gone: string | undefined
    stop(): Promise<void>
}

/** What came of it. Times in seconds from the broker's return; Infinity for never. */
export interface Outcome {
    recovered: number
    p50: number
    p99: number
    last: number
    /** Attempts that reached the proxy, from the broker's return. */
    attempts: number
    peakPer100Ms: number
    /** Connections the broker completed for clients that had given up. */
    wasted: number
    /** The most that this process was late for anything: noise of the machine. */
    lateMs: number
}

/** Between two looks. */
const LOOK_MS = 100

/** Until all are connected the first time: a fleet that spreads does so then, too. */
const startS = ({ devices, rate }: Outage) => 30 + (2 * devices) / rate

/** Reads along at the proxy. */
class Watch {
    /** When each client got its CONNACK, by client id; only of those whose connection stands. */
    readonly upMs = new Map<string, number>()
    readonly attemptsMs: number[] = []
    wasted = 0

    readonly fault: WireFault = wire => {
        let id: string | undefined
        let stage: "new" | "asked" | "up" | "over" = "new"
        const reader = new WireReader(
            packet => {
                if (packet.cmd !== "connect") return
                id = packet.clientId
                stage = "asked"
            },
            () => {},
        )
        const over = () => {
            if (stage === "asked") this.wasted++
            if (stage === "up") this.upMs.delete(id!)
            stage = "over"
        }
        return {
            opened: () => this.attemptsMs.push(wire.nowMs()),
            toBroker: piece => {
                if (piece.end) over()
                else if (stage === "new") reader.push(piece.bytes!)
                return [piece]
            },
            toDevice: piece => {
                if (piece.end) over()
                else if (stage === "asked" && accepts(piece.bytes!)) {
                    stage = "up"
                    this.upMs.set(id!, wire.nowMs())
                }
                return [piece]
            },
        }
    }
}

/** Whether it is a CONNACK with code 0, in MQTT 3.1.1 or 5. */
function accepts(bytes: Uint8Array): boolean {
    return bytes[0] === 0x20 && bytes[3] === 0
}

/**
 * Plays an outage.
 * @param look called every 100 ms; answers whether to go on
 * @throws Error when the clients do not connect at all, or mosquitto is missing
 */
export async function playOutage(
    outage: Outage,
    herd: Herd,
    look: (text: string) => Promise<boolean>,
): Promise<Outcome | undefined> {
    const broker = new Mosquitto(await freePort(), ["max_queued_messages 1"])
    const proxy = new FaultProxy(broker.port, outage.seed)
    try {
        await broker.start()
        await proxy.start()
        return await play(outage, herd, broker, proxy, look)
    } finally {
        await herd.stop()
        proxy.close()
        await broker.dispose()
    }
}

async function play(
    outage: Outage,
    herd: Herd,
    broker: Mosquitto,
    proxy: FaultProxy,
    look: (text: string) => Promise<boolean>,
): Promise<Outcome | undefined> {
    const { devices, rate, backlog, calmS, outageS, limitS } = outage
    const { clock } = proxy
    const watch = new Watch()
    const { upMs } = watch
    let lateMs = 0
    /** Waits until something holds, or the time is over; false when told to stop. */
    const until = async (limitMs: number, done: () => boolean) => {
        const endMs = clock.nowMs() + limitMs
        while (!done() && clock.nowMs() < endMs) {
            const beforeMs = clock.nowMs()
            await sleep(Math.min(LOOK_MS, endMs - beforeMs))
            lateMs = Math.max(lateMs, clock.nowMs() - beforeMs - LOOK_MS)
            // First of all: Ctrl-C on a terminal ends the clients, too.
            if (!(await look(`${upMs.size} of ${devices} connected`)))
                return false
            if (herd.gone) throw new Error(herd.gone)
        }
        return true
    }

    const before = proxy.fault(watch.fault)
    await herd.start(proxy.port, outage)
    const all = () => upMs.size === devices
    if (!(await until(startS(outage) * 1000, all))) return undefined
    if (!all()) {
        const attempts = watch.attemptsMs.length
        const text = `in ${startS(outage)} s, with ${attempts} attempts`
        throw new Error(`${upMs.size} of ${devices} clients connected ${text}`)
    }
    if (!(await until(calmS * 1000, () => false))) return undefined

    const away = proxy.fault(faults.refuse())
    await broker.stop()
    const goOn = await until(outageS * 1000, () => false)
    await broker.start()
    if (!goOn) return undefined
    upMs.clear()
    before.off()
    // What passes here has been admitted.
    proxy.fault(faults.admitPerSecond(rate, backlog, "silence"))
    proxy.fault(watch.fault)
    watch.attemptsMs.length = 0
    watch.wasted = 0
    lateMs = 0
    const backMs = clock.nowMs()
    away.off()
    await until(limitS * 1000, all)
    return outcomeOf(watch, devices, backMs, lateMs)
}

function outcomeOf(
    { upMs, attemptsMs, wasted }: Watch,
    devices: number,
    backMs: number,
    lateMs: number,
): Outcome {
    const times = Array.from(upMs.values(), ms => (ms - backMs) / 1000)
    const recovered = times.length
    while (times.length < devices) times.push(Infinity)
    return {
        recovered,
        p50: quantile(times, 0.5),
        p99: quantile(times, 0.99),
        last: quantile(times, 1),
        attempts: attemptsMs.length,
        peakPer100Ms: densest(attemptsMs, 100),
        wasted,
        lateMs: Math.round(lateMs),
    }
}
