// The restart limit: its timelines, a limiter that knows true time to compare with, and power cuts at every write.
import assert from "node:assert/strict"
import { test } from "node:test"
import fc from "fast-check"
import {
    formatRecord,
    readRecord,
    type Intent,
    type RestartRecord,
} from "../../src/core/record"
import {
    clearHold,
    decide,
    defaultRestartPolicy,
    settled,
    settleMs,
    trialStarts,
    withIntent,
    type RestartPolicy,
} from "../../src/core/restart"
import { runCases } from "../node-cases"
import { anyRecord } from "./any-record"
import { cases, Field } from "./restart.cases"

runCases(cases())

const S = 1000
const MIN = 60 * S
const HOUR = 60 * MIN
const DAY = 24 * HOUR

type Kind = Exclude<Intent, "none"> | "crash" | "cut" | "deploy" | "person"
interface Step {
    kind: Kind
    runMs: number
}

/** How long a run lasts: a moment, the limits' neighbourhood, or anything up to half a day. */
const anyRunMs = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 20 * S }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 3 * MIN }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 12 * HOUR }) },
    fc.constantFrom(59999, 60000, 114750, 299999, 300000, 599999, 600000),
)

function histories(...kinds: Kind[]): fc.Arbitrary<Step[]> {
    const step = fc.record({
        kind: fc.constantFrom(...kinds),
        runMs: anyRunMs,
    })
    return fc.array(step, { minLength: 1, maxLength: 70, size: "max" })
}

function play(f: Field, step: Step): string {
    switch (step.kind) {
        case "crash":
            return f.crash(step.runMs)
        case "cut":
            return f.cut(step.runMs)
        case "deploy":
            return f.deploy(f.build + "+", step.runMs)
        case "person":
            f.run(step.runMs)
            if (f.last.action === "held" && !f.online) f.person()
            return f.crash(0)
        default:
            return f.leave(step.kind, step.runMs)
    }
}

/** The rules once more, for someone with a clock that never stops and eyes on what really happened. */
class Witness {
    starts: number[] = []
    trips = 0
    row = 0
    /** What starts have used up of the allowance, 75 min each, as of debtAtS. */
    debtS = 0
    debtAtS = 0
    state: "R" | "H" | "T" = "R"
    holdEndS = 0
    beganMs = 0

    /** `fine`: counts in milliseconds, and forgives a hold its last second; else in whole seconds from power-on. */
    constructor(
        private p: RestartPolicy,
        private fine: boolean,
    ) {}

    private clear() {
        this.starts = []
        this.trips = this.row = 0
        this.state = "R"
    }

    private sec(ms: number) {
        return this.fine ? ms / 1000 : Math.floor(ms / 1000)
    }

    /** The run that began at beganMs ended at nowMs. */
    ran(nowMs: number) {
        let from = this.beganMs
        if (this.state === "H") {
            from += (this.holdEndS - this.sec(this.beganMs)) * 1000
            if (from > nowMs) return
            this.state = this.trips ? "T" : "R"
        }
        if (nowMs - from >= this.p.stableMs) this.clear()
        else if (nowMs - from >= MIN) this.row = 0
    }

    private hold(s: number, nowMs: number) {
        this.state = "H"
        this.holdEndS = this.sec(nowMs) + s - (this.fine ? 1 : 0)
    }

    start(step: Step, nowMs: number, upMs: number): string {
        this.beganMs = nowMs
        const nowS = this.sec(nowMs)
        this.debtS = Math.max(0, this.debtS - (nowS - this.debtAtS))
        this.debtAtS = nowS
        if (
            step.kind === "deploy" ||
            (step.kind === "person" && this.state === "H")
        ) {
            this.clear()
            this.debtS = 0
        }
        if (step.kind === "deploy") return this.state
        const counts =
            step.kind !== "cut" && !(step.kind === "planned" && upMs >= HOUR)
        if (counts) this.starts.push(nowS)
        if (this.state === "H") {
            if (this.holdEndS <= nowS) this.state = this.trips ? "T" : "R"
            return this.state
        }
        if (counts) this.debtS = Math.min(101 * 4500, this.debtS + 4500)
        // In true time a second is forgiven, as above.
        const overS = this.debtS - 100 * 4500 - (this.fine ? 1 : 0)
        if (step.kind === "cut" && ++this.row > 20) {
            this.row = 20
            this.hold(60, nowMs)
        }
        const within = (s: number) =>
            this.starts.filter(t => nowS - t <= s).length
        if (
            counts &&
            (this.state === "T" ||
                within(this.p.windowMs / 1000) > this.p.burst ||
                within(3600) > 20 ||
                overS > 0)
        ) {
            this.trips++
            const holdS = (this.p.holdMs / 1000) * 2 ** (this.trips - 1)
            this.hold(Math.min(3600, Math.max(holdS, overS)), nowMs)
        }
        return this.state
    }
}

