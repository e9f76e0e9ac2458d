// The restart limit on a device: its record in flash, the hold with light, lines and button, and what has to be
// written before the device restarts itself. What it decides, and why, is in core/restart.ts.
import * as ds from "@devicescript/core"
import type { ConfigLine } from "../core/line"
import {
    formatRecord,
    readRecord,
    RECORD_KEY,
    type Intent,
    type RecordProblem,
    type RestartRecord,
} from "../core/record"
import {
    CHIP_RESET_MS,
    clearHold,
    decide,
    readRestartPolicy,
    settled,
    settleMs,
    trialStarts,
    withIntent,
    type Decision,
    type RestartPolicy,
} from "../core/restart"
import { plannedRebootMs } from "../core/watchdog"
import { blink } from "./led"
import { log } from "./log"
import { deleteRaw, readRaw, readSettings, writeRaw } from "./settings"
import { socketClose } from "./socket"

/** The setting by which a person ends a hold. */
const CLEAR_KEY = "CLEAR_HOLD"

/** In a function: a table would stay in programs that have no limit. */
function keys(): string[] {
    return [
        RECORD_KEY,
        "RST_BURST",
        "RST_WINDOW",
        "RST_HOLD",
        "RST_STABLE",
        CLEAR_KEY,
    ]
}

/** During a hold: so often it is looked whether it is over. */
const LOOK_MS = 500

/** During a hold: so often CLEAR_HOLD is looked at. */
const ASK_MS = 5000

/** During a hold: so often a line says so. */
const LINE_MS = 60000

/** A press of the button of at least this long ends a hold. */
const PRESS_MS = 3000

/** Options of `limitRestarts`. */
export interface RestartOptions {
    /** For the `boot` line. */
    version: string
    /** Called once, on a fiber of its own, when this start is held: what needs no network can go on, such as a light switch. */
    onHeld?: (limit: RestartLimit) => ds.AsyncVoid
    /** Held down for 3 s it ends a hold. Not bound is fine. */
    button?: ds.Button
}

/** Where the limit stands for this start, and what may change that. */
export class RestartLimit {
    /** What the stored record was instead of one; undefined when it was fine. */
    problem: RecordProblem | undefined = undefined
    /** This start is off the network. */
    isHeld = false
    private record: RestartRecord
    private policy: RestartPolicy
    /** Who has ended the hold, in words. */
    private clearedBy = ""
    private saving = false
    /** Counts plans to settle: an older one is void. */
    private plans = 0

    /** Watchdog reboots in a row up to this start. */
    watchdogs(): number {
        return this.record.watchdogs
    }

    /** This start is the trial after a hold, and has not lasted long enough to pass. */
    isOnTrial(): boolean {
        return this.record.state === "trial"
    }

    /** Ends a hold, as a person does: everything is forgotten. Nothing comes of it when there is no hold. */
    clearHold() {
        this.clearedBy = "cleared by the program"
    }

    /**
     * Stores why the program is about to call `ds.restart()` or `ds.reboot()`; without it the next start counts as a
     * crash, or as a power-on.
     * @returns false when flash didn't take it
     */
    async leave(intent: Intent): Promise<boolean> {
        return await this.save(r => withIntent(r, intent, ds.millis()))
    }

    /** Decides about this start, which began at upMs. */
    async begin(upMs: number, version: string): Promise<Decision> {
        const complaints: ConfigLine[] = []
        const from = await readSettings(keys(), line => {
            complaints.push(line)
        })
        const policy = readRestartPolicy(from)
        this.policy = policy
        const text = from.raw(RECORD_KEY)
        let { record, problem } = readRecord(text)
        this.problem = problem
        if (isYes(from.raw(CLEAR_KEY)) && (await deleteRaw(CLEAR_KEY))) {
            record = clearHold(record, upMs)
            problem = undefined
        }
        const build = `${ds._dcfgString("@name")} ${ds._dcfgString("@version")}`
        let decision = decide(record, { upMs, build, problem }, policy)
        this.record = decision.record
        if (decision.write && !(await this.save(r => r))) {
            this.problem = "unreadable"
            // What can't be written can't be counted: in a crash loop, every start would be the first.
            if (upMs >= CHIP_RESET_MS) {
                const unknown = readRecord("")
                const facts = { upMs, build, problem: unknown.problem }
                decision = decide(unknown.record, facts, policy)
                this.record = decision.record
            }
        }
        const cause = decision.cause
        const starts = decision.starts
        const trips = decision.trips
        const verdict = decision.action
        const id = ds.deviceIdentifier("self")
        log({ ev: "boot", id, version, cause, upMs, starts, trips, verdict })
        for (const line of complaints) log(line)
        this.reportProblem(text)
        this.plan()
        return decision
    }

