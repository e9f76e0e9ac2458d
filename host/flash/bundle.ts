// One image of runtime, program and settings: what a production line writes to a blank board.
// `devs bundle` leaves Wi-Fi's keys out, because its store is filled by a VM without Wi-Fi; here
// they are written as the runtime itself would.
import { makeFlash } from "../vm/flash-image"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { storeRegion, withStore, type RuntimeImage } from "./image"
import { wifiTexts, type DeviceSettings } from "./settings"

/** The image of one device. */
export async function bundleImage(
    runtime: RuntimeImage,
    bytecode: Uint8Array,
    { settings, wifi }: DeviceSettings,
): Promise<Uint8Array> {
    const store = await makeFlash(bytecode, settings, {
        storeBytes: storeRegion(runtime).bytes,
        texts: wifiTexts(wifi),
    })
    return withStore(runtime, store)
}

/**
 * Writes an image; only its owner may read it, because it holds secrets.
 * @param name board, or board and device
 * @returns its path; it ends in the flash address it belongs to, as `devs flash` wants it
 */
export function saveImage(
    folder: string,
    name: string,
    image: Uint8Array,
    flashOffset: number,
): string {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const file = `bundle-${name}-0x${flashOffset.toString(16)}.bin`
    const path = join(folder, file)
    writeFileSync(path, image, { mode: 0o600 })
    // The mode above counts for new files only.
    chmodSync(path, 0o600)
    return path
}
