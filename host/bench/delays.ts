// What a delay of each strategy costs the device: runs test/bytecode/bench-backoff.ts, which says when a batch of delays
// begins and ends, and looks at the clock and at the heap.
import { walkHeap } from "../lab/heap"
import { VirtualClock } from "../vm/clock"
import { DeviceVm } from "../vm/device"
import { MemoryFlash } from "../vm/flash"
import { noNetwork } from "../vm/network"
import { loadProgram } from "../vm/program"
import type { Bench } from "./part"
import { median } from "./stats"

const PROGRAM = "test/bytecode/bench-backoff.ts"

/** What one delay costs. */
export interface DelayCost {
    /** CPU, less that of the loop around it. */
    us: number
    /** Function calls: the runtime puts a frame on the heap for each, and collects it later. */
    calls: number
    /** Everything else that is put there. */
    allocations: number
}

/** Batches of the program: two to look at the heap, one to look at the clock. */
const SMALL = 4
const LARGE = 8
const TIMED = 200

/** What the heap holds: frames, and everything else. */
interface Held {
    frames: number
    others: number
}

/** What was seen of a strategy, batch by batch. */
class Seen {
    readonly us: number[] = []
    readonly grown: Record<number, Held[]> = { [SMALL]: [], [LARGE]: [] }

    cost(idleUs: number): DelayCost {
        // The one that grew most is one in which nothing was collected; printing costs the same in both.
        const most = (count: number) =>
            this.grown[count].reduce((a, b) => (b.frames > a.frames ? b : a))
        const large = most(LARGE)
        const small = most(SMALL)
        const of = (key: keyof Held) =>
            (large[key] - small[key]) / (LARGE - SMALL)
        return {
            us: median(this.us) - idleUs,
            calls: of("frames"),
            allocations: of("others"),
        }
    }
}

/** Runs the program through all its strategies, some times. */
export async function delaysOnDevice(
    bench: Bench,
): Promise<Record<string, DelayCost>> {
    const seen: Record<string, Seen> = {}
    const passes = bench.short ? 1 : 4
    let pass = -1
    let before: { count: number; held: Held; cpu: NodeJS.CpuUsage }
    let last = ""
    const clock = new VirtualClock()
    const device = new DeviceVm({
        deviceId: "1122334455667788",
        clock,
        network: noNetwork,
        flash: new MemoryFlash(),
        entropy: count => new Uint8Array(count).fill(7),
        onConsole(text) {
            const [mark, name, what] = text.split(" ")
            if (mark !== ">") return
            if (what === "end") {
                const { user, system } = process.cpuUsage(before.cpu)
                const { us, grown } = (seen[name] ??= new Seen())
                const { count, held } = before
                if (count === TIMED) us.push((user + system) / TIMED)
                else if (pass === 0)
                    grown[count].push(less(heldBy(device), held))
                return
            }
            if (name === "nothing" && last !== name) pass++
            last = name
            const held = heldBy(device)
            before = { count: Number(what), held, cpu: process.cpuUsage() }
        },
    })
    device.powerOn()
    clock.runForSync(50)
    device.deploy(loadProgram(PROGRAM).bytecode)
    const done = () => pass >= passes || bench.stopped()
    if (!(await clock.runUntil(done, 600_000)))
        throw new Error(`${PROGRAM} did not go on`)
    device.powerOff()
    const { nothing, ...strategies } = seen
    const idleUs = nothing ? median(nothing.us) : NaN
    // Ctrl-C may have come before the last.
    const whole = Object.entries(strategies).filter(([, s]) => s.us.length)
    return Object.fromEntries(whole.map(([name, s]) => [name, s.cost(idleUs)]))
}

function heldBy({ memory }: DeviceVm): Held {
    const { objects, activations } = walkHeap(memory)
    return { frames: activations, others: objects - activations }
}

const less = (a: Held, b: Held): Held => ({
    frames: a.frames - b.frames,
    others: a.others - b.others,
})