/** Plays a history to both, up to the first start that they decide, or the first hold that they end, differently. */
function compare(steps: Step[], policy: RestartPolicy, fine: boolean) {
    const f = new Field(false, policy)
    const w = new Witness(policy, fine)
    w.beganMs = f.nowMs
    for (const [i, step] of steps.entries()) {
        f.run(step.runMs)
        w.ran(f.nowMs)
        if (f.online !== (w.state !== "H"))
            return { i, ours: f.online ? "R" : "H", theirs: w.state }
        const upMs = f.upMs()
        const ours = play(f, { ...step, runMs: 0 })
        const theirs = w.start(step, f.nowMs, upMs)
        if (ours !== theirs) return { i, ours, theirs }
    }
    return undefined
}

const anyPolicy: fc.Arbitrary<RestartPolicy> = fc.record({
    burst: fc.integer({ min: 1, max: 20 }),
    windowMs: fc.constantFrom(10 * S, 60 * S, 120 * S, 600 * S),
    holdMs: fc.constantFrom(10 * S, 300 * S, 3600 * S),
    stableMs: fc.constantFrom(600 * S, 3600 * S),
})

test("within one power-on any history of crashes, restarts and deploys is decided as by a limiter that knows true time", () => {
    let starts = 0
    fc.assert(
        fc.property(
            histories("crash", "crash", "crash", "restart", "deploy"),
            fc.oneof(fc.constant(defaultRestartPolicy()), anyPolicy),
            (steps, policy) => {
                starts += steps.length
                // Deploys clear; most histories should get somewhere.
                const few = steps.filter(
                    (s, i) => s.kind !== "deploy" || i % 16 === 0,
                )
                assert.equal(compare(few, policy, false), undefined)
            },
        ),
        { numRuns: 1500, seed: 1 },
    )
    assert.ok(starts > 20000, `${starts} starts`)
})

/** Long histories of slow loops, which spend the allowance. */
const slowHistories = fc.array(
    fc.record({
        kind: fc.constantFrom<Kind>(
            ...(["crash", "crash", "crash", "restart"] as Kind[]),
        ),
        runMs: fc.oneof(
            fc.integer({ min: 190 * S, max: 25 * MIN }),
            fc.integer({ min: 600 * S, max: 660 * S }),
        ),
    }),
    { minLength: 250, maxLength: 300, size: "max" },
)

test("slow loops that spend the allowance: the same, too", () => {
    let held = 0
    fc.assert(
        fc.property(slowHistories, steps => {
            assert.equal(
                compare(steps, defaultRestartPolicy(), false),
                undefined,
            )
            const f = new Field()
            for (const step of steps) {
                play(f, step)
                if (f.last.reason === "restart allowance spent") held++
            }
        }),
        { numRuns: 30, seed: 1 },
    )
    assert.ok(held > 100, `${held} held`)
})

test("a person who ends a hold: the same, too", () => {
    fc.assert(
        fc.property(histories("crash", "crash", "crash", "person"), steps =>
            assert.equal(
                compare(steps, defaultRestartPolicy(), false),
                undefined,
            ),
        ),
        { numRuns: 500, seed: 1 },
    )
})

test("across chip resets the limit errs only towards held", () => {
    let same = 0
    let stricter = 0
    const order = "RTH"
    fc.assert(
        fc.property(
            histories(
                ...(["crash", "crash", "crash", "cut", "cut"] as Kind[]),
                ...(["restart", "watchdog", "command", "planned"] as Kind[]),
            ),
            anyPolicy,
            (steps, policy) => {
                const first = compare(steps, policy, true)
                if (!first) return void same++
                stricter++
                const { i, ours, theirs } = first
                assert.ok(
                    order.indexOf(ours) > order.indexOf(theirs),
                    `start ${i}: ${ours} where ${theirs} is right`,
                )
            },
        ),
        { numRuns: 3000, seed: 1 },
    )
    assert.ok(same > 500 && stricter > 100, `${same} same, ${stricter} not`)
})

test("in true time no window sees more than a burst and a trial of starts that the device did to itself", () => {
    const policy = defaultRestartPolicy()
    fc.assert(
        fc.property(
            histories("crash", "crash", "crash", "restart", "cut", "watchdog"),
            steps => {
                const f = new Field()
                const online: number[] = []
                for (const step of steps) {
                    play(f, step)
                    if (f.online && step.kind !== "cut") online.push(f.nowMs)
                }
                for (const from of online) {
                    const seen = online.filter(
                        t => t >= from && t <= from + policy.windowMs,
                    ).length
                    assert.ok(seen <= policy.burst + 1, `${seen} starts`)
                }
            },
        ),
        { numRuns: 1000, seed: 1 },
    )
})

