// The watchdog on a device: a fiber of its own that looks every 10 s whether the connection's supervisor and its natives
// still answer, and reboots before the clock's end. What counts as evidence, and what is done about it, is in core/watchdog.ts.
import * as ds from "@devicescript/core"
import {
    plannedRebootDue,
    plannedRebootMs,
    Veto,
    Watchdog,
} from "../core/watchdog"
import type { Client } from "./client"
import { log } from "./log"
import { rejoinWifi } from "./link"
import { reboot } from "./reboot"
import type { RestartLimit } from "./restart-limit"

const LOOK_MS = 10000

/** From one try to write down why it reboots to the next. */
const LEAVE_APART_MS = 600000

/**
 * Watches a client. When the device is stuck, Wi-Fi is asked to reconnect, and 5 min later the device reboots; a broker
 * that is down is never a reason. Between day 40 and day 45 of its uptime the device reboots, because on day 49 every timer
 * of the runtime stops. The restart limit counts all reboots but the latter. A flash that doesn't take the reason puts a reboot
 * off for an hour at most, too; then it looks like a power-on.
 * @param mayReboot false puts a reboot off, for an hour at most
 */
export function startWatchdog(
    client: Client,
    limit: RestartLimit,
    mayReboot?: () => boolean,
) {
    const dog = new Watchdog(ds.millis(), limit.watchdogs())
    const plannedMs = plannedRebootMs(ds.deviceIdentifier("self"))
    const flash = new Veto()
    let leaveMs = -1
    client.monitor = dog
    const rescue = async (nowMs: number) => {
        if (leaveMs >= 0 && nowMs - leaveMs < LEAVE_APART_MS) return
        leaveMs = nowMs
        const anyway = flash.over(nowMs, false)
        await reboot(client, limit, "watchdog", dog.reason, anyway)
    }
    const look = async () => {
        const nowMs = ds.millis()
        const may = mayReboot ? asked(mayReboot) : true
        const remedy = dog.check(nowMs, may)
        if (remedy !== "reboot") flash.forget()
        if (plannedRebootDue(nowMs, plannedMs, may))
            await reboot(client, limit, "planned", "the clock ends soon", true)
        else if (remedy === "reboot") await rescue(nowMs)
        else if (remedy === "wifi") {
            log({ ev: "link", up: client.connection.hasLink, why: dog.reason })
            rejoinWifi()
        }
    }
    const run = async () => {
        while (true) {
            await ds.sleep(LOOK_MS)
            await look()
        }
    }
    run.start()
}

/** The application's answer. One that throws says no: that ends, too. */
function asked(mayReboot: () => boolean): boolean {
    try {
        return mayReboot()
    } catch (e) {
        console.error(e as any)
        return false
    }
}
