// What is written into a device besides its program: settings, and the Wi-Fi it joins. They come from
// `.env.defaults` and `.env.local`, for a fleet also from a row of a CSV. Values are never printed.
import { parse } from "csv-parse/sync"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, statSync } from "node:fs"
import { basename, dirname } from "node:path"
import { MAX_KEY_BYTES, readEnvFiles, type Settings } from "../vm/env"
import { MAX_VALUE_BYTES } from "../vm/flash-image"
import { Trouble } from "./trouble"

export interface DeviceSettings {
    /** Key -> JSON text, as the program reads them. */
    settings: Settings
    wifi: Wifi | undefined
}

export interface Wifi {
    ssid: string
    /** Empty for an open network. */
    password: string
}

/** One row of the CSV. */
export interface FleetDevice {
    id: string
    /** Its own settings; they win over those of the files. */
    settings: Settings
}

/** IEEE 802.11: an SSID has at most 32 bytes; a WPA passphrase at most 63 characters, a key 64 digits. */
const MAX_SSID_BYTES = 32
const MAX_PASSWORD_BYTES = 64

/** A CSV larger than this is a mistake: it has room for 10,000 devices. */
const MAX_CSV_BYTES = 10 * 1024 * 1024
const MAX_DEVICES = 10_000

/** The settings of the project's `.env` files, a fleet's row over them. */
export function deviceSettings(
    folder: string,
    device?: FleetDevice,
): DeviceSettings {
    let all: Settings
    try {
        all = { ...readEnvFiles(folder), ...device?.settings }
    } catch (e) {
        throw new Trouble((e as Error).message)
    }
    for (const key of Object.keys(all)) checkLength(key, all[key])
    const { WIFI_SSID, WIFI_PWD, ...settings } = all
    return { settings, wifi: wifiOf(WIFI_SSID, WIFI_PWD) }
}

function checkLength(key: string, json: string) {
    const bytes = Buffer.byteLength(json)
    if (bytes > MAX_VALUE_BYTES)
        throw new Trouble(
            `setting ${key} has ${bytes} bytes; allowed: at most ${MAX_VALUE_BYTES}`,
        )
}

function wifiOf(ssid?: string, password?: string): Wifi | undefined {
    if (ssid === undefined) return undefined
    const wifi = {
        ssid: bareText(ssid),
        password: password === undefined ? "" : bareText(password),
    }
    if (Buffer.byteLength(wifi.ssid) > MAX_SSID_BYTES)
        throw new Trouble(`WIFI_SSID: allowed are 1 to ${MAX_SSID_BYTES} bytes`)
    if (Buffer.byteLength(wifi.password) > MAX_PASSWORD_BYTES)
        throw new Trouble(
            `WIFI_PWD: allowed are at most ${MAX_PASSWORD_BYTES} bytes`,
        )
    return wifi
}

/** Text as it was meant: a number is taken as it was written, as the firmware does. */
function bareText(json: string): string {
    const value: unknown = JSON.parse(json)
    return typeof value === "string" ? value : json
}

/** What the runtime itself reads from its store: microsoft/devicescript, network/wifi.c. */
export function wifiTexts(wifi: Wifi | undefined): Settings {
    return wifi ? { wifi_ssid: wifi.ssid, wifi_psk: wifi.password } : {}
}

/** The names of what is written, for people: never a value. */
export function namesOf({ settings, wifi }: DeviceSettings): string {
    const names = Object.keys(settings).sort()
    names.push(
        wifi ? "Wi-Fi" : "no Wi-Fi (WIFI_SSID and WIFI_PWD in .env.local)",
    )
    return names.join(", ")
}

/**
 * The devices of a CSV: a column `id`, any other column a setting's key. An empty cell leaves the
 * setting to the `.env` files. All values are text, so that `0123` stays what it is.
 * @throws Trouble that names line and column; never a value
 */
