// Reads `.env` files as the DeviceScript compiler does, so that a setting means the same in
// the simulator and on a board: a line with a `#` is dropped, nothing is trimmed but blanks
// before `=`, a value is JSON where it parses as JSON and a string otherwise.
import { existsSync, readFileSync } from "node:fs"

/** Settings as the device stores them: key -> JSON text. */
export type Settings = Record<string, string>

/** Keys longer than this do not fit the device's store. */
export const MAX_KEY_BYTES = 13

/** Parses the text of one file. Throws on a key that is too long, naming it. */
export function parseEnv(text: string, file = ".env"): Settings {
    const settings: Settings = {}
    for (const line of text.split(/\r?\n/)) {
        if (line.includes("#")) continue
        const at = line.indexOf("=")
        if (at <= 0) continue
        const key = line.slice(0, at).trimEnd()
        const value = line.slice(at + 1)
        if (key.length > MAX_KEY_BYTES)
            throw new RangeError(
                `${file}: key ${key} has ${key.length} characters; allowed: at most ${MAX_KEY_BYTES}`,
            )
        delete settings[key]
        if (value) settings[key] = toJson(value)
    }
    return settings
}

/** A value as JSON text, the way the compiler stores it. */
export function toJson(value: string): string {
    try {
        return JSON.stringify(JSON.parse(value))
    } catch {
        return JSON.stringify(value)
    }
}

/** `.env.defaults` overridden by `.env.local`, both optional. */
export function readEnvFiles(folder: string): Settings {
    let settings: Settings = {}
    for (const name of [".env.defaults", ".env.local"]) {
        const path = `${folder}/${name}`
        if (existsSync(path))
            settings = {
                ...settings,
                ...parseEnv(readFileSync(path, "utf8"), name),
            }
    }
    return settings
}
