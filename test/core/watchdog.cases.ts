// The watchdog as timelines: a supervisor or a native call that never comes back, and all that is no reason.
import { div } from "../../src/core/int"
import {
    plannedRebootDue,
    plannedRebootMs,
    Veto,
    Watchdog,
} from "../../src/core/watchdog"
import { type Case, equal } from "../cases"

const S = 1000
const MIN = 60000
const HOUR = 3600000

/** A watchdog that is asked every 10 s; what it wanted, and when, in seconds. */
class Kennel {
    nowMs = 0
    dog: Watchdog
    mayReboot = true
    private said: string[] = []

    constructor(reboots = 0) {
        this.dog = new Watchdog(0, reboots)
    }

    /** Time passes; `healthy`: the supervisor comes back every minute, as it promised. */
    pass(ms: number, healthy: boolean): Kennel {
        const endMs = this.nowMs + ms
        let beatMs = this.nowMs
        while (this.nowMs < endMs) {
            if (healthy && this.nowMs >= beatMs) {
                beatMs = this.nowMs + MIN
                this.dog.beat(this.nowMs, beatMs)
            }
            this.nowMs += 10 * S
            const remedy = this.dog.check(this.nowMs, this.mayReboot)
            if (remedy !== "fine")
                this.said.push(`${remedy} ${div(this.nowMs, S)}`)
        }
        return this
    }

    /** What was wanted since the last time, the first three. */
    wanted(): string {
        const out = this.said.slice(0, 3).join(", ")
        this.said = []
        return out
    }
}

