// Walks the garbage-collected heap of a running program from outside, without disturbing it:
// how full it is, what lives there, how many fibers and calls are under way.
// What is garbage but not yet collected counts as used; compare the lowest of several looks.
import {
    fibersOf,
    findContext,
    heapOf,
    imageOf,
    memoryOf,
    type Memory,
} from "../vm/context"

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

/** Offset of the function's description in a frame (devs_activation_t), and of the functions' section in a program's header. */
const FRAME_FUNCTION = 16
const FUNCTIONS_SECTION = 32
const ACTIVATION = KINDS.indexOf("activation")

/**
 * How many frames of each function are on the heap, by its number in the program: one for each call since the last
 * collection, and those of calls that go on.
 * @param functions how many the program has
 */
export function framesByFunction(
    memory: Uint8Array,
    functions: number,
): Map<number, number> {
    const views = memoryOf(memory)
    const ctx = findContext(views)
    if (!ctx) throw new Error("no program is running")
    const { u32 } = views
    const image = imageOf(views, ctx)
    const section = (image + FUNCTIONS_SECTION) >> 2
    const start = image + u32[section]
    const size = u32[section + 1] / functions
    const frames = new Map<number, number>()
    for (let chunk = heapOf(views, ctx); chunk; chunk = u32[chunk >> 2]) {
        const end = u32[(chunk >> 2) + 1]
        for (let at = chunk + 8; at < end;) {
            const header = u32[at >> 2]
            if (((header >>> 24) & 15) === ACTIVATION) {
                const index = (u32[(at + FRAME_FUNCTION) >> 2] - start) / size
                frames.set(index, (frames.get(index) ?? 0) + 1)
            }
            at += (header & 0xffffff) * 4
        }
    }
    return frames
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

/**
 * Bytes of the heap that a garbage collection would leave, block headers included: what can be reached from the
 * program's context, when every word that looks like a pointer to a block is one.
 * @param memory the VM's memory, with a program running
 */
export function liveHeapBytes(memory: Uint8Array): number {
    const views = memoryOf(memory)
    const ctx = findContext(views)
    if (!ctx) throw new Error("no program is running")
    const { u32 } = views
    const blocks = new Map<number, number>()
    for (let chunk = heapOf(views, ctx); chunk; chunk = u32[chunk >> 2]) {
        const end = u32[(chunk >> 2) + 1]
        for (let at = chunk + 8; at < end; at += blocks.get(at)!)
            blocks.set(at, (u32[at >> 2] & 0xffffff) * 4)
    }
    return reachable(u32, blocks, rootsOf(views, ctx, blocks))
}

/** Blocks that the VM itself may not free have this in their tag. */
const PINNED = 0xf0

/** Bytes of the context and of a fiber in which pointers into the heap are looked for. */
const CONTEXT_BYTES = 400
const FIBER_BYTES = 64

/** Words that may point to what is alive: all of the context and of the fibers, and pinned blocks. */
function rootsOf(views: Memory, ctx: number, blocks: Map<number, number>) {
    const { u32 } = views
    const roots: number[] = []
    for (const at of blocks.keys()) {
        const tag = u32[at >> 2] >>> 24
        if ((tag & 15) !== FREE && tag & PINNED) roots.push(at)
    }
    const add = (from: number, bytes: number) =>
        roots.push(...u32.subarray(from >> 2, (from + bytes) >> 2))
    add(ctx, CONTEXT_BYTES)
    for (const fiber of fibersOf(views, ctx)) add(fiber, FIBER_BYTES)
    return roots
}

function reachable(
    u32: Uint32Array,
    blocks: Map<number, number>,
    roots: number[],
): number {
    let bytes = 0
    const seen = new Set<number>()
    const work = [...roots]
    while (work.length) {
        const word = work.pop()!
        // To the block, or to what comes after its header.
        const at = [word, word - 4, word - 8].find(a => blocks.has(a))
        if (at === undefined || seen.has(at)) continue
        seen.add(at)
        if (((u32[at >> 2] >>> 24) & 15) === FREE) continue
        const size = blocks.get(at)!
        bytes += size
        const data = slotsOf(u32, at)
        if (data === undefined || !blocks.has(data.at)) {
            work.push(...u32.subarray((at >> 2) + 1, (at + size) >> 2))
            continue
        }
        // What belongs to it, and what its slots in use point to: those beyond its length hold what was there before.
        work.push(u32[(at + OWNER) >> 2])
        if (seen.has(data.at)) continue
        seen.add(data.at)
        bytes += blocks.get(data.at)!
        const first = (data.at >> 2) + 1
        work.push(...u32.subarray(first, first + data.words))
    }
    return bytes
}

/** Offsets in an array (devs_array_t) and a map (devs_map_t): attached map or prototype, length, pointer to the slots. */
const OWNER = 4
const LENGTH = 8 // uint16
const SLOTS = 12

/** Words of a slot, by tag: an array's value, a map's key and value. */
const SLOT_WORDS = [0, 0, 0, 2, 4]

/** The block that holds an array's or a map's slots, and the words of it that are in use. */
function slotsOf(u32: Uint32Array, at: number) {
    const words = SLOT_WORDS[(u32[at >> 2] >>> 24) & 15]
    if (!words) return undefined
    const length = u32[(at + LENGTH) >> 2] & 0xffff
    return { at: u32[(at + SLOTS) >> 2] - 4, words: words * length }
}
