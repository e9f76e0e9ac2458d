// Settings in flash as raw text: `readSetting` of @devicescript/settings returns the default for text it can't parse, so
// garbage would look like a missing value, and it waits for ever for an answer that was lost. Nor is its role used,
// which every program that imports it has, whether it reads settings or not.
import * as ds from "@devicescript/core"
import type { ConfigSource } from "../core/config"
import type { ConfigLine } from "../core/line"
import { readText } from "../mqtt/bytes"

/** What a read says when no answer came, or none that is text: no setting and no record can be empty. */
export const NO_ANSWER = ""

/** The same of bytes. */
const NO_BYTES = Buffer.alloc(0)

/** After power-on the service needs a second to be found; then it answers within milliseconds (measured). */
const ANSWER_MS = 2000

/** Times that a read, or a write and its reading back, is tried. */
const TRIES = 3

let theStore: ds.Settings

function store(): ds.Settings {
    if (!theStore) theStore = new ds.Settings()
    return theStore
}

/** The text stored under `key` (at most 13 characters); undefined when there is none; NO_ANSWER. */
export async function readRaw(key: string): Promise<string | undefined> {
    return textOf(await readBytes(key))
}

/** The bytes stored under `key`; undefined when there are none; empty when no answer came. */
export async function readBytes(key: string): Promise<Buffer | undefined> {
    let bytes = await ask(key)
    for (let i = 1; i < TRIES && isEmpty(bytes); ++i) bytes = await ask(key)
    return bytes
}

/** Stores `text` (at most 200 bytes) under `key` and reads it back: whether it is there. */
export async function writeRaw(key: string, text: string): Promise<boolean> {
    return await writeBytes(key, Buffer.from(text))
}

/** Stores 1..200 bytes under `key` and reads them back: whether they are there. */
export async function writeBytes(key: string, bytes: Buffer): Promise<boolean> {
    const send = async () => {
        await store().set(key, bytes)
    }
    const hex = bytes.toString("hex")
    for (let i = 0; i < TRIES; ++i) {
        send.start()
        const stored = await ask(key)
        if (stored && stored.toString("hex") === hex) return true
    }
    return false
}

/** Deletes a setting: whether it is gone. */
export async function deleteRaw(key: string): Promise<boolean> {
    const send = async () => {
        await store().delete(key)
    }
    send.start()
    return (await readRaw(key)) === undefined
}

/** Settings that have been read, all at once: what follows needs no waiting. */
export interface ReadSettings extends ConfigSource {
    /** How many of the keys there are. */
    found: number
}

/** Reads settings; `complain` is told of those that are not allowed. */
export async function readSettings(
    keys: string[],
    complain: (line: ConfigLine) => void,
): Promise<ReadSettings> {
    const values: string[] = []
    let found = 0
    for (const key of keys) {
        const value = await readRaw(key)
        if (value !== undefined) found++
        values.push(value)
    }
    return { raw: key => values[keys.indexOf(key)], complain, found }
}

/** Asks once. The request has a fiber of its own: while the service is not found, it waits there. */
async function ask(key: string): Promise<Buffer | undefined> {
    const fiber = ds.Fiber.self()
    const settings = store()
    const code = settings.spec.lookup("get").code
    let answered = false
    let bytes: Buffer | undefined = NO_BYTES
    const stop = settings.report().subscribe(p => {
        if (answered || p.serviceCommand !== code) return
        const [name, value] = p.decode() as [string, Buffer]
        if (name !== key) return
        answered = true
        bytes = value && value.length ? value : undefined
        if (fiber.suspended) fiber.resume(undefined)
    })
    const send = async () => {
        await store().get(key)
    }
    send.start()
    const untilMs = ds.millis() + ANSWER_MS
    while (!answered && ds.millis() < untilMs)
        await ds.suspend(untilMs - ds.millis())
    stop()
    return bytes
}

function isEmpty(bytes: Buffer | undefined): boolean {
    return bytes !== undefined && bytes.length === 0
}

function textOf(value: Buffer | undefined): string | undefined {
    if (value === undefined) return undefined
    if (!value.length) return NO_ANSWER
    const text = readText(value, 0, value.length)
    return text === undefined ? NO_ANSWER : text
}
