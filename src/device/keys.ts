// The idempotency keys of this program start; core/key.ts has the rules.
import * as ds from "@devicescript/core"
import { Keys } from "../core/key"

let keys: Keys = undefined

/** A new idempotency key. The start's 64 bits are drawn from hardware at the first call. */
export function newKey(): string {
    if (!keys) {
        const entropy = Buffer.alloc(8)
        ;(entropy as any).fillRandom()
        keys = new Keys(ds.deviceIdentifier("self"), entropy)
    }
    return keys.next()
}
