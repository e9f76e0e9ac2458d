// Runs the tests with Node's runner: all of them, or those whose path holds one of the words given.
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { PROJECT } from "../host/vm/program"

/** Long enough for the slowest test on a busy machine; a hang must not last for ever. */
const TEST_TIMEOUT_MS = 300_000

const words = process.argv.slice(2)
const files = readdirSync(join(PROJECT, "test"), { recursive: true })
    .map(name => join("test", String(name)))
    .filter(name => name.endsWith(".test.ts"))
    .filter(name => !words.length || words.some(word => name.includes(word)))
    .sort()
if (!files.length) {
    console.error(`no test file has ${words.join(" or ")} in its path`)
    process.exit(2)
}

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