export function cases(): Case[] {
    return [
        {
            name: "a supervisor that keeps its word: never a reason",
            run: () => {
                const k = new Kennel().pass(2 * HOUR, true)
                equal(k.wanted(), "")
                equal(k.dog.reason, "")
            },
        },
        {
            name: "a supervisor that never comes back: Wi-Fi, and a reboot 5 min later",
            run: () => {
                const k = new Kennel().pass(60 * S, true)
                // It promised 60 s; then 120 s of grace, and two checks.
                k.pass(500 * S, false)
                equal(k.wanted(), "wifi 200, reboot 500, reboot 510")
                equal(k.dog.reason, "supervisor never came back")
            },
        },
        {
            name: "a TLS handshake that never ends, while the supervisor dials on",
            run: () => {
                const k = new Kennel()
                k.dog.nativeStarted(0, 600 * S)
                for (let i = 0; i < 15; ++i) {
                    k.pass(60 * S, true)
                    k.dog.nativeStarted(k.nowMs, 600 * S)
                }
                equal(k.wanted(), "wifi 620")
                k.pass(60 * S, true)
                equal(k.wanted(), "reboot 920, reboot 930, reboot 940")
                equal(k.dog.reason, "native call never came back")
            },
        },
        {
            name: "Wi-Fi's reconnect frees the socket: no reboot",
            run: () => {
                const k = new Kennel()
                k.dog.nativeStarted(0, 60 * S)
                k.pass(100 * S, true)
                equal(k.wanted(), "wifi 80")
                k.dog.nativeDone()
                k.pass(HOUR, true)
                equal(k.wanted(), "")
            },
        },
        {
            name: "stuck again and again: Wi-Fi is asked once in ten minutes, and no reboot while it helps",
            run: () => {
                const k = new Kennel()
                for (let i = 0; i < 20; ++i) {
                    k.dog.nativeStarted(k.nowMs, 30 * S)
                    k.pass(60 * S, true)
                    k.dog.nativeDone()
                    k.pass(10 * S, true)
                }
                equal(k.wanted(), "wifi 50, wifi 680, wifi 1310")
            },
        },
        {
            name: "stuck soon after a reconnect: waits until it may ask again",
            run: () => {
                const k = new Kennel()
                k.dog.nativeStarted(0, 30 * S)
                k.pass(60 * S, true)
                k.dog.nativeDone()
                k.pass(10 * S, true)
                k.dog.nativeStarted(k.nowMs, 30 * S)
                k.pass(1000 * S, true)
                equal(k.wanted(), "wifi 50, wifi 650, reboot 950")
            },
        },
        {
            name: "natives that answer in time: never a reason",
            run: () => {
                const k = new Kennel()
                for (let i = 0; i < 100; ++i) {
                    k.dog.nativeStarted(k.nowMs, 60 * S)
                    k.pass(60 * S, true)
                    k.dog.nativeDone()
                }
                equal(k.wanted(), "")
            },
        },
        {
            name: "each watchdog reboot in a row doubles the wait, to six hours",
            run: () => {
                const stuck = (reboots: number) => {
                    const dog = new Watchdog(0, reboots)
                    let atMin = 0
                    for (let ms = 0; ms < 7 * HOUR; ms += MIN) {
                        if (dog.check(ms, true) === "reboot") return atMin
                        atMin++
                    }
                    return -1
                }
                // Late at 120 s, seen at 3 min, Wi-Fi at 4 min.
                equal(stuck(0), 9)
                equal(stuck(1), 14)
                equal(stuck(2), 24)
                equal(stuck(6), 324)
                equal(stuck(7), 364)
                equal(stuck(9), 364)
                equal(stuck(NaN), 9)
            },
        },
        {
            name: "the program may put a reboot off, for an hour",
            run: () => {
                const k = new Kennel()
                k.mayReboot = false
                k.pass(3000 * S, false)
                equal(k.wanted(), "wifi 140")
                k.mayReboot = true
                k.pass(10 * S, false)
                equal(k.wanted(), "reboot 3010")
                const other = new Kennel()
                other.mayReboot = false
                other.pass(4050 * S, false)
                equal(other.wanted(), "wifi 140, reboot 4040, reboot 4050")
            },
        },
        {
            name: "a reboot that is no longer wanted is forgotten with its veto",
            run: () => {
                const v = new Veto()
                equal(v.over(0, false), false)
                equal(v.over(HOUR - 1, false), false)
                v.forget()
                equal(v.over(HOUR, false), false)
                equal(v.over(HOUR + HOUR, false), true)
                equal(new Veto().over(5, true), true)
            },
        },
        {
            name: "stuck, healthy, and stuck again: the program has its hour again",
            run: () => {
                const k = new Kennel()
                k.mayReboot = false
                k.pass(1000 * S, false)
                k.dog.beat(k.nowMs, k.nowMs)
                k.pass(10 * S, false)
                k.wanted()
                k.pass(4000 * S, false)
                equal(k.wanted(), "wifi 1140")
                k.pass(50 * S, false)
                equal(k.wanted(), "reboot 5040, reboot 5050, reboot 5060")
            },
        },
        {
            name: "a clock that runs back stands still",
            run: () => {
                const dog = new Watchdog(HOUR, 0)
                dog.beat(0, MIN)
                equal(dog.check(HOUR, true), "fine")
                equal(dog.check(HOUR + 2 * MIN, true), "fine")
                equal(dog.check(HOUR + 2 * MIN, true), "fine")
            },
        },
        {
            name: "everything stood still for an hour: the supervisor gets its turn first",
            run: () => {
                const dog = new Watchdog(0, 0)
                dog.beat(0, MIN)
                equal(dog.check(HOUR, true), "fine")
                dog.beat(HOUR + 1, HOUR + MIN)
                equal(dog.check(HOUR + 10 * S, true), "fine")
            },
        },
        {
            name: "a promise without end, or none: ten minutes, or at once",
            run: () => {
                let end = 0x40000000
                end += end
                end += end
                for (const due of [end, end + end, HOUR]) {
                    const k = new Kennel()
                    k.dog.beat(0, due)
                    equal(k.pass(720 * S, false).wanted(), "", `${due}`)
                    equal(k.pass(20 * S, false).wanted(), "wifi 740", `${due}`)
                }
                for (const due of [NaN, -1, 0, -end]) {
                    const k = new Kennel()
                    k.dog.beat(0, due)
                    equal(k.pass(140 * S, false).wanted(), "wifi 140", `${due}`)
                }
            },
        },
        {
            name: "a hard deadline of nonsense is ten minutes",
            run: () => {
                for (const limit of [NaN, 0, -1, HOUR]) {
                    const k = new Kennel()
                    k.dog.nativeStarted(0, limit)
                    k.pass(610 * S, true)
                    equal(k.wanted(), "", `${limit}`)
                    k.pass(10 * S, true)
                    equal(k.wanted(), "wifi 620", `${limit}`)
                }
            },
        },
        {
            name: "times that are none change nothing",
            run: () => {
                let end = 0x40000000
                end += end
                end += end
                const k = new Kennel()
                for (const ms of [NaN, -1, end, end + end, -end]) {
                    equal(k.dog.check(ms, true), "fine", `${ms}`)
                    equal(k.dog.check(ms, true), "fine", `${ms}`)
                }
                k.pass(140 * S, false)
                equal(k.wanted(), "wifi 140")
                const last = new Watchdog(end - 1, 0)
                equal(last.check(end - 1, true), "fine")
            },
        },
        {
            name: "planned reboots of known devices: day 40 to 45, by id",
            run: () => {
                equal(`${plannedRebootMs("1122334455667788")}`, "3741760000")
                equal(`${plannedRebootMs("240ac41234000000")}`, "3498180000")
                equal(`${plannedRebootMs("")}`, "3456000000")
            },
        },
        {
            name: "a planned reboot waits for the program, for an hour",
            run: () => {
                const plan = plannedRebootMs("1122334455667788")
                equal(plannedRebootDue(plan - 1, plan, true), false)
                equal(plannedRebootDue(plan, plan, true), true)
                equal(plannedRebootDue(plan, plan, false), false)
                equal(plannedRebootDue(plan + HOUR - 1, plan, false), false)
                equal(plannedRebootDue(plan + HOUR, plan, false), true)
                equal(plannedRebootDue(NaN, plan, true), false)
            },
        },
    ]
}
