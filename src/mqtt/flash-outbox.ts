// The flash-backed outbox: which QoS 1 messages are written to flash, when, and what is read back at a start. Pure: it
// is told the time and what became of each write; the device does the writing, one at a time.
//
// | a message                                       | flash                                                               |
// |-------------------------------------------------|---------------------------------------------------------------------|
// | is acknowledged within KEEP_AFTER_MS            | hears nothing of it                                                 |
// | has waited for longer, connected or not         | takes it into a free slot, the oldest message first                 |
// | is too large, or there is no budget, no slot    | hears nothing of it: in RAM only, said once                         |
// | in a slot is settled: acknowledged or dropped   | is told with the next record that is written anyway; or with one of |
// |                                                 | its own, 40 bytes, once nothing else waits in flash, or SETTLE_MS   |
// |                                                 | later                                                               |
//
// Every record says what is settled, so a slot is free as soon as its message is, whether flash knows or not. At a start what
// is not settled comes back, in the order it was written, which is the order it was accepted in, before anything new.
//
// | the power goes, or the program dies             | after the restart                                                   |
// |-------------------------------------------------|---------------------------------------------------------------------|
// | before a message's write has taken effect       | it is gone                                                          |
// | after that, and before its PUBACK came          | it is sent once more, as new                                        |
// | after its PUBACK, before flash says so          | it is sent once more, as new, and arrives twice                     |
// | after that                                      | nothing                                                             |
//
// What comes twice has the same payload, so the same key: a receiver's Dedup leaves it out.
//
// Budget: a save pays for itself and for the record that will settle it, and each of those settles at
// least one message; so what is written never exceeds what was paid for.
import { wholeSeconds } from "../core/int"
import { ALLOWED_BYTES, WriteBudget } from "../core/write-budget"
import { clearDup } from "./encode"
import {
    formatSlot,
    messageBytes,
    MESSAGE_MAX_BYTES,
    slotBytes,
    SLOTS,
    type FlashRecord,
    type SlotProblem,
} from "./flash-slot"
import { flightOf, type Flight, type InFlight } from "./in-flight"

/** A message is not worth a write before it has waited this long. */
export const KEEP_AFTER_MS = 10000

/** Flash hears of what is settled this late at the latest. */
export const SETTLE_MS = 10000

/** After a write that failed, until the next is tried. */
const FAILED_MS = 3600000

/** Where a record goes that holds no message: after the slots. */
export const MARK = SLOTS

/** What the store writes besides a value. */
const ENTRY_BYTES = 24

/** A record without a message, with its entry. */
const MARK_BYTES = 40

/** Something to be written. */
export interface FlashWrite {
    /** A slot, or MARK. */
    at: number
    bytes: Buffer
    /** What it says is settled. */
    settled: number
    /** The message in it, unless it was settled meanwhile. */
    flight: Flight | undefined
}

/** Something that has to be said, as in a `config` line. */
export interface FlashNews {
    value: string
    allowed: string
    used: string
}

/** @devsWhenUsed */
export class FlashOutbox {
    /** What has to be said; whoever says it empties the list. */
    news: FlashNews[] = []
    /** The device is about to go: nothing is worth waiting for any more. */
    urgent = false
    /** What is in each slot and still has to arrive. */
    private readonly kept: (Flight | undefined)[] = []
    /** Slots whose message is settled while flash says it isn't, and since when there is one. */
    private stale = 0
    private staleMs = 0
    private number = 0
    private budget = new WriteBudget(0, 0, 0)
    private writing: FlashWrite | undefined = undefined
    private notBeforeMs = 0
    private isOff = false
    /** Said since there was enough. */
    private saidBudget = false
    private saidSize = false

