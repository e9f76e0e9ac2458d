// The restart limit as timelines: devices in the field that crash, are cut off, deployed to, held and let go.
import { mulDiv } from "../../src/core/int"
import {
    formatRecord,
    readRecord,
    type Intent,
    type RecordProblem,
    type RestartRecord,
} from "../../src/core/record"
import {
    clearHold,
    decide,
    defaultRestartPolicy,
    readRestartPolicy,
    settled,
    settleMs,
    trialStarts,
    withIntent,
    type Decision,
    type RestartPolicy,
} from "../../src/core/restart"
import { type Case, equal } from "../cases"
import { Store } from "./config.cases"

/** From a panic, and from restart(), to the next start; from power-on to the first (measured). */
const AFTER_CRASH_MS = 5250
const AFTER_RESTART_MS = 1050
const AFTER_POWER_MS = 1160

const S = 1000
const MIN = 60000

/** A device with its flash, its chip's clock, and the steps that the device's code takes around the limit. */
export class Field {
    /** True time. The chip's clock is what has passed since bootMs. */
    nowMs = AFTER_POWER_MS
    bootMs = 0
    flash: string | undefined = undefined
    build = "one"
    /** Writes to flash, in all and since the last start. */
    writes = 0
    startWrites = 0
    /** The power goes at this write: before it, or right after it. -1: never. */
    cutAt = -1
    cutBefore = false
    /** The power has gone in this run. */
    dead = false
    /** On the network. */
    online = false
    /** Where the limit stands for this run. */
    last!: Decision
    record!: RestartRecord
    problem: RecordProblem | undefined = undefined
    /** When the hold ends and when to settle, in true time; -1 for never. */
    holdEndMs = -1
    settleAtMs = -1

    /** Where a light field keeps its record. */
    private stored: RestartRecord | undefined = undefined

    /** `light`: the flash holds the record itself, not its text, for timelines that are long on the device. */
    constructor(
        public light = false,
        public policy: RestartPolicy = defaultRestartPolicy(),
    ) {
        this.begin()
    }

    upMs(): number {
        return this.nowMs - this.bootMs
    }

    /** A program start, and the run as long as it takes no time. */
    begin(): string {
        this.dead = false
        this.startWrites = 0
        const read = this.stored
            ? { record: this.stored, problem: undefined }
            : readRecord(this.flash)
        const facts = {
            upMs: this.upMs(),
            build: this.build,
            problem: read.problem,
        }
        this.problem = read.problem
        this.last = decide(read.record, facts, this.policy)
        this.record = this.last.record
        if (this.last.write) this.save()
        this.online = !this.dead && this.last.action !== "held"
        this.holdEndMs =
            this.last.action === "held" ? this.nowMs + this.last.leftMs : -1
        this.planSettle()
        return this.letter()
    }

    /** R, H or T: what this start may do. */
    letter(): string {
        return this.last.action.charAt(0).toUpperCase()
    }

    /** The program runs for so long. */
    run(ms: number): Field {
        const endMs = this.nowMs + ms
        while (!this.dead) {
            const settle =
                this.settleAtMs >= 0 &&
                (this.holdEndMs < 0 || this.settleAtMs <= this.holdEndMs)
            const dueMs = settle ? this.settleAtMs : this.holdEndMs
            if (dueMs < 0 || dueMs > endMs) break
            this.nowMs = dueMs
            if (settle) {
                this.settleAtMs = -1
                this.record = settled(this.record, this.upMs(), this.policy)
                this.save()
            } else {
                const r = trialStarts(this.record, this.upMs())
                this.endHold(r, r.state === "trial")
            }
        }
        this.nowMs = endMs
        return this
    }

    /** A person ends the hold. */
    person(): Field {
        this.endHold(clearHold(this.record, this.upMs()), true)
        return this
    }

    /** Runs for ms and crashes; the next start's letter. */
    crash(ms: number): string {
        this.run(ms)
        if (this.dead) return this.powerOn(10 * S)
        this.nowMs += AFTER_CRASH_MS
        return this.begin()
    }

