// A device's flash: what outlives power cuts and reboots.

/** Where a VM keeps its flash image. */
export interface Flash {
    load(): Uint8Array
    save(image: Uint8Array): void
}

/** Flash in memory; counts the times the VM wrote to it. */
export class MemoryFlash implements Flash {
    writes = 0

    /** @param image what the flash holds at first; empty when left out */
    constructor(public image: Uint8Array = new Uint8Array(0)) {}

    load() {
        return this.image.slice()
    }
    save(image: Uint8Array) {
        this.writes++
        this.image = image.slice()
    }
}
