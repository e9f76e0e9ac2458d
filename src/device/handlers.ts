// Runs the application's handlers, one after the other, on a fiber of their own: a handler that
// throws or never returns costs messages, not the connection.
import * as ds from "@devicescript/core"

/** Calls that may wait; a message more is dropped. */
const MAX_CALLS = 16

/** Bytes of all messages that may wait. */
const MAX_BYTES = 4096

/** For whom a call is; it is not made once the owner is dropped. */
interface Owner {
    state: string
}

interface Call {
    handler: (arg: any) => ds.AsyncVoid
    arg: any
    bytes: number
    owner: Owner
}

/** @devsWhenUsed */
export class Handlers {
    calls: Call[] = []
    bytes = 0
    /** Calls since time last had a chance to pass. */
    run = 0
    fiber: ds.Fiber
    /** The fiber waits for a call. It may also be suspended inside a handler, and is not ours to wake then. */
    idle = false

    /** @param counters where a handler that throws is counted */
    constructor(readonly counters: { handlerErrors: number }) {
        const self = this
        const run = async () => {
            self.fiber = ds.Fiber.self()
            while (true) await turn(self)
        }
        run.start()
    }

    /**
     * Has `handler(arg)` called; false when too much waits already. A call without an owner is always
     * taken: whoever makes one makes no second before it is done.
     */
    add(
        handler: (arg: any) => ds.AsyncVoid,
        arg: any,
        bytes: number,
        owner: Owner | undefined,
    ): boolean {
        const count = this.calls.length
        const full = count >= MAX_CALLS || this.bytes + bytes > MAX_BYTES
        // One message of any size: the packet limit is its bound.
        if (owner && count > 0 && full) return false
        this.calls.push({ handler, arg, bytes, owner })
        this.bytes += bytes
        if (this.idle) {
            this.idle = false
            this.fiber.resume(undefined)
        }
        return true
    }

    /** No room for another message. */
    full(): boolean {
        return this.calls.length >= MAX_CALLS || this.bytes >= MAX_BYTES
    }

    /** Whether a fiber is the one that runs handlers. */
    isOwn(fiber: ds.Fiber): boolean {
        return this.fiber === fiber
    }
}

async function turn(handlers: Handlers) {
    const call = handlers.calls.shift()
    if (call === undefined) {
        handlers.idle = true
        return await ds.suspend()
    }
    handlers.bytes -= call.bytes
    if (call.owner && call.owner.state === "dropped") return
    try {
        await call.handler(call.arg)
    } catch (e) {
        handlers.counters.handlerErrors++
        console.error(e as any)
    }
    // Each call has the VM's whole allowance of steps for itself. 0 ms is enough for that, but time
    // stands still in it: calls that lead to calls must not go on so for ever.
    handlers.run = handlers.run < MAX_CALLS ? handlers.run + 1 : 0
    await ds.sleep(handlers.run === 0 ? 1 : 0)
}
