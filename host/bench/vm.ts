// The part "vm": what our client costs a device beside the stock MQTTClient, with the same traffic. CPU is measured by
// turns, a round of ours and a round of the stock's, so that the machine's noise meets both.
import { compileAll, loadProgram } from "../vm/program"
import type { Guarded } from "./baseline"
import { callsOf, callsTable, type Calls } from "./calls"
import type { Bench, Part } from "./part"
import { besides, ratioOf, type Figure, type Report } from "./report"
import { Rig } from "./rig"
import { median, ratioByTurns } from "./stats"

const STOCK = "test/bytecode/bench-stock.ts"

/** A load, and which of our programs bears it. */
interface Load {
    name: string
    what: string
    program: string
    /** Does it so many times; answers with what one took, µs of CPU. */
    round(rig: Rig, count: number): Promise<number>
    /** So many in a round. */
    count: number
}

const LEAN = "test/bytecode/bench-lean.ts"
const FULL = "test/bytecode/bench-full.ts"
const QOS1 = "test/bytecode/bench-qos1.ts"

const PUBLISH: Pick<Load, "round" | "count"> = {
    round: (rig, count) => timed(count, () => rig.publish(0, count)),
    count: 400,
}

const RECEIVE: Pick<Load, "round" | "count"> = {
    round: (rig, count) => timed(count, async () => rig.receive(count)),
    count: 200,
}

const CONNECT: Pick<Load, "round" | "count"> = {
    async round(rig, count) {
        for (let i = 0; i < count; ++i) await rig.reconnect()
        return median(rig.connectUs.slice(-count))
    },
    count: 5,
}

const LOADS: Load[] = [
    {
        name: "publish QoS 0",
        what: "CPU per QoS 0 publish of 32 B",
        program: LEAN,
        ...PUBLISH,
    },
    {
        name: "publish QoS 0, startMqtt",
        what: "CPU per QoS 0 publish of 32 B, startMqtt",
        program: FULL,
        ...PUBLISH,
    },
    {
        name: "publish QoS 1",
        what: "CPU per QoS 1 publish of 32 B and its PUBACK",
        program: QOS1,
        round: (rig, count) => timed(count, () => rig.publish(1, count)),
        count: 200,
    },
    {
        name: "receive",
        what: "CPU per message of 32 B received",
        program: LEAN,
        ...RECEIVE,
    },
    {
        name: "receive, startMqtt",
        what: "CPU per message of 32 B received, startMqtt",
        program: FULL,
        ...RECEIVE,
    },
    {
        name: "connect",
        what: "CPU from dial to CONNACK and the first SUBSCRIBE",
        program: LEAN,
        ...CONNECT,
    },
    {
        name: "connect, startMqtt",
        what: "CPU from dial to CONNACK and the first SUBSCRIBE, startMqtt",
        program: FULL,
        ...CONNECT,
    },
]

/** Rounds of each load; the first ones warm up. */
const ROUNDS = { full: 41, short: 9 }
const WARM_UP = 2

/** µs of CPU for each of `count`. */
async function timed(count: number, run: () => Promise<void>) {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / count
}

/** What a load costs, by turns. */
async function compareCpu(
    load: Load,
    bench: Bench,
    progress: (part: number) => Promise<void>,
): Promise<Figure> {
    const rigs = [await Rig.start(load.program), await Rig.start(STOCK)]
    const costs: number[][] = [[], []]
    const rounds = bench.short ? ROUNDS.short : ROUNDS.full
    for (let i = 0; i < rounds && !bench.stopped(); ++i) {
        // Who is first changes, too.
        for (const which of i & 1 ? [1, 0] : [0, 1]) {
            const cost = await load.round(rigs[which], load.count)
            if (i >= WARM_UP) costs[which].push(cost)
        }
        await progress(i / rounds)
    }
    for (const rig of rigs) {
        rig.rest()
        if (load.round === RECEIVE.round)
            await allCame(rig, rounds * load.count)
        rig.stop()
    }
    const [ours, stock] = costs
    return {
        what: load.what,
        unit: "us",
        ours: median(ours),
        others: { stock: median(stock) },
        ratios: { stock: ratioByTurns(ours, stock) },
    }
}