test("any history: at most one write for a start and one to clear, and a record that reads back", () => {
    fc.assert(
        fc.property(
            histories(
                ...(["crash", "crash", "cut", "cut", "deploy"] as Kind[]),
                ...(["restart", "watchdog", "planned", "person"] as Kind[]),
            ),
            steps => {
                const f = new Field()
                for (const step of steps) {
                    f.run(step.runMs)
                    assert.ok(f.startWrites <= 2, `${f.startWrites} writes`)
                    play(f, { ...step, runMs: 0 })
                    assert.equal(f.problem, undefined)
                    const back = readRecord(f.flash).record
                    assert.equal(formatRecord(back), f.flash)
                }
            },
        ),
        { numRuns: 1000, seed: 1 },
    )
})

/** ESP32: a bank of the store, and what a write takes beside the value (measured). */
const BANK_BYTES = 16384
const ENTRY_BYTES = 24

/** A program that dies so long after it has come online, again and again, for so many days. */
function crashLoop(runMs: number, days: number) {
    const f = new Field()
    let bytes = 0
    let writes = 0
    const onlineMs: number[] = []
    const count = () => {
        bytes += (f.writes - writes) * (f.flash!.length + ENTRY_BYTES)
        writes = f.writes
    }
    while (f.nowMs < days * DAY) {
        if (!f.online) f.run(f.last.leftMs)
        count()
        onlineMs.push(f.nowMs)
        f.run(runMs)
        count()
        if (f.upMs() < 40 * DAY) f.crash(0)
        else f.leave("planned", 0)
        count()
    }
    const perHour = (n: number) => (n * HOUR) / f.nowMs
    const tenYearsErases = (bytes / f.nowMs) * ((3652 * DAY) / (2 * BANK_BYTES))
    return { onlineMs, writes, perHour, tenYearsErases }
}

test("a crash loop of any period, for four months: 101 starts and then one an hour; under 1 % of the erases in ten years", () => {
    let worst = { runS: 0, perHour: 0, erases: 0 }
    for (let runS = 0; runS <= 7200; runS += runS < 240 ? 10 : 97) {
        const loop = crashLoop(runS * S, 120)
        const { onlineMs, writes, perHour, tenYearsErases } = loop
        onlineMs.forEach((ms, i) => {
            // From any start on: as many as are in hand, and one for each hour.
            const after = (onlineMs[i + 150] ?? Infinity) - ms
            assert.ok(
                after >= 49 * HOUR,
                `${runS} s: 150 starts in ${after} ms`,
            )
        })
        const most = perHour(writes)
        assert.ok(most <= 2.7, `${runS} s: ${most} writes an hour`)
        assert.ok(tenYearsErases < 1000, `${runS} s: ${tenYearsErases} erases`)
        if (tenYearsErases > worst.erases)
            worst = { runS, perHour: most, erases: tenYearsErases }
    }
    // Loops are really slowed down, but not to nothing.
    assert.ok(worst.erases > 500, JSON.stringify(worst))
})

/** Lengths of runs that the windows don't catch for long, with all kinds between them. */
const anyRuns = fc.array(
    fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 3 * MIN, max: 20 * MIN }) },
        { weight: 2, arbitrary: fc.integer({ min: 0, max: 2 * MIN }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * HOUR }) },
    ),
    { minLength: 400, maxLength: 600, size: "max" },
)

test("whatever a device does to itself in one power-on: in T hours T + 101 starts are online at most, with three writes each", () => {
    let most = 0
    fc.assert(
        fc.property(anyRuns, runs => {
            const f = new Field()
            const onlineMs: number[] = []
            for (const runMs of runs) {
                // A run that crashes inside a hold comes to nothing.
                if (!f.online) f.run(Math.min(runMs, f.last.leftMs))
                if (f.online) onlineMs.push(f.nowMs)
                f.crash(f.online ? runMs : 0)
            }
            for (let i = 0; i < onlineMs.length; ++i)
                for (let j = i; j < onlineMs.length; ++j) {
                    const hours = (onlineMs[j] - onlineMs[i] + S) / HOUR
                    const extra = j - i + 1 - hours
                    assert.ok(extra <= 101, `${extra} starts too many`)
                    most = Math.max(most, extra)
                }
            assert.ok(f.writes <= 3 * onlineMs.length + 2, `${f.writes}`)
        }),
        { numRuns: 40, seed: 1 },
    )
    assert.ok(most > 90, `${most}: the bound was never tried`)
})

