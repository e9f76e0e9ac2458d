// The watchdog: is this device stuck, and what is to be done about it? Pure: it is told the time, when the
// supervisor says that it will be back, and which native calls have not answered.
//
// Evidence is only what a healthy device can't show, whatever the broker and the network do:
// - the supervisor is not back although its own promise is over, by a grace;
// - a native call has not answered by its hard deadline. The socket worker can block for ever, in a TLS handshake with a
//   peer that says nothing. One deadline runs for the oldest call without an answer: a blocked worker answers none,
//   and a new call must not buy it time. Any event of the socket is an answer.
// A broker that is down, refuses, is unknown to DNS or doesn't like the password answers in time: that is never a reason.
//
// | stage  | when the evidence                    | does                                                    |
// |--------|--------------------------------------|---------------------------------------------------------|
// | wifi   | appears; 10 min apart at least       | Wi-Fi reconnects: sockets fail, which frees the worker  |
// | reboot | is still there 5 min after           | a reboot, unless the program says no, for an hour at    |
// |        |                                      | most; each reboot in a row doubles the 5 min, to 6 h    |
//
// Evidence that goes ends both. The restart limit counts every reboot; but since a watchdog's reboots
// are further apart than its window, and can be further apart than a stable run, the doubling is what limits them.

import { MAX_INT, mulDiv, umod } from "./int"
import { hash31 } from "./record"

/** How late the supervisor may be: far more than any collection or long handler costs. */
export const GRACE_MS = 120000

/** The hard deadline of a native call that names none, and the longest there is. */
export const NATIVE_MS = 600000

/** A promise to be back later than this counts as this. */
const MAX_PROMISE_MS = 600000

/** Wi-Fi is not asked to reconnect more often. */
const WIFI_APART_MS = 600000

/** From the Wi-Fi reconnect to the reboot; doubled by each reboot in a row. */
const REBOOT_AFTER_MS = 300000
const REBOOT_AFTER_MAX_MS = 21600000

/** The program's veto ends here, and a flash's that takes no reason. */
export const VETO_MS = 3600000

/** What the watchdog wants done, now. */
export type Remedy = "fine" | "wifi" | "reboot"

/** One device's watchdog. All times are values of one clock, 0 to 2^32 ms; no method throws. */
export class Watchdog {
    /** Why it last wanted something, in words; at most 40 characters. */
    reason = ""
    /** The supervisor has to be back by then. */
    private beatDueMs: number
    /** The oldest native call without an answer has to have one by then; -1 for none. */
    private nativeDueMs = -1
    /** When Wi-Fi was last asked to reconnect; -1 for never. */
    private wifiMs = -1
    /** The last check saw evidence. One isn't enough: after a standstill of everything the check may only be first. */
    private seen = false
    /** The evidence has been there since Wi-Fi was asked. */
    private stuck = false
    private readonly rebootAfterMs: number
    private readonly veto = new Veto()
    private lastMs = 0

    /** `reboots`: watchdog reboots in a row so far, as the restart record says. */
    constructor(nowMs: number, reboots: number) {
        this.beatDueMs = this.promise(this.at(nowMs), 0)
        let afterMs = REBOOT_AFTER_MS
        for (let i = 0; i < reboots && afterMs < REBOOT_AFTER_MAX_MS; ++i)
            afterMs += afterMs
        this.rebootAfterMs =
            afterMs < REBOOT_AFTER_MAX_MS ? afterMs : REBOOT_AFTER_MAX_MS
    }

    /** The supervisor has a turn, and will be back by promisedDueMs. */
    beat(nowMs: number, promisedDueMs: number): void {
        const atMs = this.at(nowMs)
        this.beatDueMs = this.promise(atMs, promisedDueMs - atMs)
    }

    /** A native call begins whose answer comes later; limitMs is its hard deadline, 1 to NATIVE_MS. */
    nativeStarted(nowMs: number, limitMs: number): void {
        if (this.nativeDueMs >= 0) return
        const ms = limitMs >= 1 && limitMs <= NATIVE_MS ? limitMs : NATIVE_MS
        this.nativeDueMs = this.at(nowMs) + ms
    }

    /** The native answered, no matter what. */
    nativeDone(): void {
        this.nativeDueMs = -1
    }

    /** Call every few seconds, from a fiber of its own. `wifi` comes once, `reboot` every time from then on. */
    check(nowMs: number, mayReboot: boolean): Remedy {
        const atMs = this.at(nowMs)
        if (!this.isLate(atMs)) {
            this.seen = false
            this.stuck = false
            this.veto.forget()
            return "fine"
        }
        if (!this.seen) {
            this.seen = true
            return "fine"
        }
        if (!this.stuck) {
            if (this.wifiMs >= 0 && atMs - this.wifiMs < WIFI_APART_MS)
                return "fine"
            this.stuck = true
            this.wifiMs = atMs
            return "wifi"
        }
        if (atMs - this.wifiMs < this.rebootAfterMs) return "fine"
        return this.veto.over(atMs, mayReboot) ? "reboot" : "fine"
    }

    /** The time, which doesn't run back; what is no time of a 2^32 ms clock is the last that was. */
    private at(nowMs: number): number {
        if (nowMs > this.lastMs && nowMs - MAX_INT - 1 <= MAX_INT)
            this.lastMs = nowMs
        return this.lastMs
    }

    private isLate(nowMs: number): boolean {
        if (this.nativeDueMs >= 0 && nowMs > this.nativeDueMs) {
            this.reason = "native call never came back"
            return true
        }
        if (nowMs > this.beatDueMs) {
            this.reason = "supervisor never came back"
            return true
        }
        return false
    }

    private promise(nowMs: number, inMs: number): number {
        const ms = inMs > 0 ? inMs : 0
        return nowMs + GRACE_MS + (ms < MAX_PROMISE_MS ? ms : MAX_PROMISE_MS)
    }
}

/** A say in when the device reboots: the program's, or the flash's. It may put it off, but not for ever. */
export class Veto {
    /** Since when a reboot has been wanted; -1 when it isn't. */
    private sinceMs = -1

    /** Whether a wanted reboot may happen now; it may after VETO_MS in any case. */
    over(nowMs: number, mayReboot: boolean): boolean {
        if (this.sinceMs < 0) this.sinceMs = nowMs
        return mayReboot || !(nowMs - this.sinceMs < VETO_MS)
    }

    /** No reboot is wanted any more. */
    forget(): void {
        this.sinceMs = -1
    }
}

/**
 * The uptime at which a device reboots because at 2^32 ms (49.7 days) every timer of the runtime stops: from 40 to 45
 * days in whole seconds, spread evenly over a fleet by the device id.
 */
export function plannedRebootMs(deviceId: string): number {
    const upS = 3456000 + umod(hash31(deviceId), 432001)
    // No int32: made of two halves that are.
    const halfMs = mulDiv(upS, 500, 1)
    return halfMs + halfMs
}

/** Whether it is time for the planned reboot, whatever the program says once VETO_MS have passed. */
export function plannedRebootDue(
    nowMs: number,
    plannedMs: number,
    mayReboot: boolean,
): boolean {
    if (!(nowMs >= plannedMs)) return false
    return mayReboot || nowMs - plannedMs >= VETO_MS
}