async function allCame(rig: Rig, sent: number) {
    const came = await rig.received()
    if (came !== sent)
        throw new Error(`${rig.program} received ${came} of ${sent} messages`)
}

/** What a message costs besides time; the same in every run. */
interface Traffic {
    /** Put on the heap for each message, garbage included. */
    allocations: number
    allocatedBytes: number
    writes: number
    bytes: number
    /** Of the heap: connected and idle, and the most in use at any publish. */
    restBytes: number
    peakBytes: number
}

/** Messages that are looked at one by one. */
const LOOKS = 64

type Direction = "publish QoS 0" | "publish QoS 1" | "receive"

/** A look at a program between two messages. */
interface Look {
    writes: number
    bytes: number
    usedBytes: number
    objects: number
    liveBytes: number
}

function lookAt(rig: Rig): Look {
    const { usedBytes, objects } = rig.heap()
    const { writes, bytes } = rig
    const liveBytes = rig.liveHeapBytes()
    return { writes, bytes, usedBytes, objects, liveBytes }
}

/** Looks at each of some messages, after some more. */
async function looksAt(rig: Rig, direction: Direction): Promise<Look[]> {
    const looks: Look[] = []
    if (direction === "receive")
        for (let i = 0; i < LOOKS + 8; ++i) {
            rig.receive(1)
            looks.push(lookAt(rig))
        }
    else {
        rig.probe = () => looks.push(lookAt(rig))
        await rig.publish(direction === "publish QoS 0" ? 0 : 1, LOOKS + 8)
        rig.probe = () => {}
    }
    // A whole number of the program's batches.
    return looks.slice(7, LOOKS + 8)
}

async function trafficOf(
    program: string,
    direction: Direction,
): Promise<Traffic> {
    const rig = await Rig.start(program)
    const restBytes = rig.liveHeapBytes()
    const looks = await looksAt(rig, direction)
    rig.stop()
    const first = looks[0]
    const last = looks.at(-1)!
    return {
        ...allocationsIn(looks),
        writes: (last.writes - first.writes) / (looks.length - 1),
        bytes: (last.bytes - first.bytes) / (looks.length - 1),
        restBytes,
        peakBytes: Math.max(...looks.map(look => look.liveBytes)),
    }
}

/** What each message put on the heap, on average; steps in which it was collected are left out. */
function allocationsIn(looks: Look[]) {
    const steps = looks
        .slice(1)
        .map((look, i) => ({
            bytes: look.usedBytes - looks[i].usedBytes,
            objects: look.objects - looks[i].objects,
        }))
        .filter(step => step.bytes >= 0 && step.objects >= 0)
    const mean = (of: (step: (typeof steps)[0]) => number) =>
        Math.round(
            (10 * steps.reduce((sum, s) => sum + of(s), 0)) / steps.length,
        ) / 10
    return {
        allocations: mean(step => step.objects),
        allocatedBytes: mean(step => step.bytes),
    }
}

const TRAFFIC: { direction: Direction; program: string }[] = [
    { direction: "publish QoS 0", program: LEAN },
    { direction: "publish QoS 1", program: QOS1 },
    { direction: "receive", program: LEAN },
]

/** How the numbers of a Traffic are called, and how they are guarded. */
const MEASURES: {
    key: keyof Traffic
    what: string
    unit: string
    kind: Guarded["kind"]
}[] = [
    { key: "allocations", what: "allocations", unit: "", kind: "bytes" },
    { key: "allocatedBytes", what: "allocated", unit: "B", kind: "bytes" },
    { key: "writes", what: "socket writes", unit: "", kind: "count" },
    { key: "bytes", what: "bytes on the wire", unit: "B", kind: "count" },
    { key: "restBytes", what: "heap at rest", unit: "B", kind: "bytes" },
    { key: "peakBytes", what: "heap at its peak", unit: "B", kind: "bytes" },
]

