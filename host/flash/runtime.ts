// The runtime image of a board, from `devs`: downloaded, from its cache, or from a file for work offline.
import {
    copyFileSync,
    existsSync,
    mkdirSync,
    readFileSync,
    utimesSync,
} from "node:fs"
import { basename, join, resolve } from "node:path"
import type { Board } from "./boards"
import { runDevs } from "./devs"
import { chipOf, offsetInName, storeRegion, type RuntimeImage } from "./image"
import { Trouble } from "./trouble"

export interface RuntimeSource {
    /** The project's folder. */
    cwd: string
    signal: AbortSignal
    /** An image somebody has already; undefined: `devs` downloads one. */
    file: string | undefined
    /** A line of progress. */
    say(line: string): void
}

/** Where `devs` keeps what it has downloaded, for a day. */
const CACHE = ".devicescript/cache"

/**
 * The board's runtime, its pins in it, checked to be for the board's chip.
 * @throws Trouble when there is none, or it is another chip's
 */
export async function runtimeImage(
    board: Board,
    source: RuntimeSource,
): Promise<RuntimeImage> {
    const from = source.file ?? "download or cache"
    source.say(`getting the runtime of ${board.id}: ${from} ...`)
    const path = await imagePath(board, source)
    const image = {
        name: basename(path),
        bytes: readFileSync(path),
        flashOffset: offsetInName(path) ?? 0,
    }
    const chip = chipOf(image)
    if (chip !== board.chip)
        throw new Trouble(
            `wrong chip: board ${board.id} has an ${board.chip}, ${image.name} is for ` +
                `${chip ?? "none (no ESP32 image)"}`,
        )
    storeRegion(image)
    source.say(`runtime: ${image.name}, ${image.bytes.length} bytes`)
    return image
}

async function imagePath(board: Board, source: RuntimeSource) {
    const { cwd, file } = source
    const args = ["flash", "esp32", "--remote", "--board", board.id]
    if (file !== undefined) {
        checkFile(file)
        // devs takes another's file as it is; a board of ours needs its pins put into it.
        if (isOwn(board, cwd)) toCache(file, cwd)
        else args.push("--file", resolve(file))
    }
    let ended = await runDevs(args, source)
    if (ended.code !== 0 && renewCached(ended.output, cwd)) {
        source.say("no network: the copy of an earlier download is used")
        ended = await runDevs(args, source)
    }
    const path = /^(\S.*-0x[0-9a-f]+\.bin)\s*$/im.exec(
        ended.output.split("flash firmware instructions")[1] ?? "",
    )?.[1]
    if (ended.code !== 0 || !path)
        throw new Trouble(whyNone(board, ended.output, file))
    return resolve(cwd, path)
}

function checkFile(file: string) {
    if (!existsSync(file)) throw new Trouble(`--file ${file}: no such file`, 2)
    if (offsetInName(file) === undefined)
        throw new Trouble(
            `--file ${basename(file)}: its name must end in the flash address it belongs to, ` +
                "such as -0x1000.bin (esp32, esp32s2) or -0x0.bin (esp32c3, esp32s3)",
            2,
        )
}

/** True for a board of the project's own: there is no ready image of it to download. */
function isOwn(board: Board, cwd: string) {
    return existsSync(join(cwd, "boards", `${board.id}.board.json`))
}

function toCache(file: string, cwd: string) {
    const cached = join(cwd, CACHE, basename(file))
    mkdirSync(join(cwd, CACHE), { recursive: true })
    if (resolve(file) !== resolve(cached)) copyFileSync(file, cached)
    touch(cached)
}

/** What `devs` wanted to download, by its own word. */
function wanted(output: string): string | undefined {
    return /^fetch (\S+)$/m.exec(output)?.[1]
}

/** Makes `devs` take an old download once more. False when there is none. */
function renewCached(output: string, cwd: string): boolean {
    const url = wanted(output)
    const cached = url && join(cwd, CACHE, basename(url))
    if (!cached || !existsSync(cached)) return false
    touch(cached)
    return true
}

function touch(path: string) {
    const now = new Date()
    utimesSync(path, now, now)
}

function whyNone(board: Board, output: string, file: string | undefined) {
    const url = wanted(output)
    if (!url)
        return `devs has no runtime image for ${board.id}:\n${tail(output)}`
    if (file !== undefined)
        return (
            `--file ${basename(file)}: board ${board.id} is made from ${basename(url)}; ` +
            "give that file, under that name"
        )
    const status = /can't fetch: (.+)/.exec(output)?.[1]
    return (
        `no runtime image for ${board.id}: ${status ?? "no network"}, and none was downloaded before.\n` +
        `Download ${url}\non a computer with a network and give it as --file ${basename(url)}`
    )
}

function tail(output: string) {
    return output.trim().split("\n").slice(-5).join("\n")
}
