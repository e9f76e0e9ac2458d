// Looks into a VM's memory from outside: the running program's context, its fibers, its heap.
// Field offsets are those of DeviceScript 2.16.4 on wasm32 (devs_internal.h, gc_alloc.c);
// module.ts makes sure it is that version. Every look checks what it finds before it believes it.

/** Offsets in devs_ctx_t, in bytes. */
const ERROR_CODE = 8 // uint16
const SUSPENSION = 70 // uint8
const IMAGE = 228 // the program's first byte
const FIBERS = 240 // first devs_fiber_t
const GC = 288 // devs_gc_t

/** Offsets in devs_fiber_t. */
const NEXT = 0
const AWAITED = 8 // points to a flag, when the fiber awaits a native
const KIND = 16 // low 4 bits: what it waits for; bit 5: a role has news for it
const WAKE_TIME = 24 // by the device's clock; 0: none
const FIBER_CTX = 44

const KIND_AWAITING = 5
const ROLE_NEWS = 0x20

/** Offsets in devs_gc_t. */
const GC_FIRST_CHUNK = 4
const GC_CTX = 20

/** First words of every program: the second one is of its format, 2.16. */
const PROGRAM_MAGIC = 0x53766544
const PROGRAM_FORMAT = 0xf1296e0a
/** Low word of devs_ctx_t's time of the last turn, ms. */
const NOW = 256

/** The views of one VM's memory. */
export interface Memory {
    u8: Uint8Array
    u32: Uint32Array
}

/** Both views of a VM's memory, whose buffer changes when it grows. */
export function memoryOf(u8: Uint8Array): Memory {
    const { buffer, byteOffset, length } = u8
    return { u8, u32: new Uint32Array(buffer, byteOffset, length >> 2) }
}

/** Programs and contexts lie low in the VM's 16 MB; looking further costs more than all else when there is none. */
const SEARCH_WORDS = 1 << 18

/** The addresses of the compiled programs in a VM's memory. */
export function programsIn({ u32 }: Memory): number[] {
    const low = u32.subarray(0, SEARCH_WORDS)
    const found: number[] = []
    for (let i = -1; (i = low.indexOf(PROGRAM_MAGIC, i + 1)) >= 0;)
        if (low[i + 1] === PROGRAM_FORMAT) found.push(4 * i)
    return found
}

/** Where programs found before had their contexts: all VMs of a process allocate alike. */
const hints: number[] = []

/**
 * The address of the running program's context, or 0 when there is none (a program that has
 * just died, or none at all).
 */
export function findContext(memory: Memory, from = 0): number {
    if (isContext(memory, from)) return from
    for (const hint of hints) if (isContext(memory, hint)) return hint
    const { u32 } = memory
    const words = Math.min(u32.length, SEARCH_WORDS)
    // A context points to its program, so look for what points to a program's first word.
    for (let i = 0; i < words; ++i) {
        const ctx = 4 * i - IMAGE
        if (!isContext(memory, ctx)) continue
        hints.push(ctx)
        return ctx
    }
    return 0
}

function isContext({ u32 }: Memory, ctx: number): boolean {
    if (ctx <= 0 || ctx & 3) return false
    const image = u32[(ctx + IMAGE) >> 2]
    if (image === 0 || image & 3 || u32[image >> 2] !== PROGRAM_MAGIC)
        return false
    const gc = u32[(ctx + GC) >> 2]
    return gc !== 0 && (gc & 3) === 0 && u32[(gc + GC_CTX) >> 2] === ctx
}

/** Addresses of the live fibers, in the order they were started. */
export function fibersOf({ u32 }: Memory, ctx: number): number[] {
    const fibers: number[] = []
    let fiber = u32[(ctx + FIBERS) >> 2]
    for (; fiber; fiber = u32[(fiber + NEXT) >> 2]) {
        if (u32[(fiber + FIBER_CTX) >> 2] !== ctx || fibers.length > 10_000)
            throw new Error("the list of fibers is not where it should be")
        fibers.push(fiber)
    }
    return fibers
}

/** The address of the running program's first byte. */
export function imageOf({ u32 }: Memory, ctx: number): number {
    return u32[(ctx + IMAGE) >> 2]
}

/** The address of the first chunk of the program's heap. */
export function heapOf({ u32 }: Memory, ctx: number): number {
    return u32[(u32[(ctx + GC) >> 2] + GC_FIRST_CHUNK) >> 2]
}

/**
 * How long the program itself could sleep now, ms: until its earliest fiber wants to run. 0 when something
 * waits for the next turn already, Infinity when nothing but an event can wake it.
 */
export function idleMs(memory: Memory, ctx: number): number {
    const { u8, u32 } = memory
    const word = ctx >> 2
    if (u32[(ctx + ERROR_CODE) >> 2] & 0xffff || u8[ctx + SUSPENSION]) return 0
    const nowMs = u32[word + (NOW >> 2)]
    let idle = Infinity
    for (
        let fiber = u32[word + (FIBERS >> 2)];
        fiber;
        fiber = u32[fiber >> 2]
    ) {
        const at = fiber >> 2
        const flags = u8[fiber + KIND]
        if (flags & ROLE_NEWS) return 0
        if (
            (flags & 15) === KIND_AWAITING &&
            u8[u32[at + (AWAITED >> 2)]] !== 0
        )
            return 0
        const wakeMs = u32[at + (WAKE_TIME >> 2)]
        if (wakeMs === 0) continue
        const left = (wakeMs - nowMs) | 0
        if (left <= 0) return 0
        if (left < idle) idle = left
    }
    return idle
}
