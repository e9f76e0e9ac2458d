// An ESP32 runtime image as bytes: which chip it is for, where its flash store lies, and that
// store put into it. Pure. Sources: ESP-IDF, "App Image Format" (the header's magic byte and chip id)
// and "Partition Tables" (at 0x8000, entries of 32 bytes); partitions.csv of microsoft/devicescript-esp32.
import { Trouble } from "./trouble"

/** A runtime image as `devs` makes and names it. */
export interface RuntimeImage {
    /** Where it came from, for messages. */
    name: string
    bytes: Uint8Array
    /** The flash address of its first byte. */
    flashOffset: number
}

/** Part of the flash, in flash addresses. */
export interface Region {
    offset: number
    bytes: number
}

const IMAGE_MAGIC = 0xe9
const CHIP_ID_AT = 12
const CHIPS: Record<number, string> = {
    0: "esp32",
    2: "esp32s2",
    5: "esp32c3",
    9: "esp32s3",
}

const TABLE_AT = 0x8000
const TABLE_BYTES = 0xc00
const ENTRY_BYTES = 32
const ENTRY_MAGIC = 0x50aa
const STORE_TYPE = 0x8a
const STORE_SUBTYPE = 1

const PAGE_BYTES = 4096

/** The flash address that a file's name ends in, such as 0x1000 of `...-0x1000.bin`; undefined: none. */
export function offsetInName(name: string): number | undefined {
    const found = /-(0x[0-9a-f]+)\.bin$/i.exec(name)
    return found ? Number(found[1]) : undefined
}

/** The chip an image is for, as `devs` names it; undefined when it is no ESP32 image at all. */
export function chipOf(image: RuntimeImage): string | undefined {
    const { bytes } = image
    if (bytes.length < 24 || bytes[0] !== IMAGE_MAGIC) return undefined
    const id = bytes[CHIP_ID_AT] | (bytes[CHIP_ID_AT + 1] << 8)
    return CHIPS[id] ?? `chip ${id}`
}

/**
 * Where the image's own partition table puts the flash store.
 * @throws Trouble when there is no such table or no store in it
 */
export function storeRegion(image: RuntimeImage): Region {
    const { bytes, flashOffset, name } = image
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    const start = TABLE_AT - flashOffset
    const end = Math.min(start + TABLE_BYTES, bytes.length)
    for (
        let at = start;
        at >= 0 && at + ENTRY_BYTES <= end;
        at += ENTRY_BYTES
    ) {
        if (view.readUInt16LE(at) !== ENTRY_MAGIC) break
        if (bytes[at + 2] !== STORE_TYPE || bytes[at + 3] !== STORE_SUBTYPE)
            continue
        const region = {
            offset: view.readUInt32LE(at + 4),
            bytes: view.readUInt32LE(at + 8),
        }
        if (isUsable(region)) return region
    }
    throw new Trouble(
        `${name} is no DeviceScript runtime: no partition table with a flash store in it.\n` +
            "Allowed: an image as `devs` downloads it, its flash address at the end of its name.",
    )
}

/** Two banks of whole pages, in the 16 MB that a chip can address. */
function isUsable({ offset, bytes }: Region): boolean {
    return (
        bytes >= 2 * PAGE_BYTES &&
        bytes % (2 * PAGE_BYTES) === 0 &&
        offset % PAGE_BYTES === 0 &&
        offset + bytes <= 16 * 1024 * 1024
    )
}

/**
 * The image with this store in it; what lies between is erased flash.
 * @throws Trouble when the store's place is taken or of another size
 */
export function withStore(image: RuntimeImage, store: Uint8Array): Uint8Array {
    const region = storeRegion(image)
    if (store.length !== region.bytes)
        throw new Trouble(
            `the store has ${store.length} bytes; ${image.name} has room for exactly ${region.bytes}`,
        )
    const at = region.offset - image.flashOffset
    if (!image.bytes.subarray(at, at + store.length).every(isBlank))
        throw new Trouble(
            `${image.name} has a program or settings in it already: give the bare runtime`,
        )
    const whole = new Uint8Array(
        Math.max(image.bytes.length, at + store.length),
    ).fill(0xff)
    whole.set(image.bytes)
    whole.set(store, at)
    return whole
}

function isBlank(byte: number): boolean {
    return byte === 0xff || byte === 0
}
