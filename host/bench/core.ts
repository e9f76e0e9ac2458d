// The part "core": what a delay of each strategy costs, in Node beside retry libraries that have the same one, and on the
// device. Rounds by turns; what is put on the heap is measured, too: we aim at nothing.
import type { Guarded } from "./baseline"
import { DELAYS, RETRIES, type Contender, type Row } from "./contenders"
import { delaysOnDevice, type DelayCost } from "./delays"
import type { Bench, Part } from "./part"
import {
    besides,
    number,
    type Figure,
    type Report,
    type TextTable,
} from "./report"
import { median, ratioByTurns } from "./stats"

/** Rounds by turns, after as many of everything to warm up as V8 needs to have compiled all of it. */
const ROUNDS = { full: 41, short: 11 }
const WARM_UP = 12

/** A row, and how many times it is done in a round. */
interface Sized extends Row {
    count: number
}

const ROWS: Sized[] = [
    ...DELAYS.map(row => ({ ...row, count: 20_000 })),
    ...RETRIES.map(row => ({ ...row, count: 800 })),
]

/** Of what one thing costs: ns of CPU, and bytes on the heap. */
interface Cost {
    ns: number
    bytes: number
}

/** `count` of them. Bytes are NaN when a collection came between. */
async function costOf({ run }: Contender, count: number): Promise<Cost> {
    const heapBefore = process.memoryUsage().heapUsed
    const before = process.cpuUsage()
    const pending = run(count)
    // Waiting has a cost, too: only where there is something to wait for.
    if (pending) await pending
    const { user, system } = process.cpuUsage(before)
    const grown = process.memoryUsage().heapUsed - heapBefore
    return {
        ns: ((user + system) * 1000) / count,
        bytes: grown < 0 ? NaN : grown / count,
    }
}

const contendersOf = ({ ours, others }: Row): [string, Contender][] =>
    Object.entries({ ours, ...others })

async function warmUp(bench: Bench) {
    for (let i = 0; i < WARM_UP && !bench.stopped(); ++i) {
        await bench.progress((0.2 * i) / WARM_UP, "warming up")
        for (const row of ROWS)
            for (const [, contender] of contendersOf(row))
                await costOf(contender, row.count)
    }
}

/** A row in figures: time and heap. */
async function measure(row: Sized, bench: Bench): Promise<[Figure, Figure]> {
    const contenders = contendersOf(row)
    const costs: Record<string, Cost[]> = {}
    for (const [name] of contenders) costs[name] = []
    const rounds = bench.short ? ROUNDS.short : ROUNDS.full
    for (let i = 0; i < rounds && !bench.stopped(); ++i)
        for (const [name, contender] of i & 1
            ? contenders.toReversed()
            : contenders)
            costs[name].push(await costOf(contender, row.count))
    const nsOf = (name: string) => costs[name].map(cost => cost.ns)
    const bytesOf = (name: string) => {
        const known = costs[name].map(cost => cost.bytes).filter(b => b >= 0)
        return Math.round(median(known))
    }
    const each = <T>(of: (name: string) => T) =>
        Object.fromEntries(Object.keys(row.others).map(n => [n, of(n)]))
    return [
        {
            what: row.what,
            unit: "ns",
            ours: median(nsOf("ours")),
            others: each(name => median(nsOf(name))),
            ratios: each(name => ratioByTurns(nsOf("ours"), nsOf(name))),
        },
        {
            what: `${row.what}: heap`,
            unit: "B",
            ours: bytesOf("ours"),
            others: each(bytesOf),
        },
    ]
}

/** Others that a row lacks have nothing of the kind. */
function withAll(figures: Figure[]): Figure[] {
    const names = [...new Set(figures.flatMap(f => Object.keys(f.others)))]
    return figures.map(figure => ({
        ...figure,
        others: Object.fromEntries(
            names.map(name => [name, figure.others[name] ?? NaN]),
        ),
    }))
}

async function run(bench: Bench): Promise<Report> {
    const figures: Figure[] = []
    const guards: Record<string, Guarded> = {}
    await warmUp(bench)
    for (const [i, row] of ROWS.entries()) {
        if (bench.stopped()) break
        await bench.progress(0.2 + (0.6 * i) / ROWS.length, row.what)
        const [time, heap] = await measure(row, bench)
        figures.push(time, heap)
        // Times depend on what V8 makes of it.
        if (heap.ours === 0)
            guards[`${heap.what} B`] = { value: heap.ours, kind: "count" }
    }
    const tables = [
        besides(
            "The policy in Node: a delay, beside libraries",
            withAll(figures),
        ),
    ]
    let device: Record<string, DelayCost> = {}
    if (!bench.stopped()) {
        await bench.progress(0.8, "on the device")
        device = await delaysOnDevice(bench)
        tables.push(deviceTable(device))
        for (const [name, { allocations, calls }] of Object.entries(device)) {
            const on = `${name}, on the device`
            guards[`${on}: allocations`] = { value: allocations, kind: "count" }
            guards[`${on}: calls`] = { value: calls, kind: "bytes" }
        }
    }
    return { tables, json: { figures, device }, guards }
}

function deviceTable(costs: Record<string, DelayCost>): TextTable {
    return {
        title: "The policy on the device: a delay",
        head: ["", "CPU us", "allocations", "calls"],
        rows: Object.entries(costs).map(([name, cost]) => [
            name,
            cost.us.toFixed(1),
            number(cost.allocations),
            number(cost.calls),
        ]),
        notes: [
            "The runtime puts a frame on the heap for every function call, whatever the function does: that is not counted as an allocation.",
        ],
    }
}

export const corePart: Part = {
    name: "core",
    summary:
        "a delay of each strategy, in Node beside retry libraries, and on the device",
    seconds: short => (short ? 5 : 20),
    run,
}
