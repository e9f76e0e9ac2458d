// Runs the tests with Node's runner: all of them, or those whose path holds one of the words given.
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { compileAll, PROJECT } from "../host/vm/program"
import { sourcesOf } from "../host/vm/sources"

/** Long enough for the slowest test on a busy machine; a hang must not last for ever. */
const TEST_TIMEOUT_MS = 300_000

/** Test files that need less than all programs. */
const FEW = 10

/** Paths of a folder's files, from the project's folder. */
const list = (folder: string, recursive = false) =>
    readdirSync(join(PROJECT, folder), { recursive })
        .map(name => join(folder, String(name)))
        .sort()

/** What tests run in the VM: no part of another program. */
function programs(): string[] {
    const all = [...list("devs"), ...list("test/bytecode"), "src/main.ts"]
    const parts = new Set(
        all.flatMap(file =>
            [...sourcesOf(PROJECT, file).keys()].filter(name => name !== file),
        ),
    )
    return all.filter(file => !parts.has(file))
}

function test(files: string[]) {
    const child = spawn(
        process.execPath,
        [
            "--import",
            "tsx",
            "--test",
            "--test-reporter=spec",
            `--test-timeout=${TEST_TIMEOUT_MS}`,
            `--test-concurrency=${Math.max(2, availableParallelism())}`,
            ...files,
        ],
        { cwd: PROJECT, stdio: "inherit" },
    )
    for (const signal of ["SIGINT", "SIGTERM"] as const)
        process.on(signal, () => child.kill(signal))
    child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}

async function main(words: string[]) {
    const files = list("test", true)
        .filter(name => name.endsWith(".test.ts"))
        .filter(name => !words.length || words.some(w => name.includes(w)))
    if (!files.length) {
        console.error(`no test file has ${words.join(" or ")} in its path`)
        process.exit(2)
    }
    // Together they are compiled in a third of the time; a few tests compile what they need.
    if (files.length > FEW)
        await compileAll(programs(), left =>
            console.log(`programs to compile: ${left}`),
        )
    test(files)
}

void main(process.argv.slice(2))
