// Runs the application's handlers, one after the other, on a fiber of their own: a handler that
// throws or never returns costs messages, not the connection.
import * as ds from "@devicescript/core"

/** Calls that may wait; a message more is dropped. */
const MAX_CALLS = 16

/** Bytes of all messages that may wait. */
const MAX_BYTES = 4096

interface Call {
    handler: (arg: any) => ds.AsyncVoid
    arg: any
    bytes: number
}

export class Handlers {
    private calls: Call[] = []
    private bytes = 0
    private fiber: ds.Fiber

    /** @param counters where a handler that throws is counted */
    constructor(private readonly counters: { handlerErrors: number }) {
        const self = this
        const run = async () => {
            self.fiber = ds.Fiber.self()
            while (true) await self.turn()
        }
        run.start()
    }

    /** Has `handler(arg)` called; false when too much waits already. */
    add(handler: (arg: any) => ds.AsyncVoid, arg: any, bytes: number): boolean {
        if (this.calls.length >= MAX_CALLS || this.bytes + bytes > MAX_BYTES)
            return false
        this.calls.push({ handler, arg, bytes })
        this.bytes += bytes
        if (this.fiber && this.fiber.suspended) this.fiber.resume(undefined)
        return true
    }

    private async turn() {
        const call = this.calls.shift()
        if (call === undefined) return await ds.suspend()
        this.bytes -= call.bytes
        try {
            await call.handler(call.arg)
        } catch (e) {
            this.counters.handlerErrors++
            console.error(e as any)
        }
    }
}
