// A runtime image that a test makes up: it has what the real one has where tools look, header, partition
// table and an empty place for the board's pins, and no code.
// Sources: ESP-IDF, "App Image Format" and "Partition Tables"; partitions.csv of microsoft/devicescript-esp32.

const CHIP_IDS: Record<string, number> = {
    esp32: 0,
    esp32s2: 2,
    esp32c3: 5,
    esp32s3: 9,
}

/** From partitions.csv: type, subtype, offset, bytes, name. */
const PARTITIONS: [number, number, number, number, string][] = [
    [0x8a, 0x00, 0x9000, 0x2000, "dcfg"],
    [0x01, 0x02, 0xb000, 0x4000, "nvs"],
    [0x01, 0x01, 0xf000, 0x1000, "phy_init"],
    [0x00, 0x00, 0x10000, 0x1b0000, "factory"],
    [0x8a, 0x01, 0x1c0000, 0x40000, "fstor"],
]

/** The flash address of the bootloader, with which a merged image begins. */
export function bootOffset(chip: string): number {
    return chip === "esp32" || chip === "esp32s2" ? 0x1000 : 0
}

/** A merged image of bootloader, partition table and application, up to `bytes` in flash. */
export function madeUpRuntime(chip: string, endOffset = 0x20000): Buffer {
    const base = bootOffset(chip)
    const image = Buffer.alloc(endOffset - base, 0xff)
    header(image, chip)
    PARTITIONS.forEach(([type, subtype, offset, bytes, name], i) => {
        const at = 0x8000 - base + 32 * i
        image.writeUInt16LE(0x50aa, at)
        image[at + 2] = type
        image[at + 3] = subtype
        image.writeUInt32LE(offset, at + 4)
        image.writeUInt32LE(bytes, at + 8)
        image.fill(0, at + 12, at + 32)
        image.write(name, at + 12, 15)
    })
    header(image.subarray(0x10000 - base), chip)
    return image
}

/** An image without segments: magic, none, quad I/O, 2 MB at 40 MHz, no entry point, chip id. */
function header(image: Buffer, chip: string) {
    Buffer.from([0xe9, 0, 2, 0x10, 0, 0, 0, 0, 0xee, 0, 0, 0]).copy(image)
    image.writeUInt16LE(CHIP_IDS[chip], 12)
    image.fill(0, 14, 24)
    // The application's own content, so that it is more than a header.
    for (let at = 24; at < 4096; at++) image[at] = (at * 7) & 0xff
}