    /** Runs for ms and restarts or reboots on purpose. */
    leave(intent: Intent, ms: number): string {
        this.run(ms)
        if (!this.dead) {
            this.record = withIntent(this.record, intent, this.upMs())
            this.save()
        }
        if (this.dead) return this.powerOn(10 * S)
        if (intent !== "restart") return this.powerOn(0)
        this.nowMs += AFTER_RESTART_MS
        return this.begin()
    }

    /** Runs for ms, then has no power for 10 s. */
    cut(ms: number): string {
        this.run(ms)
        return this.powerOn(10 * S)
    }

    /** Runs for ms, then gets another build. */
    deploy(build: string, ms: number): string {
        this.run(ms)
        this.build = build
        if (this.dead) return this.powerOn(10 * S)
        this.nowMs += 20
        return this.begin()
    }

    /** Each of these count times. */
    crashes(count: number, ms: number): string {
        let out = ""
        for (let i = 0; i < count; ++i) out += this.crash(ms)
        return out
    }

    cuts(count: number, ms: number): string {
        let out = ""
        for (let i = 0; i < count; ++i) out += this.cut(ms)
        return out
    }

    private powerOn(offMs: number): string {
        this.bootMs = this.nowMs + offMs
        this.nowMs = this.bootMs + AFTER_POWER_MS
        return this.begin()
    }

    private endHold(record: RestartRecord, writes: boolean) {
        this.record = record
        this.holdEndMs = -1
        if (writes) {
            this.startWrites = 0 // a trial is a start
            this.save()
        }
        this.online = !this.dead
        this.planSettle()
    }

    private planSettle() {
        const ms = settleMs(this.record, this.policy)
        this.settleAtMs = ms < 0 ? -1 : this.nowMs + ms
    }

    private save() {
        this.writes++
        this.startWrites++
        const cut = this.writes === this.cutAt
        if (!cut || !this.cutBefore) {
            if (this.light) this.stored = this.record
            else this.flash = formatRecord(this.record)
        }
        if (cut) this.dead = true
    }
}

/** A device that has just been held for the first time, by crashing a second into each run. */
function heldDevice(): Field {
    const f = new Field()
    equal(f.crashes(6, S), "RRRRRH")
    return f
}

/** The letters, cause and starts in the window of a device after its steps. */
function facts(f: Field): string {
    return `${f.letter()} ${f.last.cause} ${f.last.starts}`
}

function caseOf(name: string, run: () => void): Case {
    return { name, run }
}

