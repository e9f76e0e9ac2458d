// `npm run fuzz`: mutated broker streams through the pure parser and session, and through the firmware
// in the VM. A find is written to test/host/finds, where test/host/fuzz.test.ts keeps running it.
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Command } from "commander"
import { readFlags, toConsole, whole } from "./flags"
import { span } from "./show"
import { Pool } from "./soak/pool"
import { loadProgram, PROJECT } from "./vm/program"
import type { Find } from "./fuzz/pure"
import type { Share, Yield } from "./fuzz/worker"

const { stdout, stderr } = process

/** Streams in one worker's hands at a time. */
const PURE_SHARE = 50_000
const VM_SHARE = 1000

const FINDS = join(PROJECT, "test/host/finds")

/** What the flags say. */
interface Options {
    pure: number
    vm: number
    seed: number
    jobs: number
    json?: boolean
}

const MAX = 1_000_000_000
const count = whole(0, MAX)

const COMMAND = new Command("npm run fuzz --")
    .description(
        "Feeds mutated broker streams to the parser and to the firmware in the VM: nothing may panic, hang or grow.",
    )
    .option(
        "--pure <n>",
        "streams through parser and session",
        count,
        1_000_000,
    )
    .option("--vm <n>", "streams through the firmware", count, 10_000)
    .option("--seed <n>", "another seed gives other streams", count, 1)
    .option("--jobs <n>", "workers", whole(1, 1000), availableParallelism())
    .option("--json", "print the result as one JSON object")
    .addHelpText(
        "after",
        "\nExit codes: 0 nothing found; 1 a find, written to test/host/finds; 2 a flag can't be used; 130 Ctrl-C.",
    )
    .allowExcessArguments(false)

/** Keeps a find as a test. */
function keep(way: string, { what, chunks }: Find): string {
    const json = JSON.stringify({ way, what, chunks }, undefined, 4)
    const hash = createHash("sha256").update(json).digest("hex").slice(0, 8)
    mkdirSync(FINDS, { recursive: true })
    writeFileSync(join(FINDS, `${way}-${hash}.json`), `${json}\n`)
    return `test/host/finds/${way}-${hash}.json`
}

function shares(way: Share["way"], seed: number, total: number): Share[] {
    const size = way === "pure" ? PURE_SHARE : VM_SHARE
    const all: Share[] = []
    for (let from = 0; from < total; from += size)
        all.push({ way, seed, from, count: Math.min(size, total - from) })
    return all
}

async function run(options: Options) {
    const { seed, json, jobs } = options
    const startMs = performance.now()
    const pool = new Pool<Share, Yield>(
        new URL("./fuzz/worker.ts", import.meta.url),
        jobs,
    )
    const done = { pure: 0, vm: 0 }
    const packets: Record<string, number> = {}
    const finds: { way: string; what: string; file: string }[] = []
    const draw = () =>
        stderr.write(
            `\r\x1b[K${done.pure} streams through the parser, ${done.vm} through the VM, ${finds.length} finds`,
        )
    const timer = stderr.isTTY ? setInterval(draw, 500) : undefined
    const finish = (code: number) => {
        clearInterval(timer)
        if (timer) stderr.write("\r\x1b[K")
        pool.close()
        const wallMs = performance.now() - startMs
        const wallSeconds = Math.round(wallMs / 100) / 10
        // Only Ctrl-C ends it before anything is known.
        const isBlank = code > 1 && !done.pure && !done.vm && !finds.length
        const read = Object.entries(packets)
            .map(([type, n]) => `${n} ${type}`)
            .join(", ")
        stdout.write(
            (json
                ? JSON.stringify({ ...done, wallSeconds, packets, finds })
                : isBlank
                  ? "stopped before the first: nothing is known"
                  : `${done.pure} streams through parser and session, ${done.vm} through the VM, in ${span(wallMs)}\n` +
                    `packets read: ${read}\n` +
                    `${finds.length ? `${finds.length} finds` : "nothing found"}`) +
                "\n",
        )
        process.exit(code)
    }
    process.on("SIGINT", () => finish(130))
    process.on("SIGTERM", () => finish(143))
    if (options.vm > 0) loadProgram("src/main.ts")
    const work = [
        ...shares("vm", seed, options.vm),
        ...shares("pure", seed, options.pure),
    ]
    await Promise.all(
        work.map(async share => {
            const result = await pool.run(share)
            const find =
                "outcome" in result
                    ? result.outcome.find
                    : { what: result.text, chunks: [] }
            if ("outcome" in result) {
                done[share.way] += result.outcome.done
                const { packets: read = {} } = result.outcome
                for (const [type, n] of Object.entries(read))
                    packets[type] = (packets[type] ?? 0) + n
            }
            if (!find) return
            const file = keep(share.way, find)
            finds.push({ way: share.way, what: find.what, file })
            stderr.write(`${share.way}: ${find.what}\n  kept in ${file}\n`)
        }),
    )
    finish(finds.length ? 1 : 0)
}

const given = readFlags(COMMAND, process.argv.slice(2), toConsole)
if (typeof given === "number") process.exit(given)
else void run(given as Options)