    /** A record that wasn't one is no secret; a missing one is normal on a device's first start. */
    private reportProblem(text: string | undefined) {
        if (this.problem === undefined || this.problem === "missing") return
        log({
            ev: "config",
            key: RECORD_KEY,
            value: text === undefined ? "" : text,
            allowed: `a record, not: ${this.problem}`,
            used: "a record that has tripped once",
        })
    }

    /** Returns once the hold is over. */
    async hold(decision: Decision, upMs: number, options: RestartOptions) {
        const reason = decision.reason
        const trips = decision.trips
        const leftMs = decision.leftMs
        const self = this
        const endMs = upMs + leftMs
        const rebootMs = plannedRebootMs(ds.deviceIdentifier("self"))
        this.isHeld = true
        this.listen(options)
        blink(() => self.isHeld)
        let nowMs = ds.millis()
        let lineMs = nowMs
        let askMs = nowMs + ASK_MS
        while (!this.clearedBy && nowMs < endMs) {
            if (nowMs >= lineMs) {
                log({ ev: "held", leftMs: endMs - nowMs, reason, trips })
                lineMs += LINE_MS
            }
            if (nowMs >= askMs) {
                askMs = nowMs + ASK_MS
                await this.askSetting()
            }
            // No timer outlives the clock, a hold's neither; what is left of it goes on after the reboot.
            if (nowMs >= rebootMs && (await this.leave("planned"))) ds.reboot()
            await ds.sleep(LOOK_MS)
            nowMs = ds.millis()
        }
        await this.release(trips)
    }

    private async release(trips: number) {
        const clearedBy = this.clearedBy
        if (clearedBy) await this.save(r => clearHold(r, ds.millis()))
        else if (trips > 0) await this.save(r => trialStarts(r, ds.millis()))
        else this.record = trialStarts(this.record, ds.millis())
        this.isHeld = false
        const reason = clearedBy ? clearedBy : "over, a trial start"
        log({ ev: "held", leftMs: 0, reason, trips })
        this.plan()
    }

    private async askSetting() {
        if (isYes(await readRaw(CLEAR_KEY)) && (await deleteRaw(CLEAR_KEY)))
            this.clearedBy = "cleared by " + CLEAR_KEY
    }

    private listen(options: RestartOptions) {
        const self = this
        if (options.button)
            options.button.hold.subscribe(async pressedMs => {
                if (pressedMs >= PRESS_MS)
                    self.clearedBy = "cleared by the button"
            })
        const tell = async () => {
            try {
                await options.onHeld(self)
            } catch (e) {
                console.error(e as any)
            }
        }
        if (options.onHeld) tell.start()
    }

    /** Has the record cleared once this run has lasted long enough. */
    private plan() {
        const plan = ++this.plans
        const waitMs = settleMs(this.record, this.policy)
        const self = this
        const settle = async () => {
            await ds.sleep(waitMs)
            if (self.plans === plan)
                await self.save(r => settled(r, ds.millis(), self.policy))
        }
        if (waitMs >= 0) settle.start()
    }

    /** Changes the record and stores it, one change at a time; whether flash has it. */
    private async save(
        change: (record: RestartRecord) => RestartRecord,
    ): Promise<boolean> {
        while (this.saving) await ds.sleep(10)
        this.saving = true
        this.record = change(this.record)
        const done = await writeRaw(RECORD_KEY, formatRecord(this.record))
        this.saving = false
        return done
    }
}

/**
 * Limits how often the device may come onto the network after having restarted itself. Await it in the program's
 * first statement, before any connection: it returns at once, or, when this start is held, after the hold. It counts
 * crashes, `restart()` and `reboot()`, not power cuts and new builds; core/restart.ts has the rules, README the settings.
 */
export async function limitRestarts(
    options: RestartOptions,
): Promise<RestartLimit> {
    const upMs = ds.millis()
    socketClose() // what a crash left open
    const limit = new RestartLimit()
    const decision = await limit.begin(upMs, options.version)
    if (decision.action === "held") await limit.hold(decision, upMs, options)
    return limit
}

function isYes(raw: string | undefined): boolean {
    return raw === "1" || raw === "true"
}