export function cases(): Case[] {
    return [
        caseOf(
            "crash 1 s after CONNACK: five times more, then held 5 min",
            () => {
                const f = heldDevice()
                equal(f.online, false, "online")
                equal(f.last.leftMs, 5 * MIN, "left")
                equal(f.last.reason, "restart burst")
                equal(f.last.trips, 1, "trips")
                equal(facts(f), "H crash 6")
            },
        ),
        caseOf(
            "crash after CONNACK for ever: each hold twice as long, an hour at most",
            () => {
                const f = heldDevice()
                let holds = ""
                for (let i = 0; i < 5; ++i) {
                    f.run(f.last.leftMs - 1)
                    equal(f.online, false, "online before the hold is over")
                    f.run(1)
                    equal(f.online, true, "online in the trial")
                    equal(f.crash(S), "H")
                    equal(f.last.reason, "trial failed")
                    holds += mulDiv(f.last.leftMs, 1, MIN) + " "
                }
                equal(holds, "10 20 40 60 60 ")
            },
        ),
        caseOf(
            "crash every 30 s, too slow for the first window: held as the 21st in an hour",
            () => {
                const f = new Field(true)
                equal(f.crashes(20, 30 * S), "RRRRRRRRRRRRRRRRRRRR")
                equal(f.last.starts, 4, "in the window")
                equal(f.crash(30 * S), "H")
                equal(f.last.reason, "slow restart loop")
            },
        ),
        caseOf("crash 11 min into each run: each is a stable one", () => {
            const f = new Field(true)
            equal(f.crashes(12, 11 * MIN), "RRRRRRRRRRRR")
            equal(facts(f), "R crash 1")
            // Twelve times 75 min, but for what has passed since the first of them: 11 times 665.25 s.
            equal(f.record.debtS, 12 * 4500 - 7318, "debt")
        }),
        caseOf(
            "crash 11 min into each run, for a day: from then on an hour's hold each time",
            () => {
                const f = new Field(true)
                f.record.debtS = 450000 - 2 * (4500 - 665)
                equal(f.crashes(3, 11 * MIN), "RRH")
                equal(f.last.reason, "restart allowance spent")
                const { leftMs, trips } = f.last
                equal(trips, 1, "trips")
                equal(leftMs, 60 * MIN, "left")
                f.run(leftMs)
                equal(f.crash(11 * MIN), "H", "the trial was a stable run")
                equal(f.last.trips, 1, "trips")
            },
        ),
        caseOf(
            "an allowance that is spent: a person or a new build fills it, and so does time without a crash",
            () => {
                for (const how of ["person", "build", "time"]) {
                    const f = new Field(true)
                    f.record.debtS = 450000
                    equal(f.crash(3 * MIN), "H", how)
                    if (how === "person") f.person()
                    else if (how === "build") f.deploy("two", MIN)
                    else f.run(127 * 60 * MIN)
                    f.crash(S)
                    equal(f.record.debtS, 4500, how)
                }
            },
        ),
        caseOf(
            "the window's edge: six starts in 120 s are held, in 121.25 s not",
            () => {
                const f = new Field()
                equal(f.crashes(5, S), "RRRRR")
                // The first of the five was four crashes ago, 25 s; the next may come 95 s later.
                equal(f.crash(95 * S - 5250), "H")
                const g = new Field()
                equal(g.crashes(5, S), "RRRRR")
                equal(g.crash(96 * S + 250 - 5250), "R")
            },
        ),
        caseOf("six deploys in two minutes: not held", () => {
            const f = new Field()
            let letters = ""
            for (const build of ["two", "three", "four", "five", "six", "7"])
                letters += f.deploy(build, 20 * S)
            equal(letters, "RRRRRR")
            equal(facts(f), "R new build 0")
        }),
        caseOf("a deploy onto a held device: runs, and is forgotten", () => {
            const f = heldDevice()
            equal(f.deploy("two", MIN), "R")
            equal(f.crashes(5, S), "RRRRR")
            equal(f.last.trips, 0, "trips")
        }),
        caseOf("a redeploy of the same build counts as a crash", () => {
            const f = new Field()
            equal(f.deploy("one", 20 * S), "R")
            equal(facts(f), "R crash 1")
        }),
        caseOf(
            "R2: ten power cuts after 2 s each, then power stays: full service",
            () => {
                const f = new Field(true)
                equal(f.cuts(10, 2 * S), "RRRRRRRRRR")
                equal(facts(f), "R power-on 0")
                f.run(11 * MIN)
                equal(f.online, true, "online")
                equal(f.record.unknownResets, 0, "the row")
            },
        ),
        caseOf(
            "20 runs under a minute, each cut off: the next is held for a minute",
            () => {
                const f = new Field(true)
                equal(f.cuts(20, 59 * S), "RRRRRRRRRRRRRRRRRRRR")
                equal(f.cut(59 * S), "H")
                equal(f.last.reason, "20 short runs after chip resets")
                equal(f.last.leftMs, MIN, "left")
                equal(f.last.trips, 0, "trips")
                // Nothing is on trial: a crash afterwards is the first of its burst.
                f.run(MIN)
                equal(f.online, true, "online after the minute")
                equal(f.crash(S), "R")
            },
        ),
        caseOf(
            "a brownout at each dial: one dial a minute, not one a second, and no more writes",
            () => {
                const f = new Field(true)
                f.cuts(20, 2 * S)
                equal(f.cut(2 * S), "H")
                const { writes } = f
                for (let i = 0; i < 3; ++i) {
                    f.run(MIN)
                    equal(f.online, true, "online after the minute")
                    equal(f.cut(2 * S), "H", "after a dial")
                    equal(f.last.leftMs, 59 * S, "left")
                }
                equal(f.writes, writes, "writes")
                // The power is good again: a minute online ends it, with one write.
                f.run(2 * MIN)
                equal(f.writes, writes + 1, "writes")
                equal(f.cut(MIN), "R")
            },
        ),
        caseOf("a run of a minute breaks the row", () => {
            const f = new Field(true)
            f.cuts(19, 2 * S)
            equal(f.cut(61 * S), "R")
            equal(f.cuts(19, 2 * S), "RRRRRRRRRRRRRRRRRRR")
        }),
        caseOf(
            "a lamp switched off after 5 min, with a crash in its past: never held",
            () => {
                const f = new Field(true)
                f.crash(S)
                equal(f.cuts(30, 5 * MIN), "RRRRRRRRRRRRRRRRRRRRRRRRRRRRRR")
            },
        ),
        caseOf("a hold goes on after crashes, and they write nothing", () => {
            const f = heldDevice()
            const { writes } = f
            equal(f.crash(100 * S - 5250), "H")
            equal(f.last.leftMs, 200 * S, "left")
            equal(f.last.reason, "hold not over")
            equal(f.crash(100 * S - 5250), "H")
            equal(f.last.leftMs, 100 * S, "left")
            equal(f.writes, writes, "writes")
            f.run(100 * S)
            equal(f.online, true, "online in the trial")
            equal(f.last.trips, 1, "trips")
        }),
        caseOf(
            "a hold whose end a crash sleeps through: the trial is next",
            () => {
                const f = heldDevice()
                equal(f.crash(298 * S), "T")
                equal(f.crash(S), "H")
                equal(f.last.leftMs, 10 * MIN, "left")
            },
        ),
        caseOf(
            "a hold survives power cuts, with what it had left when it was seen",
            () => {
                const f = heldDevice()
                equal(f.cut(4 * MIN), "H")
                equal(f.last.leftMs, 299 * S, "left")
                equal(f.cut(59 * S), "H")
                equal(
                    f.last.leftMs,
                    299 * S,
                    "a short look at it saves nothing",
                )
                equal(f.cut(2 * MIN), "H")
                equal(f.last.leftMs, 238 * S, "after a minute of it is saved")
            },
        ),
        caseOf("two minutes of power an hour: the trial still comes", () => {
            const f = heldDevice()
            let cuts = 0
            while (!f.online && cuts++ < 10) f.cut(2 * MIN)
            equal(cuts, 5, "cuts")
            equal(f.letter(), "T")
        }),
        caseOf("a power cut in a trial: still on trial", () => {
            const f = heldDevice()
            f.run(5 * MIN)
            equal(f.cut(MIN), "T")
            equal(f.crash(MIN), "H")
            equal(f.last.leftMs, 10 * MIN, "left")
        }),
        caseOf("a trial of 10 min clears everything", () => {
            const f = heldDevice()
            f.run(5 * MIN).run(10 * MIN)
            equal(f.record.trips, 0, "trips")
            equal(f.crashes(5, S), "RRRRR")
            equal(f.crash(S), "H")
            equal(f.last.leftMs, 5 * MIN, "left")
        }),
        caseOf("a trial that crashes at 9 min has failed", () => {
            const f = heldDevice()
            f.run(5 * MIN)
            equal(f.crash(9 * MIN), "H")
        }),
        caseOf("a person ends a hold: everything is forgotten", () => {
            const f = heldDevice()
            f.run(MIN).person()
            equal(f.online, true, "online")
            equal(f.crashes(6, S), "RRRRRH")
            equal(f.last.leftMs, 5 * MIN, "left")
        }),
        caseOf("restart(), watchdog and command count as crashes do", () => {
            for (const intent of ["restart", "watchdog", "command"]) {
                const f = new Field(true)
                let letters = ""
                for (let i = 0; i < 6; ++i)
                    letters += f.leave(intent as Intent, 10 * S)
                equal(letters, "RRRRRH", intent)
                equal(facts(f), `H ${intent} 6`)
            }
        }),
        caseOf("a reboot by command every 61 s: held as the 21st", () => {
            const f = new Field(true)
            let letters = ""
            for (let i = 0; i < 21; ++i) letters += f.leave("command", 61 * S)
            equal(letters, "RRRRRRRRRRRRRRRRRRRRH")
        }),
        caseOf(
            "the planned reboot does not count, even in a row of crashes",
            () => {
                const f = new Field()
                f.nowMs += 40 * 24 * 60 * MIN
                equal(f.crashes(5, S), "RRRRR")
                equal(f.leave("planned", S), "R")
                equal(facts(f), "R planned 5")
                equal(f.crash(S), "H")
            },
        ),
        caseOf(
            "a planned reboot in the first hour is a loop, and counts",
            () => {
                const f = new Field(true)
                let letters = ""
                for (let i = 0; i < 6; ++i) letters += f.leave("planned", S)
                equal(letters, "RRRRRH")
            },
        ),
        caseOf("causes: what the clock and the intent tell apart", () => {
            const f = new Field()
            equal(facts(f), "R new build 0")
            f.crash(S)
            equal(facts(f), "R crash 1")
            f.leave("restart", S)
            equal(facts(f), "R restart 2")
            f.leave("watchdog", S)
            equal(facts(f), "R watchdog 3")
            f.leave("command", S)
            equal(facts(f), "R command 4")
            f.cut(S)
            equal(facts(f), "R power-on 4")
            f.deploy("two", S)
            equal(facts(f), "R new build 0")
            f.flash = "NaN"
            f.cut(S)
            equal(facts(f), "R unknown 0")
        }),
        caseOf("an intent whose deed did not come is not believed", () => {
            const f = new Field()
            f.record = withIntent(f.record, "planned", f.upMs())
            f.flash = formatRecord(f.record)
            f.crash(S)
            equal(facts(f), "R crash 1", "a crash instead of the reboot")
            f.record = withIntent(f.record, "restart", f.upMs())
            f.flash = formatRecord(f.record)
            f.cut(0)
            equal(facts(f), "R power-on 1", "a power cut instead of restart()")
            f.crash(S)
            equal(facts(f), "R crash 2", "and it is gone")
        }),
        caseOf("a restart() while held is told from the crash after it", () => {
            const f = heldDevice()
            equal(f.leave("restart", S), "H")
            equal(facts(f), "H restart 7")
            f.crash(S)
            equal(facts(f), "H crash 8")
        }),
        caseOf(
            "an announced end breaks the row of short runs, if it was a minute",
            () => {
                const f = new Field()
                f.crash(S)
                f.cuts(5, S)
                f.leave("command", 59 * S)
                equal(f.record.unknownResets, 5, "after 59 s")
                f.leave("command", 61 * S)
                equal(f.record.unknownResets, 0, "after 61 s")
            },
        ),
        caseOf(
            "watchdog reboots in a row are counted past a stable run",
            () => {
                const f = new Field()
                f.leave("watchdog", 15 * MIN)
                f.leave("watchdog", 20 * MIN)
                equal(f.record.watchdogs, 2, "in a row")
                equal(clearHold(f.record, f.upMs()).watchdogs, 0, "a person")
                equal(f.last.starts, 1, "but the limit has cleared")
                f.leave("watchdog", 25 * 60 * MIN)
                equal(f.record.watchdogs, 1, "a day later")
                f.crash(S)
                equal(f.record.watchdogs, 0, "after something else")
            },
        ),
        caseOf(
            "R3: a crash loop over a corrupted record is held, and twice as long",
            () => {
                const f = new Field()
                f.flash = "NaN"
                equal(f.cut(S), "R")
                equal(f.problem, "unreadable")
                equal(f.last.trips, 1, "reads as tripped once")
                equal(f.crashes(6, S), "RRRRRH")
                equal(f.last.leftMs, 10 * MIN, "left")
            },
        ),
        caseOf(
            "R3: a record corrupted before each start: held at the first crash",
            () => {
                const garbage = [
                    "NaN",
                    "-1",
                    '"5"',
                    "null",
                    "{}",
                    "[]",
                    "[2,",
                    "",
                ]
                for (const text of garbage) {
                    const f = new Field()
                    f.flash = text
                    equal(f.crash(S), "H", text)
                    equal(f.last.reason, "record unreadable")
                    equal(f.last.leftMs, 5 * MIN, "left")
                    equal(f.last.trips, 1, "trips")
                    f.run(5 * MIN)
                    equal(f.online, true, "online in the trial")
                    f.flash = text
                    equal(f.crash(S), "H", text)
                }
            },
        ),
        caseOf("a corrupted record is forgotten after a stable run", () => {
            const f = new Field()
            f.flash = "garbage"
            f.cut(S)
            f.run(10 * MIN)
            equal(f.crash(S), "R")
            equal(f.problem, undefined)
            equal(f.last.trips, 0, "trips")
        }),
        caseOf(
            "the record of a later format: a new build, but tripped once",
            () => {
                const f = new Field()
                f.flash = "[3,1,2,3,1,2,3,262478556]"
                f.crash(S)
                equal(facts(f), "R new build 0")
                equal(f.problem, "foreign version")
                equal(f.last.trips, 1, "trips")
                equal(f.crashes(6, S), "RRRRRH")
                equal(f.last.leftMs, 10 * MIN, "left")
            },
        ),
        caseOf("an empty store: a new device, defined and not held", () => {
            const f = new Field()
            f.crashes(4, S)
            f.flash = undefined
            equal(f.cut(S), "R")
            equal(f.problem, "missing")
            equal(facts(f), "R new build 0")
        }),
        caseOf(
            "writes: one for a start and one to clear, then none for days",
            () => {
                const f = new Field()
                equal(f.startWrites, 1, "new device")
                f.run(7 * 24 * 60 * MIN)
                equal(f.startWrites, 1, "nothing to clear")
                f.crash(S)
                f.run(7 * 24 * 60 * MIN)
                equal(f.startWrites, 2, "a crash is cleared")
                f.cut(S)
                f.run(7 * 24 * 60 * MIN)
                equal(f.startWrites, 2, "so is a power-on")
                f.crash(S)
                f.cut(S)
                f.run(7 * 24 * 60 * MIN)
                equal(f.startWrites, 2, "and both at once")
                equal(f.record.agesS.length, 0, "starts")
                equal(f.record.unknownResets, 0, "the row")
            },
        ),
        caseOf(
            "a stable run whose clearing was never written still clears",
            () => {
                const f = heldDevice()
                f.run(5 * MIN)
                f.settleAtMs = -1
                equal(f.crash(11 * MIN), "R")
                equal(facts(f), "R crash 1")
            },
        ),
        caseOf(
            "a clock that has run back is a chip reset that left no record",
            () => {
                const f = heldDevice()
                f.crash(MIN) // held, at 96 s of uptime
                f.nowMs = f.bootMs + 6500
                equal(f.begin(), "H")
                equal(
                    f.last.leftMs,
                    294 * S,
                    "left: 300 s less the 6 s of this uptime",
                )
            },
        ),
        caseOf("times at the clock's end and beyond it, or none at all", () => {
            const f = heldDevice()
            const r = f.record
            const p = f.policy
            let end = 0x40000000
            end += end
            end += end
            for (const upMs of [NaN, -1, -end, 0.5, end - 1, end, end + end]) {
                const d = decide(r, { upMs, build: "one" }, p)
                equal(readRecord(formatRecord(d.record)).problem, undefined)
                const t = trialStarts(r, upMs)
                equal(readRecord(formatRecord(t)).problem, undefined)
            }
            equal(decide(r, { upMs: NaN, build: "one" }, p).cause, "power-on")
            equal(
                decide(r, { upMs: end - 1, build: "one" }, p).record.upS,
                4294967,
            )
        }),
        caseOf(
            "settings: defaults, limits, and stable never below the window",
            () => {
                const p = readRestartPolicy(new Store(undefined))
                equal(p.burst, 5)
                equal(p.windowMs, 120000)
                equal(p.holdMs, 300000)
                equal(p.stableMs, 600000)
                const q = readRestartPolicy({
                    raw: key => (key === "RST_WINDOW" ? "1800000" : undefined),
                    complain: () => {},
                })
                equal(q.stableMs, 1800000)
                equal(readRestartPolicy(new Store("0")).burst, 5)
            },
        ),
        caseOf("RST_BURST 1: the second crash is held", () => {
            const f = new Field()
            f.policy.burst = 1
            equal(f.crashes(2, S), "RH")
        }),
    ]
}
