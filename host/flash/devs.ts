// Runs the project's own `devs` (@devicescript/cli) and keeps what it says.
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { createRequire } from "node:module"

const CLI = createRequire(import.meta.url).resolve(
    "@devicescript/cli/built/devicescript-cli.cjs",
)

export interface Ended {
    /** Exit code; 1 when a signal ended it. */
    code: number
    /** All it printed. */
    output: string
}

export interface DevsOptions {
    /** The folder of the project it works on. */
    cwd: string
    /** Each piece of output as it comes. */
    onText?: (text: string) => void
    signal?: AbortSignal
    env?: NodeJS.ProcessEnv
}

/** What may be no part of a line on somebody's terminal: colours of a tool whose output is no terminal. */
const COLOUR = /\x1b\[[0-9;]*m/g

/** Runs `devs` with these arguments to its end. It asks no questions: there may be nobody to answer. */
export function runDevs(args: string[], options: DevsOptions): Promise<Ended> {
    const { cwd, signal, env } = options
    return new Promise((resolve, reject) => {
        const child = spawn(
            process.execPath,
            [CLI, "--ci", "--no-colors", ...args],
            // A group of its own, so that esptool ends with it.
            { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: IS_UNIX },
        )
        const stop = () => endGroup(child)
        signal?.addEventListener("abort", stop)
        let output = ""
        const take = (data: string) => {
            const text = data.replace(COLOUR, "")
            output += text
            options.onText?.(text)
        }
        child.stdout.setEncoding("utf8").on("data", take)
        child.stderr.setEncoding("utf8").on("data", take)
        child.on("error", reject)
        child.on("close", code => {
            signal?.removeEventListener("abort", stop)
            if (signal?.aborted) reject(new Error("aborted"))
            else resolve({ code: code ?? 1, output })
        })
        if (signal?.aborted) stop()
    })
}

const IS_UNIX = process.platform !== "win32"

function endGroup(child: ChildProcess) {
    if (child.pid === undefined) return
    try {
        if (IS_UNIX) process.kill(-child.pid)
        else child.kill()
    } catch {
        // It has ended by itself.
    }
}

/** As `runDevs`, while everything else here waits. */
export function runDevsSync(args: string[], cwd: string): Ended {
    const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [CLI, "--ci", "--no-colors", ...args],
        { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
    )
    return { code: status ?? 1, output: (stdout + stderr).replace(COLOUR, "") }
}