export function readFleet(file: string): FleetDevice[] {
    if (!existsSync(file)) throw new Trouble(`${file}: no such file`, 2)
    if (statSync(file).size > MAX_CSV_BYTES)
        throw new Trouble(`${file}: allowed are at most ${MAX_CSV_BYTES} bytes`)
    return parseFleet(readFileSync(file, "utf8"), basename(file))
}

/** As `readFleet`, from text. */
export function parseFleet(text: string, name: string): FleetDevice[] {
    const rows = parseRows(text, name)
    if (!rows.length) throw new Trouble(`${name}: no devices in it`)
    if (rows.length > MAX_DEVICES)
        throw new Trouble(`${name}: allowed are at most ${MAX_DEVICES} devices`)
    const lineOf = new Map<string, number>()
    return rows.map(({ record, line }) => {
        const device = deviceOf(record, `${name}, line ${line}`)
        // Files are named after ids, and some file systems don't tell A from a.
        const id = device.id.toLowerCase()
        const before = lineOf.get(id)
        if (before !== undefined)
            throw new Trouble(
                `${name}: two devices have the id ${device.id}: lines ${before} and ${line}`,
            )
        lineOf.set(id, line)
        return device
    })
}

interface Row {
    record: Record<string, string>
    line: number
}

function parseRows(text: string, name: string): Row[] {
    try {
        return (
            parse(text, {
                bom: true,
                columns: header => columnsOf(header, name),
                info: true,
                skip_empty_lines: true,
                trim: true,
            }) as unknown as {
                record: Row["record"]
                info: { lines: number }
            }[]
        ).map(({ record, info }) => ({ record, line: info.lines }))
    } catch (e) {
        if (e instanceof Trouble) throw e
        // The library's own message may quote a cell.
        const { code, lines } = e as { code?: string; lines?: number }
        throw new Trouble(`${name}: no CSV at line ${lines ?? "?"}: ${code}`)
    }
}

function columnsOf(header: string[], name: string): string[] {
    if (!header.includes("id"))
        throw new Trouble(`${name}: the first line needs a column id`)
    header.forEach((key, at) => {
        if (!/^\w+$/.test(key) || key.length > MAX_KEY_BYTES)
            throw new Trouble(
                `${name}: column ${at + 1} of the first line is no setting's key; ` +
                    `allowed: at most ${MAX_KEY_BYTES} letters, digits and _`,
            )
        if (header.indexOf(key) !== at)
            throw new Trouble(`${name}: column ${key} is there twice`)
    })
    return header
}

function deviceOf(record: Record<string, string>, where: string): FleetDevice {
    const { id, ...cells } = record
    if (!/^[\w][\w.-]{0,39}$/.test(id))
        throw new Trouble(
            `${where}: allowed as id: 1 to 40 letters, digits, and _ . -`,
        )
    const settings: Settings = {}
    for (const key of Object.keys(cells)) {
        if (cells[key] === "") continue
        const json = JSON.stringify(cells[key])
        if (Buffer.byteLength(json) > MAX_VALUE_BYTES)
            throw new Trouble(
                `${where}, ${key}: allowed are at most ${MAX_VALUE_BYTES} bytes`,
            )
        settings[key] = json
    }
    return { id, settings }
}

/** A warning when git would take the file and the secrets in it, or undefined. */
export function gitWarning(file: string): string | undefined {
    const run = spawnSync("git", ["check-ignore", "-q", basename(file)], {
        cwd: dirname(file),
    })
    // 0: ignored; 1: not ignored; 128: no repository.
    if (run.status !== 1) return undefined
    return `warning: git does not ignore ${basename(file)}; it holds secrets: name it devices.csv or add it to .gitignore`
}

/** One device of the CSV. */
export function pickDevice(file: string, id: string | undefined): FleetDevice {
    const fleet = readFleet(file)
    const device = fleet.find(d => d.id === id)
    if (device) return device
    const ids = fleet.slice(0, 20).map(d => d.id)
    throw new Trouble(
        `which device of ${basename(file)}? Say --device ID. Allowed: ${ids.join(", ")}` +
            (fleet.length > ids.length ? ", ..." : ""),
        2,
    )
}
