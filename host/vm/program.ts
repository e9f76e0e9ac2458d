// The DeviceScript programs of this project, compiled once per content of their sources.
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { sourcesOf } from "./sources"

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

/** Where compiled programs are kept. */
export const CACHE = join(PROJECT, ".devicescript/programs")

/** What `devs` reads beside a program's sources. */
export const CONFIG = ["package.json", "devsconfig.json"]

const memory = new Map<string, Program>()
/** What the compiler said of those that can't be compiled: it would say the same again, some seconds later. */
const failures = new Map<string, string>()

/**
 * The compiled program; compiles it when nothing in the cache fits its sources.
 * @param file path from the project's folder, such as "src/main.ts"
 * @throws Error with the compiler's output
 */
export function loadProgram(file: string): Program {
    const known = memory.get(file)
    if (known) return known
    const folder = folderOf(file)
    if (!existsSync(folder)) withLock(() => compile(file, folder))
    const program = {
        bytecode: readFileSync(join(folder, "bytecode.devs")),
        debugJson: readFileSync(join(folder, "bytecode-dbg.json"), "utf8"),
        report: readFileSync(join(folder, "report.txt"), "utf8"),
    }
    memory.set(file, program)
    return program
}

/** Where a program is once it is compiled. */
export const folderOf = (file: string) => join(CACHE, keyOf(file))

const COMPILER = join(dirname(fileURLToPath(import.meta.url)), "compile.ts")
const compilerArgs = (files: string[]) => [
    "--import",
    "tsx",
    COMPILER,
    ...files,
]

function compile(file: string, folder: string) {
    if (existsSync(folder)) return
    const failure = failures.get(folder)
    if (failure !== undefined) throw new Error(failure)
    const run = spawnSync(process.execPath, compilerArgs([file]), {
        cwd: PROJECT,
        encoding: "utf8",
    })
    if (existsSync(folder)) return
    failures.set(folder, run.stderr)
    throw new Error(run.stderr)
}

/**
 * Compiles what is not in the cache yet, with two processes. A program that can't be compiled is left to whoever loads it.
 * @param onDone called after each with how many are left
 */
export async function compileAll(
    files: string[],
    onDone: (left: number) => void,
) {
    const missing = files.filter(file => !existsSync(folderOf(file)))
    if (!missing.length) return
    let left = missing.length
    const unlock = lock()
    try {
        const halves = [0, 1].map(h => missing.filter((_, i) => i % 2 === h))
        const first = compileInTurn(halves[0], () => onDone(--left))
        // The first compile unpacks @devicescript/*; the others find that done.
        await first.started
        if (halves[1].length)
            await compileInTurn(halves[1], () => onDone(--left)).ended
        await first.ended
    } finally {
        unlock()
    }
}

/** Resolves `started` with the first program, `ended` with the last. */
function compileInTurn(files: string[], onDone: () => void) {
    const child = spawn(process.execPath, compilerArgs(files), {
        cwd: PROJECT,
        stdio: ["ignore", "pipe", "ignore"],
    })
    const ended = new Promise<void>(done => child.on("close", () => done()))
    const started = new Promise<void>(done => {
        child.stdout.setEncoding("utf8").on("data", (text: string) => {
            for (let n = text.split("\n").length; n > 1; --n) onDone()
            done()
        })
        child.on("close", () => done())
    })
    return { started, ended }
}

/** Changes when one of the program's own files does, or what `devs` reads for every program: the boards, too. */
function keyOf(file: string): string {
    const hash = createHash("sha256")
    for (const [path, text] of sourcesOf(PROJECT, file))
        hash.update(path).update(text)
    const boards = join(PROJECT, "boards")
    const names = existsSync(boards) ? readdirSync(boards).sort() : []
    for (const name of names.filter(n => n.endsWith(".board.json")))
        hash.update(name).update(readFileSync(join(boards, name)))
    for (const name of CONFIG) hash.update(readFileSync(join(PROJECT, name)))
    return `${file.replace(/\W+/g, "-")}-${hash.digest("hex").slice(0, 16)}`
}

/** One compile at a time: each unpacks @devicescript/* into the one node_modules. */
export function withLock(run: () => void) {
    const unlock = lock()
    try {
        run()
    } finally {
        unlock()
    }
}

/** Waits for the lock; returns what gives it back. */
function lock() {
    const file = join(CACHE, "lock")
    mkdirSync(CACHE, { recursive: true })
    const pause = new Int32Array(new SharedArrayBuffer(4))
    while (!take(file)) Atomics.wait(pause, 0, 0, 50)
    return () => rmSync(file, { force: true })
}

/** Takes the lock, also from a process that is gone. */
function take(file: string): boolean {
    try {
        writeFileSync(file, `${process.pid}`, { flag: "wx" })
        return true
    } catch {
        const owner = Number(readText(file))
        // An empty one is just being written.
        if (owner && !isRunning(owner)) rmSync(file, { force: true })
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