    /**
     * Takes what flash holds, before anything else.
     * @param read the slots and the mark, SLOTS + 1 of them; undefined when the store does not answer: then nothing is
     * written either, over what could not be read
     * @returns the messages that still have to arrive, in order
     */
    restore(
        read: (FlashRecord | SlotProblem)[] | undefined,
        nowMs: number,
    ): Flight[] {
        if (read === undefined) {
            this.isOff = true
            this.say("no answer", "a store that answers", "RAM only")
            return []
        }
        const records: (FlashRecord | undefined)[] = []
        let newest: FlashRecord | undefined = undefined
        let unreadable = 0
        for (const found of read) {
            const record = typeof found === "string" ? undefined : found
            if (!record && found !== "missing") unreadable++
            records.push(record)
            if (record && (!newest || record.number > newest.number))
                newest = record
        }
        const nowS = wholeSeconds(nowMs)
        if (newest) {
            this.number = newest.number
            this.budget = new WriteBudget(newest.debtBytes, newest.upS, nowS)
        }
        if (unreadable > 0) {
            // The newest may be among them: what has been written can't be known.
            this.budget = new WriteBudget(ALLOWED_BYTES, nowS, nowS)
            this.say(`${unreadable} unreadable`, "messages", "the others")
        }
        return this.takeBack(records, newest ? newest.settled : 0, nowMs)
    }

    private takeBack(
        records: (FlashRecord | undefined)[],
        settled: number,
        nowMs: number,
    ): Flight[] {
        const kept = this.kept
        const flights: Flight[] = []
        const numbers: number[] = []
        for (let i = 0; i < SLOTS; ++i) {
            kept.push(undefined)
            const record = records[i]
            if (!record || !record.message || settled & (1 << i)) continue
            const { packet, properties, waitedS } = record.message
            // It goes as new, however often it was sent before.
            clearDup(packet)
            const sinceMs = nowMs - (agoS(record, nowMs) + waitedS) * 1000
            const flight = flightOf(packet, sinceMs, undefined, properties)
            kept[i] = flight
            // Few: sorted as they come.
            let at = flights.length
            for (; at > 0 && numbers[at - 1] > record.number; --at) {
                flights[at] = flights[at - 1]
                numbers[at] = numbers[at - 1]
            }
            flights[at] = flight
            numbers[at] = record.number
        }
        return flights
    }

    /** A message has left for good: acknowledged, or dropped. Any may be told of. */
    settled(flight: Flight, nowMs: number) {
        const writing = this.writing
        if (writing && writing.flight === flight) writing.flight = undefined
        const at = this.kept.indexOf(flight)
        if (at < 0) return
        this.kept[at] = undefined
        this.unmarked(at, nowMs)
    }

    private unmarked(at: number, nowMs: number) {
        if (this.stale === 0) this.staleMs = nowMs
        this.stale |= 1 << at
    }

    /** What is to be written now, if anything; then nothing more before `written`. */
    next(queue: InFlight, nowMs: number): FlashWrite | undefined {
        const dueMs = this.dueMs(queue, nowMs)
        if (dueMs < 0 || nowMs < dueMs) return undefined
        const flight = this.oldest(queue, nowMs)
        if (flight && nowMs >= this.keepMs(flight)) {
            const at = this.freeSlot()
            const nowS = wholeSeconds(nowMs)
            if (at >= 0 && this.budget.spend(costOf(flight), nowS))
                return this.write(at, flight, nowMs)
        }
        if (this.stale === 0 || nowMs < this.markMs()) return undefined
        return this.write(MARK, undefined, nowMs)
    }

    /** The write that `next` gave is done; `ok` when the store has it. */
    written(ok: boolean, nowMs: number) {
        const { at, flight, settled } = this.writing as FlashWrite
        this.writing = undefined
        if (!ok) {
            this.notBeforeMs = nowMs + FAILED_MS
            this.say("no write", "a store that takes it", "RAM only for 1 h")
            return
        }
        this.stale &= ~(settled | (1 << at))
        if (at === MARK) return
        this.kept[at] = flight
        if (flight === undefined) this.unmarked(at, nowMs)
    }

