// The frame of a command of this room: flags, Ctrl-C, what it prints, and its exit code.
import { readOptions, type CommandName, type Options } from "./options"
import { Trouble } from "./trouble"

/** What a command is given to do its work with. */
export interface Work {
    options: Options
    /** Aborted by Ctrl-C; what was started must end then. */
    signal: AbortSignal
    /** Progress, for people: raw text, or a line. */
    text(raw: string): void
    say(line: string): void
    /** Where a long run stands; on a terminal it overwrites itself. */
    progress(line: string): void
    /** The last word: `words` for people, `facts` for --json. */
    result(words: string, facts: object): void
}

const { stdout, stderr } = process

/** Runs a command to its end and exits. */
export async function runCommand(
    name: CommandName,
    work: (work: Work) => Promise<void>,
) {
    const options = readOptions(
        name,
        process.argv.slice(2),
        (text, isError) => void (isError ? stderr : stdout).write(text),
    )
    if (typeof options === "number") process.exit(options)
    const stop = new AbortController()
    let code = 0
    for (const [signal, exitCode] of [
        ["SIGINT", 130],
        ["SIGTERM", 143],
    ] as const)
        process.once(signal, () => {
            code = exitCode
            stop.abort()
        })
    try {
        await work({ options, signal: stop.signal, ...printer(options.json) })
    } catch (e) {
        if (!code) code = complain(name, e)
        else stderr.write("\ninterrupted\n")
    }
    process.exit(code)
}

function complain(name: CommandName, e: unknown): number {
    if (!(e instanceof Trouble)) {
        stderr.write(`npm run ${name}: ${(e as Error)?.stack ?? e}\n`)
        return 1
    }
    stderr.write(`npm run ${name}: ${e.message}\n`)
    return e.exitCode
}

function printer(json: boolean) {
    const out = json ? stderr : stdout
    let unfinished = false
    const clear = () => {
        if (unfinished) stderr.write("\r\x1b[K")
        unfinished = false
    }
    return {
        text: (raw: string) => void (clear(), out.write(raw)),
        say: (line: string) => void (clear(), out.write(line + "\n")),
        progress(line: string) {
            if (!stderr.isTTY) return
            stderr.write(`\r\x1b[K${line}`)
            unfinished = true
        },
        result(words: string, facts: object) {
            clear()
            stdout.write((json ? JSON.stringify(facts) : words) + "\n")
        },
    }
}
