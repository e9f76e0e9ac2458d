// Compiles a DeviceScript program with the project's own `devs build`, once per content.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The folder of package.json. */
export const PROJECT = join(dirname(fileURLToPath(import.meta.url)), "../..")

/** What the compiler says about a program, as far as it is used here. */
export interface DebugInfo {
    sizes: Record<string, number>
    functions: { name: string; size: number; srcmap?: number[] }[]
}

/** A compiled program. */
export interface Program {
    bytecode: Uint8Array
    /** Text of `bytecode-dbg.json`; parse it when needed, it is large. */
    debugJson: string
    /** What `devs build -s` printed: sizes in bytes for each function. */
    report: string
}

const CACHE = join(PROJECT, ".devicescript/programs")

/** What a compile may read: every program could import every source file. */
const SOURCES = ["src", "devs", "test", "boards"]
const LINKS = [...SOURCES, "node_modules", "devsconfig.json", "package.json"]

const memory = new Map<string, Program>()

/**
 * The compiled program; compiles it when nothing in the cache fits its sources.
 * @param file path from the project's folder, such as "src/main.ts"
 * @throws Error with the compiler's output
 */
export function loadProgram(file: string): Program {
    const known = memory.get(file)
    if (known) return known
    const folder = join(CACHE, keyOf(file))
    if (!existsSync(folder)) withLock(() => compile(file, folder))
    const program = {
        bytecode: readFileSync(join(folder, "bytecode.devs")),
        debugJson: readFileSync(join(folder, "bytecode-dbg.json"), "utf8"),
        report: readFileSync(join(folder, "report.txt"), "utf8"),
    }
    memory.set(file, program)
    return program
}

function keyOf(file: string): string {
    const hash = createHash("sha256")
    hash.update(file)
    for (const name of SOURCES) addTree(join(PROJECT, name), hash)
    hash.update(readFileSync(join(PROJECT, "package.json")))
    return `${file.replace(/\W+/g, "-")}-${hash.digest("hex").slice(0, 16)}`
}

function addTree(path: string, hash: ReturnType<typeof createHash>) {
    if (!existsSync(path)) return
    if (statSync(path).isDirectory()) {
        for (const name of readdirSync(path).sort())
            addTree(join(path, name), hash)
    } else if (/\.(ts|json)$/.test(path) && !path.endsWith(".test.ts"))
        hash.update(path).update(readFileSync(path))
}

/** Compiles in a folder of its own: `devs build` always writes to `.devicescript/bin` of where it runs. */
function compile(file: string, folder: string) {
    if (existsSync(folder)) return
    mkdirSync(CACHE, { recursive: true })
    const work = mkdtempSync(join(CACHE, "work-"))
    try {
        for (const name of LINKS)
            if (existsSync(join(PROJECT, name)))
                symlinkSync(join(PROJECT, name), join(work, name))
        const cli = createRequire(import.meta.url).resolve(
            "@devicescript/cli/built/devicescript-cli.cjs",
        )
        const run = spawnSync(
            process.execPath,
            [cli, "build", file, "--stats"],
            { cwd: work, encoding: "utf8" },
        )
        const report = run.stdout + run.stderr
        const out = join(work, ".devicescript/bin")
        if (run.status !== 0 || !existsSync(join(out, "bytecode.devs")))
            throw new Error(`devs build ${file} failed:\n${report}`)
        writeFileSync(join(out, "report.txt"), report)
        renameSync(out, folder)
    } finally {
        rmSync(work, { recursive: true, force: true })
    }
}

/** One compile at a time: each unpacks @devicescript/* into the one node_modules. */
export function withLock(run: () => void) {
    const lock = join(CACHE, "lock")
    mkdirSync(CACHE, { recursive: true })
    const pause = new Int32Array(new SharedArrayBuffer(4))
    while (!take(lock)) Atomics.wait(pause, 0, 0, 50)
    try {
        run()
    } finally {
        rmSync(lock, { force: true })
    }
}

/** Takes the lock, also from a process that is gone. */
function take(lock: string): boolean {
    try {
        writeFileSync(lock, `${process.pid}`, { flag: "wx" })
        return true
    } catch {
        const owner = Number(readText(lock))
        // An empty one is just being written.
        if (owner && !isRunning(owner)) rmSync(lock, { force: true })
        return false
    }
}

function readText(file: string): string {
    try {
        return readFileSync(file, "utf8")
    } catch {
        return ""
    }
}

function isRunning(pid: number): boolean {
    try {
        process.kill(pid, 0)
        return true
    } catch (e) {
        return (e as NodeJS.ErrnoException).code === "EPERM"
    }
}
