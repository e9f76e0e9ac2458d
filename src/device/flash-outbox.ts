// The flash-backed outbox on a device: reads its slots at the start and writes what the rules say, one record at a
// time, on a fiber of its own. mqtt/flash-outbox.ts has the rules, and what a power cut at each point means.
import * as ds from "@devicescript/core"
import { FlashOutbox } from "../mqtt/flash-outbox"
import {
    readSlot,
    SLOTS,
    type FlashRecord,
    type SlotProblem,
} from "../mqtt/flash-slot"
import type { Flight, InFlight } from "../mqtt/in-flight"
import type { Client } from "./client"
import { log } from "./log"
import type { FlashPort } from "./qos1"
import { readBytes, writeBytes } from "./settings"

/** The settings keys: OUT0 to OUT7 for messages, OUT8 for what only says which are settled. */
const KEY = "OUT"

/** How long a reboot waits for what is to be saved. */
const SAVE_MS = 2000

/** Between two looks whether it is. */
const LOOK_MS = 20

class DeviceFlash implements FlashPort {
    private client: Client
    private queue: InFlight

    constructor(
        private readonly rules: FlashOutbox,
        private flights: Flight[],
    ) {}

    attach(client: Client, queue: InFlight): Flight[] {
        this.client = client
        this.queue = queue
        const flights = this.flights
        this.flights = []
        return flights
    }

    settled(flight: Flight, nowMs: number) {
        this.rules.settled(flight, nowMs)
    }

    dueMs(nowMs: number): number {
        return this.rules.dueMs(this.queue, nowMs)
    }

    tick(nowMs: number) {
        const rules = this.rules
        const write = rules.next(this.queue, nowMs)
        this.tell()
        if (!write) return
        const self = this
        const run = async () => {
            const ok = await writeBytes(KEY + write.at, write.bytes)
            rules.written(ok, ds.millis())
            self.client.wake()
        }
        run.start()
    }

    /** Says what has to be said. */
    tell() {
        const news = this.rules.news
        if (!news.length) return
        this.rules.news = []
        for (const n of news) {
            const value = n.value
            const allowed = n.allowed
            const used = n.used
            log({ ev: "config", key: KEY, value, allowed, used })
        }
    }

    async save() {
        const rules = this.rules
        const queue = this.queue
        rules.urgent = true
        this.client.wake()
        const giveUpMs = ds.millis() + SAVE_MS
        while (ds.millis() < giveUpMs && !rules.isIdle(queue, ds.millis()))
            await ds.sleep(LOOK_MS)
    }
}

/**
 * Reads the flash-backed outbox, for the option `flash` of `qos1`. Await it before `startMqtt`, once: what comes back
 * from flash goes before anything new.
 */
export async function flashOutbox(): Promise<FlashPort> {
    const rules = new FlashOutbox()
    const flights = rules.restore(await readSlots(), ds.millis())
    const flash = new DeviceFlash(rules, flights)
    flash.tell()
    return flash
}

/**
 * What is stored; undefined when the store does not answer. Each record is looked at as it comes: all nine at once would
 * be close to what the VM takes for an endless loop.
 */
async function readSlots(): Promise<(FlashRecord | SlotProblem)[] | undefined> {
    const records: (FlashRecord | SlotProblem)[] = []
    for (let at = 0; at <= SLOTS; ++at) {
        const bytes = await readBytes(KEY + at)
        if (bytes && !bytes.length) return undefined
        records.push(readSlot(bytes))
    }
    return records
}
