// The device's one socket, lent to something that is not MQTT: the client says goodbye, stays away for as long as it
// takes, and comes back. Messages wait in the outboxes meanwhile.
import * as ds from "@devicescript/core"
import type { Client } from "./client"
import { socketClose } from "./socket"

/** Between two looks at whether the socket is free. DISCONNECT is given 100 ms to leave. */
const LOOK_MS = 10

/** After that the runtime has closed the last socket (ESP32). */
const SETTLE_MS = 100

/** One at a time; in an array, for it is shared. */
let lent = false

/**
 * Runs `use` with the socket free, then lets the client connect again. What was connected comes back at once when
 * `urgent`, else without a ramp and through the spread; what was backing off goes on with that, and `urgent` ends its wait
 * unless it is for an overloaded broker or in the slow lane.
 * @returns false when the socket is lent out already
 */
export async function withSocket(
    client: Client,
    urgent: boolean,
    use: () => Promise<void>,
): Promise<boolean> {
    if (lent) return false
    lent = true
    client.post(() => client.connection.park(ds.millis()))
    while (!isFree(client.state())) await ds.sleep(LOOK_MS)
    client.release()
    await ds.sleep(SETTLE_MS)
    try {
        await use()
    } catch (e) {
        console.error(e as any)
    }
    socketClose()
    client.listen()
    client.post(() => client.connection.unpark(urgent, ds.millis()))
    lent = false
    return true
}

function isFree(state: string): boolean {
    return state === "parked" || state === "halted" || state === "noLink"
}
