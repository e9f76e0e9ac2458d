// What a publish costs: CPU and socket writes for each QoS 0 message of 32 B, ours beside the stock
// client's, in the same run. `npm run perf`.
import { Command } from "commander"
import { readFlags, toConsole } from "../../host/flags"
import { VirtualClock } from "../../host/vm/clock"
import { DeviceVm } from "../../host/vm/device"
import { MemoryFlash } from "../../host/vm/flash"
import type { Network } from "../../host/vm/network"
import { loadProgram } from "../../host/vm/program"

const OURS = "test/bytecode/api-perf.ts"
const STOCK = "test/bytecode/api-perf-stock.ts"

/** Messages that both programs publish. */
const MESSAGES = 2000

/** What a message costs. */
export interface Cost {
    /** Real CPU of the whole process, µs a message. */
    cpuUs: number
    /** Socket writes a message. */
    writes: number
    /** Bytes on the wire a message. */
    bytes: number
}

const CONNACK = Uint8Array.of(0x20, 2, 0, 0)
const MINUTES_MS = 600_000

/** Runs one of the programs once. */
async function measure(program: string): Promise<Cost> {
    const clock = new VirtualClock()
    const said = new Set<string>()
    let writes = 0
    let bytes = 0
    // Costs next to nothing itself: a broker that says CONNACK to whatever comes first.
    const network: Network = {
        isUp: () => true,
        open(_host, _port, _tls, events) {
            clock.setTimeout(() => events.open(), 1)
            return {
                write(data) {
                    bytes += data.length
                    if (writes++ === 0)
                        clock.setTimeout(() => events.data(CONNACK), 1)
                    return 0
                },
                close() {},
                destroy() {},
            }
        },
    }
    const device = new DeviceVm({
        deviceId: "1122334455667788",
        clock,
        network,
        flash: new MemoryFlash(),
        entropy: count => new Uint8Array(count).fill(7),
        lazyTurns: true,
        onConsole: text => {
            if (text.startsWith("> ")) said.add(text)
        },
    })
    device.powerOn()
    clock.runForSync(50)
    device.deploy(loadProgram(program).bytecode)
    const until = async (line: string) => {
        const holds = () => said.has(line)
        if (!(await clock.runUntil(holds, MINUTES_MS)))
            throw new Error(`${program} never said ${line}`)
    }
    await until("> go")
    const writesBefore = writes
    const bytesBefore = bytes
    const before = process.cpuUsage()
    await until("> done")
    const { user, system } = process.cpuUsage(before)
    clock.runForSync(100)
    device.powerOff()
    return {
        cpuUs: (user + system) / MESSAGES,
        writes: (writes - writesBefore) / MESSAGES,
        bytes: (bytes - bytesBefore) / MESSAGES,
    }
}

/** Medians of several rounds, the two programs by turns after one round each to warm up. */
export async function comparePublish(
    rounds: number,
): Promise<{ ours: Cost; stock: Cost }> {
    await measure(OURS)
    await measure(STOCK)
    const ours: Cost[] = []
    const stock: Cost[] = []
    for (let i = 0; i < rounds; ++i) {
        ours.push(await measure(OURS))
        stock.push(await measure(STOCK))
    }
    return { ours: median(ours), stock: median(stock) }
}

function median(costs: Cost[]): Cost {
    const of = (key: keyof Cost) =>
        costs.map(c => c[key]).sort((a, b) => a - b)[costs.length >> 1]
    return { cpuUs: of("cpuUs"), writes: of("writes"), bytes: of("bytes") }
}

async function main() {
    const command = new Command("npm run perf --")
        .description("CPU and socket writes of a publish, beside the stock's.")
        .addHelpText(
            "after",
            "\nExit codes: 0 measured; 2 a flag can't be used.",
        )
        .allowExcessArguments(false)
    const given = readFlags(command, process.argv.slice(2), toConsole)
    if (typeof given === "number") process.exit(given)
    const { ours, stock } = await comparePublish(9)
    console.log("for each QoS 0 publish of 32 B:")
    for (const [name, cost] of Object.entries({ ours, stock }))
        console.log(
            `${name.padEnd(6)} ${cost.cpuUs.toFixed(1).padStart(7)} us CPU  ` +
                `${cost.writes} writes  ${cost.bytes} B`,
        )
    console.log(`ours/stock ${(ours.cpuUs / stock.cpuUs).toFixed(2)}`)
}

if (process.argv[1]?.endsWith("perf.ts")) void main().then(() => process.exit())
