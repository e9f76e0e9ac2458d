// Reads settings out of a flash image, as the runtime would at its next start: microsoft/jacdac-c, source/jd_fstor.c has
// the format. Two banks, each a log of entries; of a key the last entry counts. A program's settings begin with a colon.
import "../device-methods"
import { FlashOutbox } from "../../src/mqtt/flash-outbox"
import { readSlot, SLOTS } from "../../src/mqtt/flash-slot"
import type { Flight } from "../../src/mqtt/in-flight"

const MAGIC = [0x52545346, 0x6becea0a]
const HEADER_BYTES = 24
const ENTRY_BYTES = 24
const KEY_BYTES = 16

/** The value of a setting; undefined when there is none. */
export function storedIn(image: Uint8Array, key: string): Buffer | undefined {
    const flash = Buffer.from(image)
    const bank = newestBank(flash)
    if (bank < 0) return undefined
    let value: Buffer | undefined
    for (let at = bank + HEADER_BYTES; ; at += ENTRY_BYTES) {
        const offset = flash.readUInt32LE(at + KEY_BYTES)
        if (offset === 0xffffffff) return value?.length ? value : undefined
        const size = flash.readUInt32LE(at + KEY_BYTES + 4)
        const name = flash.toString("latin1", at, at + KEY_BYTES)
        if (name.slice(0, name.indexOf("\0")) === `:${key}`)
            value = flash.subarray(offset, offset + size)
    }
}

function newestBank(flash: Buffer): number {
    let newest = -1
    let generation = -1
    const isBank = (at: number) =>
        at + HEADER_BYTES <= flash.length &&
        flash.readUInt32LE(at) === MAGIC[0] &&
        flash.readUInt32LE(at + 4) === MAGIC[1]
    const pageBytes = [...Array(64).keys()]
        .map(i => i * 4096)
        .filter(isBank)
        .map(at => flash.readUInt32LE(at + 12) * flash.readUInt16LE(at + 18))[0]
    for (const at of [0, pageBytes ?? 0])
        if (isBank(at) && flash.readUInt32LE(at + 8) > generation) {
            generation = flash.readUInt32LE(at + 8)
            newest = at
        }
    return newest
}

/** Payloads of the messages in the flash-backed outbox that a start now would send again, in order. */
export function keptIn(image: Uint8Array): string[] {
    const records = Array.from({ length: SLOTS + 1 }, (_, at) =>
        readSlot(storedIn(image, `OUT${at}`)),
    )
    return new FlashOutbox().restore(records, 0).map(payloadOf)
}

function payloadOf({ packet }: Flight): string {
    let body = 1
    while (packet[body] > 127) body++
    const topicBytes = (packet[body + 1] << 8) | packet[body + 2]
    return packet.toString("utf8", body + 5 + topicBytes)
}