    /** When `next` wants to be asked, or -1 for not before something else happens. */
    dueMs(queue: InFlight, nowMs: number): number {
        if (this.writing || this.isOff) return -1
        let dueMs = -1
        const flight = this.oldest(queue, nowMs)
        if (flight && this.freeSlot() >= 0) {
            dueMs = this.keepMs(flight)
            if (nowMs >= dueMs) dueMs = this.payableMs(flight, nowMs)
        }
        if (this.stale !== 0) {
            const markMs = this.markMs()
            if (dueMs < 0 || markMs < dueMs) dueMs = markMs
        }
        return dueMs >= 0 && dueMs < this.notBeforeMs ? this.notBeforeMs : dueMs
    }

    /** Nothing is being written, and nothing is to be. */
    isIdle(queue: InFlight, nowMs: number): boolean {
        if (this.writing) return false
        const dueMs = this.dueMs(queue, nowMs)
        return dueMs < 0 || dueMs > nowMs
    }

    private keepMs(flight: Flight): number {
        return this.urgent ? 0 : flight.sinceMs + KEEP_AFTER_MS
    }

    /** When what is settled is marked. */
    private markMs(): number {
        if (this.urgent) return 0
        for (const flight of this.kept)
            if (flight) return this.staleMs + SETTLE_MS
        return this.staleMs
    }

    /** When there is budget for a message; says so when there is none. */
    private payableMs(flight: Flight, nowMs: number): number {
        const nowS = wholeSeconds(nowMs)
        const readyS = this.budget.readyS(costOf(flight), nowS)
        if (readyS <= nowS) {
            this.saidBudget = false
            return nowMs
        }
        if (!this.saidBudget)
            this.say(
                `${this.budget.debt(nowS)} B written`,
                `${ALLOWED_BYTES} B and 1 more a minute`,
                "RAM only",
            )
        this.saidBudget = true
        return readyS * 1000
    }

    /** The oldest message that fits in a slot and is in none. */
    private oldest(queue: InFlight, nowMs: number): Flight | undefined {
        for (const flight of queue.list) {
            if (this.kept.indexOf(flight) >= 0) continue
            if (messageBytes(flight) <= MESSAGE_MAX_BYTES) return flight
            if (this.saidSize || nowMs < this.keepMs(flight)) continue
            this.saidSize = true
            this.say(
                `${messageBytes(flight)} B message`,
                `at most ${MESSAGE_MAX_BYTES} B in flash`,
                "RAM only",
            )
        }
        return undefined
    }

    /** A slot for a message, or -1. */
    private freeSlot(): number {
        for (let i = 0; i < SLOTS; ++i) if (!this.kept[i]) return i
        return -1
    }

    private write(at: number, flight: Flight | undefined, nowMs: number) {
        const nowS = wholeSeconds(nowMs)
        let settled = 0
        for (let i = 0; i < SLOTS; ++i)
            if (i !== at && !this.kept[i]) settled |= 1 << i
        const record: FlashRecord = {
            number: ++this.number,
            debtBytes: this.budget.debt(nowS),
            upS: nowS,
            settled,
        }
        if (flight) {
            const packet = flight.packet
            const properties = flight.properties
            const sinceMs = flight.sinceMs
            const waitedS = wholeSeconds(nowMs - sinceMs)
            record.message = { packet, properties, waitedS }
        }
        this.writing = { at, bytes: formatSlot(record), settled, flight }
        return this.writing
    }

    private say(value: string, allowed: string, used: string) {
        this.news.push({ value, allowed, used })
    }
}

/** How long ago a record was written, whole seconds, as far as one can know: never too much. */
function agoS({ upS }: FlashRecord, nowMs: number): number {
    const nowS = wholeSeconds(nowMs)
    return nowS < upS ? nowS : nowS - upS
}

/** Bytes of flash for a message, up to where it is marked as settled. A value's place in the store is a multiple of eight. */
function costOf(flight: Flight): number {
    return ENTRY_BYTES + ((slotBytes(flight) + 7) & ~7) + MARK_BYTES
}