/** Receiving writes nothing, and is not seen from within. */
const measuresOf = (direction: Direction) =>
    direction === "receive" ? MEASURES.slice(0, 2) : MEASURES

/** Bytecode of the smallest programs, which do the same. */
const SMALLEST = {
    "minimal client": "devs/minimal.ts",
    "with QoS 1": "test/size/qos1.ts",
}
const SMALLEST_STOCK = "test/bytecode/stock-minimal.ts"

function bytecode(): Figure[] {
    const bytesOf = (file: string) => loadProgram(file).bytecode.length
    return Object.entries(SMALLEST).map(([name, file]) => ({
        what: `bytecode, ${name}`,
        unit: "B",
        ours: bytesOf(file),
        others: { stock: bytesOf(SMALLEST_STOCK) },
    }))
}

/** Where the time goes, for whoever wants to make it less. */
async function callsOfAll(): Promise<Record<string, Calls>> {
    const all: Record<string, Calls> = {}
    for (const { direction, program } of TRAFFIC) {
        const rig = await Rig.start(program)
        if (direction === "receive")
            all[direction] = await callsOf(rig, "receive", LOOKS)
        else {
            const qos = direction === "publish QoS 0" ? 0 : 1
            all[direction] = await callsOf(rig, qos, LOOKS)
        }
        rig.stop()
    }
    return all
}

async function run(bench: Bench): Promise<Report> {
    const figures: Figure[] = []
    const guards: Record<string, Guarded> = {}
    const steps = LOADS.length + TRAFFIC.length
    await bench.progress(0, "compiling")
    const smallest = [...Object.values(SMALLEST), SMALLEST_STOCK]
    await compileAll([LEAN, FULL, QOS1, STOCK, ...smallest], () => {})
    for (const [i, load] of LOADS.entries()) {
        if (bench.stopped()) break
        const figure = await compareCpu(load, bench, part =>
            bench.progress((i + part) / steps, load.name),
        )
        figures.push(figure)
        // Seven rounds are too few to tell a change from noise.
        if (!bench.short)
            guards[`${load.name}: CPU, ours / stock`] = {
                value: ratioOf(figure, "stock"),
                kind: "ratio",
            }
    }
    for (const [i, { direction, program }] of TRAFFIC.entries()) {
        if (bench.stopped()) break
        await bench.progress((LOADS.length + i) / steps, direction)
        const ours = await trafficOf(program, direction)
        const stock = await trafficOf(STOCK, direction)
        for (const { key, what, unit, kind } of measuresOf(direction)) {
            figures.push({
                what: `${direction}: ${what}`,
                unit,
                ours: ours[key],
                others: { stock: stock[key] },
            })
            guards[`${direction}: ${what}`] = { value: ours[key], kind }
        }
    }
    figures.push(...bytecode())
    const table = besides(
        "A device: our client and the stock MQTTClient",
        figures,
    )
    table.notes.push(
        "CPU: medians of rounds by turns in the VM. Heap: with the bench's program, in use after a collection.",
    )
    const tables = [table]
    if (bench.short || bench.stopped())
        return { tables, json: { figures }, guards }
    const calls = await callsOfAll()
    tables.push(callsTable(calls))
    const plain = Object.entries(calls).map(([name, of]) => [
        name,
        Object.fromEntries(of),
    ])
    return {
        tables,
        json: { figures, calls: Object.fromEntries(plain) },
        guards,
    }
}

export const vmPart: Part = {
    name: "vm",
    summary:
        "CPU, heap, bytes and writes on the device, beside the stock MQTTClient",
    seconds: short => (short ? 15 : 40),
    run,
}
