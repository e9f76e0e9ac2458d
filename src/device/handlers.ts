// Runs the application's handlers, one after the other: a handler that throws or never returns costs
// messages, not the connection.
//
// No fiber waits for calls: they are made on the fiber that brought the message (`runCalls`), since to switch
// fibers costs more than all else about it, or on one made for them (`startCalls`).
import * as ds from "@devicescript/core"
import type { Publish } from "../mqtt/packets"

/** Calls that may wait; a message more is dropped. */
const MAX_CALLS = 16

/** Bytes of all messages that may wait. */
const MAX_BYTES = 4096

/** Whose handler is called, the one there is; it is not called once its owner is "dropped". */
interface Owner {
    state: string
    handlers: ((arg: any) => ds.AsyncVoid)[]
}

export class Handlers {
    /** Owner and argument of each call by turns: an object for each would be garbage. */
    calls: any[] = []
    /** The fiber that makes the calls; undefined when none does. */
    fiber: ds.Fiber = undefined
    /** Calls since time last had a chance to pass. */
    streak = 0

    constructor(
        readonly counters: { received: number; handlerErrors: number },
    ) {}
}

/**
 * Has the owner's handler called with `arg` by the next `runCalls` or `startCalls`; false when too much waits already. Only
 * a message is ever refused: who makes other calls (a state, what became of a message) makes few.
 */
export function addCall(handlers: Handlers, owner: Owner, arg: any): boolean {
    const calls = handlers.calls
    // One message of any size: the packet limit is its bound.
    if (calls.length > 0)
        if (bytesOf(arg) > 0 && !hasRoom(calls, bytesOf(arg))) return false
    calls.push(owner, arg)
    return true
}

/** No room for another message like the last: as large, and for as many handlers. */
export function isFull({ calls }: Handlers): boolean {
    let end = calls.length
    const last = calls[end - 1]
    let bytes = 0
    for (let i = end - 1; i > 0 && calls[i] === last; i -= 2) {
        end += 2
        bytes += bytesOf(last)
    }
    return end > MAX_CALLS + MAX_CALLS || !hasRoom(calls, bytes)
}

/** Bytes are counted when something waits, which is seldom, and not for each message. */
function hasRoom(calls: any[], bytes: number): boolean {
    if (calls.length >= MAX_CALLS + MAX_CALLS) return false
    let all = bytes
    for (let i = 1; i < calls.length; i += 2) all += bytesOf(calls[i])
    return all <= MAX_BYTES
}

/** What a message takes while it waits. */
export function messageBytes(message: Publish): number {
    return message.payload.length + message.topic.length
}

/** Bytes of what a call is made with; 0 unless it is a message. */
function bytesOf(arg: any): number {
    return arg && arg.payload ? messageBytes(arg) : 0
}

/** Has the calls made by a fiber of their own, unless one is at it. */
export function startCalls(handlers: Handlers) {
    if (handlers.fiber || handlers.calls.length === 0) return
    const run = async () => {
        handlers.fiber = undefined
        await runCalls(handlers)
    }
    // From now on: of many messages and answers in a row each would start another.
    handlers.fiber = run.start()
}

/** Makes the calls, unless another fiber is at it. */
export async function runCalls(handlers: Handlers) {
    const calls = handlers.calls
    if (handlers.fiber) return
    if (calls.length === 0) return
    handlers.fiber = ds.Fiber.self()
    while (true) {
        const owner: Owner = calls[0]
        const arg = calls[1]
        calls.insert(0, -2)
        if (owner.state !== "dropped")
            try {
                if (arg) if (arg.payload) handlers.counters.received++
                await owner.handlers[0](arg)
            } catch (e) {
                handlers.counters.handlerErrors++
                console.error(e as any)
            }
        if (calls.length === 0) break
        // Each call has the VM's whole allowance of steps for itself. 0 ms is enough for that, but time
        // stands still in it: calls that lead to calls must not go on so for ever.
        handlers.streak = handlers.streak < MAX_CALLS ? handlers.streak + 1 : 0
        await ds.sleep(handlers.streak === 0 ? 1 : 0)
    }
    handlers.fiber = undefined
}
