// Walks the garbage-collected heap of a running program from outside, without disturbing it:
// how full it is, what lives there, how many fibers and calls are under way.
// What is garbage but not yet collected counts as used; compare the lowest of several looks.
import { fibersOf, findContext, heapOf, memoryOf } from "../vm/context"

/** What a walk found. Sizes include block headers. */
export interface HeapReport {
    totalBytes: number
    usedBytes: number
    freeBytes: number
    /** The largest single free block. */
    largestFreeBytes: number
    /** Blocks in use, and free ones. */
    objects: number
    freeBlocks: number
    /** Blocks in use and their bytes, by kind. */
    kinds: Record<string, { objects: number; bytes: number }>
    /** Live fibers: loops, timers, handlers, and whoever waits. */
    fibers: number
    /** Calls on the stacks of all fibers, garbage and closures' frames included. */
    activations: number
}

/** Names of the tags 1..12 of a block (devs_objects.h). */
const KINDS = [
    "?",
    "free",
    "bytes",
    "array",
    "map",
    "buffer",
    "string",
    "function",
    "activation",
    "halfStaticMap",
    "shortMap",
    "packet",
    "longString",
    "builtinProto",
    "image",
    "final",
]

const FREE = 1
const FINAL = 15

/**
 * @param memory the VM's memory
 * @throws Error when no program is running or the heap is damaged
 */
export function walkHeap(memory: Uint8Array): HeapReport {
    const views = memoryOf(memory)
    const ctx = findContext(views)
    if (!ctx) throw new Error("no program is running")
    const { u32 } = views
    const report: HeapReport = {
        totalBytes: 0,
        usedBytes: 0,
        freeBytes: 0,
        largestFreeBytes: 0,
        objects: 0,
        freeBlocks: 0,
        kinds: {},
        fibers: fibersOf(views, ctx).length,
        activations: 0,
    }
    for (let chunk = heapOf(views, ctx); chunk; chunk = u32[chunk >> 2]) {
        const end = u32[(chunk >> 2) + 1]
        let at = chunk + 8
        while (at < end) at += addBlock(report, u32[at >> 2], at)
        if (at !== end || ((u32[end >> 2] >>> 24) & 15) !== FINAL)
            throw new Error(`the heap's blocks do not end at ${end}`)
    }
    report.activations = report.kinds.activation?.objects ?? 0
    return report
}

/** Counts one block; returns its bytes. */
function addBlock(report: HeapReport, header: number, at: number): number {
    const tag = (header >>> 24) & 15
    const bytes = (header & 0xffffff) * 4
    if (bytes === 0) throw new Error(`an empty block in the heap at ${at}`)
    report.totalBytes += bytes
    if (tag === FREE) {
        report.freeBytes += bytes
        report.freeBlocks++
        if (bytes > report.largestFreeBytes) report.largestFreeBytes = bytes
        return bytes
    }
    report.usedBytes += bytes
    report.objects++
    const kind = (report.kinds[KINDS[tag]] ??= { objects: 0, bytes: 0 })
    kind.objects++
    kind.bytes += bytes
    return bytes
}
