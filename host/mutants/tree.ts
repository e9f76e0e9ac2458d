// A copy of the project in a temporary folder, to break and to test: what is needed is copied, packages
// are linked. `@devicescript` is a folder of its own, because each build unpacks files into it.
import { spawn, type ChildProcess } from "node:child_process"
import {
    cpSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PROJECT } from "../vm/program"
import type { Mutant } from "./list"

const COPIED = [
    "src",
    "host",
    "test",
    "devs",
    "boards",
    "package.json",
    "devsconfig.json",
    "tsconfig.json",
]
const OWN = "@devicescript"

/** What a command did. */
export interface Ran {
    code: number | null
    output: string
}

export class Tree {
    readonly folder: string
    /** What is running, with all that it started: a process group. */
    private running: ChildProcess | undefined

    constructor() {
        this.folder = mkdtempSync(join(tmpdir(), "herdless-mutant-"))
        const have = new Set(readdirSync(PROJECT))
        for (const name of COPIED)
            if (have.has(name))
                cpSync(join(PROJECT, name), join(this.folder, name), {
                    recursive: true,
                })
        const packages = join(this.folder, "node_modules")
        mkdirSync(join(packages, OWN), { recursive: true })
        for (const name of readdirSync(join(PROJECT, "node_modules")))
            if (name !== OWN) this.link(packages, name)
        this.link(packages, join(OWN, "cli"))
    }

    private link(packages: string, name: string) {
        symlinkSync(join(PROJECT, "node_modules", name), join(packages, name))
    }

    /**
     * Breaks it.
     * @returns what puts it right again
     * @throws Error when the mutant is out of date
     */
    apply({ file, from, to, name }: Mutant): () => void {
        const path = join(this.folder, file)
        const text = readFileSync(path, "utf8")
        const parts = text.split(from)
        if (parts.length !== 2)
            throw new Error(
                `"${name}" is out of date: ${file} has ${parts.length - 1} times "${from.trim()}"`,
            )
        writeFileSync(path, parts.join(to))
        return () => writeFileSync(path, text)
    }

    /** Runs Node with these arguments, at most `limitMs`. */
    node(args: string[], limitMs: number): Promise<Ran> {
        return new Promise(resolve => {
            const child = spawn(process.execPath, args, {
                cwd: this.folder,
                env: { ...process.env, NODE_TEST_CONTEXT: undefined },
                detached: true,
            })
            this.running = child
            let output = ""
            const hear = (data: Buffer) => (output += data.toString())
            child.stdout.on("data", hear)
            child.stderr.on("data", hear)
            const timer = setTimeout(() => this.kill(), limitMs)
            child.on("close", code => {
                clearTimeout(timer)
                this.running = undefined
                resolve({ code, output })
            })
        })
    }

    private kill() {
        const pid = this.running?.pid
        if (pid === undefined) return
        try {
            process.kill(-pid, "SIGKILL")
        } catch {
            // It has just ended by itself.
        }
    }

    close() {
        this.kill()
        rmSync(this.folder, { recursive: true, force: true })
    }
}
