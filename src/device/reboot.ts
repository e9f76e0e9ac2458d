// How a device reboots on purpose: the reason goes into flash and onto the console, the broker hears a goodbye.
import * as ds from "@devicescript/core"
import type { Intent } from "../core/record"
import type { Client } from "./client"
import { log } from "./log"

/** How long a clean goodbye may take before a reboot happens without it. */
const GOODBYE_MS = 1000

/** Who must know before a reboot: the restart limit, when there is one. */
export interface Leaves {
    leave(intent: Intent): Promise<boolean>
    /** A reboot now would count as a failed trial. */
    isOnTrial(): boolean
}

/**
 * Says goodbye to the broker and reboots.
 * @param anyway even when flash doesn't take the reason
 * @returns false, without rebooting, when flash doesn't take the reason
 */
export async function reboot(
    client: Client,
    limit: Leaves | undefined,
    cause: "watchdog" | "planned" | "command",
    reason: string,
    anyway: boolean,
): Promise<boolean> {
    if (limit && !(await limit.leave(cause)) && !anyway) return false
    log({ ev: "reboot", cause, reason })
    client.stop()
    const giveUpMs = ds.millis() + GOODBYE_MS
    while (client.state() !== "halted" && ds.millis() < giveUpMs)
        await ds.sleep(20)
    if (client.parts.qos1) await client.parts.qos1.save()
    ds.reboot()
    return true
}