test("whatever came before: a device that has power and doesn't crash is online within the hour, and forgets", () => {
    fc.assert(
        fc.property(
            histories(
                ...(["crash", "crash", "crash", "cut"] as Kind[]),
                ...(["restart", "watchdog", "command"] as Kind[]),
            ),
            steps => {
                const f = new Field()
                for (const step of steps) play(f, step)
                f.run(HOUR)
                assert.ok(f.online)
                f.run(10 * MIN)
                // At most once in a row the one write to clear was for the row of resets.
                if (f.record.trips) f.leave("planned", HOUR)
                f.run(10 * MIN)
                assert.equal(f.record.trips, 0)
                assert.equal(f.record.unknownResets, 0)
                assert.equal(f.crash(0), "R")
                assert.equal(f.last.starts, 1)
            },
        ),
        { numRuns: 1000, seed: 1 },
    )
})

test("a power cut before or after any write: at most one start is miscounted", () => {
    // All within the hour and slow enough for the window, so that each start that counts is in the record.
    const kinds: Kind[] = [
        ...(["crash", "cut", "restart", "watchdog", "cut"] as Kind[]),
        ...(["command", "crash", "crash", "cut", "crash"] as Kind[]),
    ]
    let cuts = 0
    let miscounted = 0
    for (const cutBefore of [true, false])
        for (let cutAt = 2; ; ++cutAt) {
            const f = new Field()
            f.cutAt = cutAt
            f.cutBefore = cutBefore
            let truth = 0
            for (const kind of kinds) {
                const writes = f.writes
                const without = f.dead
                play(f, { kind, runMs: 61 * S })
                // The power went before this could happen, unless it went at the start after it.
                const went = f.cutAt > writes && f.cutAt <= f.writes && !f.dead
                if (kind !== "cut" && !without && !went) truth++
            }
            if (f.dead) f.cut(0)
            if (f.writes < cutAt) break
            cuts++
            const off = Math.abs(f.record.agesS.length - truth)
            assert.ok(off <= 1, `write ${cutAt}: ${off} starts miscounted`)
            miscounted += off
        }
    assert.ok(cuts > 20 && miscounted > 4, `${cuts} cuts, ${miscounted} off`)
})

test("a power cut before or after any write of a crash loop: held at most one start later, and every hold is kept", () => {
    for (const cutBefore of [true, false])
        for (let cutAt = 1; cutAt <= 14; ++cutAt) {
            const f = new Field()
            f.cutAt = cutAt
            f.cutBefore = cutBefore
            let crashes = 0
            for (let held = 0; held < 4; ++held) {
                let online = 0
                while (f.last.action !== "held") {
                    f.crash(S)
                    crashes++
                    assert.ok(++online < 9, `${online} starts, write ${cutAt}`)
                }
                const { leftMs } = f.last
                assert.ok(leftMs >= 295 * S && leftMs <= HOUR, `${leftMs}`)
                f.run(leftMs)
                // The trial; a cut may come at its write.
                f.crash(S)
            }
            assert.ok(crashes <= 8, `${crashes} crashes before holds`)
        }
})

/** Anything a number may turn out to be. */
const anyNumber = fc.oneof(
    fc.integer(),
    fc.double(),
    fc.constantFrom(...[NaN, Infinity, -Infinity, -0, 2 ** 31, 2 ** 32]),
    fc.nat(10000),
)
const strangePolicy = fc.record({
    burst: anyNumber,
    windowMs: anyNumber,
    holdMs: anyNumber,
    stableMs: anyNumber,
})

test("any record, any clock, any policy: an answer within its bounds, and a record that reads back", () => {
    const sound = (r: RestartRecord) => {
        const text = formatRecord(r)
        const back = readRecord(text)
        assert.equal(back.problem, undefined, text)
        assert.deepEqual(back.record, r)
    }
    fc.assert(
        fc.property(
            anyRecord,
            anyNumber,
            strangePolicy,
            fc.constantFrom(
                ...([undefined, "missing", "unreadable"] as const),
                "foreign version" as const,
            ),
            fc.boolean(),
            (record, upMs, policy, problem, sameBuild) => {
                if (sameBuild) record.buildHash = 1244566594
                const before = formatRecord(record)
                const d = decide(record, { upMs, build: "a", problem }, policy)
                assert.equal(formatRecord(record), before, "not changed")
                sound(d.record)
                assert.equal(d.action, d.record.state)
                assert.equal(d.leftMs > 0, d.action === "held")
                assert.ok(d.leftMs <= HOUR && d.starts <= 21 && d.trips <= 99)
                assert.equal(d.reason !== "", d.action === "held")
                assert.ok(d.reason.length <= 40)
                const ms = settleMs(d.record, policy)
                assert.ok(ms === -1 || (ms >= 10 * S && ms <= 24 * HOUR))
                sound(trialStarts(d.record, upMs))
                sound(settled(d.record, upMs, policy))
                sound(withIntent(d.record, "planned", upMs))
                const cleared = clearHold(d.record, upMs)
                sound(cleared)
                assert.equal(cleared.state, "run")
            },
        ),
        { numRuns: 5000, seed: 1 },
    )
})
