// Reads settings from flash, raw: `readSetting` of @devicescript/settings returns the default
// for text it can't parse, so garbage would look like a missing value.
import * as ds from "@devicescript/core"
import { settings } from "@devicescript/settings"

/** The text stored under `key` (at most 13 characters), or undefined. */
export async function readRaw(key: string): Promise<string | undefined> {
    const packet = await ds.actionReport(
        settings,
        "get",
        async () => await settings.get(key),
        p => p.decode()[0] === key,
    )
    const bytes = packet.decode()[1] as Buffer
    return bytes && bytes.length ? bytes.toString() : undefined
}
