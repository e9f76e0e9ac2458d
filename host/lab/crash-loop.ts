// A program that crashes again and again: when does it come onto the network? For the restart limit's tests and `npm run crashes`.
import { World, type DeviceSpec } from "./world"

/** A crash loop to play. */
export interface CrashLoop {
    /** The program and its settings; default: the firmware. */
    spec?: DeviceSpec
    /** Where its broker is. */
    address?: string
    /** From CONNACK to the crash, each time. */
    crashAfterMs: number
    /** For so long. */
    minutes: number
    seed?: number
    /** Called after every part with the minutes played; the play ends there when it says false. */
    goesOn?: (minutes: number) => Promise<boolean>
}

/** What came of it. */
export interface Crashes {
    /** When it connected, ms from power-on. */
    connectMs: number[]
    /** Times the program died. */
    crashes: number
    flashWrites: number
    /** How long was played. */
    minutes: number
}

const MINUTE_MS = 60_000

/** Between two times that the records are emptied. */
const PART_MIN = 15

/** Plays it. */
export async function playCrashLoop(loop: CrashLoop): Promise<Crashes> {
    const { spec, address = "broker:1883", crashAfterMs, minutes } = loop
    const world = new World({ seed: loop.seed ?? 1, keepLog: 1000 })
    try {
        const broker = world.scripted(address)
        const device = await world.device({
            settings: { MQTT_HOST: "broker" },
            ...spec,
        })
        const connectMs: number[] = []
        broker.always({
            connect(c) {
                connectMs.push(world.nowMs)
                broker.welcome(c)
                world.after(crashAfterMs, () => {
                    device.crash()
                    // A program dies when it wakes: something to wake for.
                    if (c.isOpen) c.pingresp()
                })
            },
        })
        device.powerOn()
        let played = 0
        while (played < minutes) {
            const part = Math.min(minutes - played, PART_MIN)
            await world.run(part * MINUTE_MS)
            played += part
            // A week's records would fill the memory.
            broker.packets.length = 0
            const open = broker.open
            broker.conns.splice(0, broker.conns.length, ...open)
            device.console.length = device.lines.length = 0
            if (loop.goesOn && !(await loop.goesOn(played))) break
        }
        const { flashWrites, panics } = device
        const crashes = panics.length
        return { connectMs, crashes, flashWrites, minutes: played }
    } finally {
        await world.close()
    }
}

/** The most of these times that fall into any span of so long. */
export function mostIn(timesMs: number[], spanMs: number): number {
    let most = 0
    for (let from = 0, to = 0; to < timesMs.length; ++to) {
        while (timesMs[to] - timesMs[from] > spanMs) ++from
        most = Math.max(most, to - from + 1)
    }
    return most
}
