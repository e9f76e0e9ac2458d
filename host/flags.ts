// The command line of a tool that takes its arguments and its output as parameters, for tests.
import {
    InvalidArgumentError,
    type Command,
    type OptionValues,
} from "commander"

/**
 * Reads the flags a command has been told of.
 * @param args what follows the script's name
 * @param print where help (`isError` false) and complaints go
 * @returns the flags given, or the exit code when there is nothing to run: 0 after help, 2 for a bad flag
 */
export function readFlags(
    command: Command,
    args: string[],
    print: (text: string, isError: boolean) => void,
): OptionValues | number {
    endWithReader()
    const width = process.stdout.columns ?? Infinity
    command
        .helpOption("-h, --help", "show this help")
        .showHelpAfterError(`(${command.name()} --help lists the flags)`)
        .exitOverride()
        .configureOutput({
            writeOut: text => print(fold(text, width), false),
            writeErr: text => print(fold(text, width), true),
        })
    try {
        command.parse(args, { from: "user" })
    } catch (e) {
        const { exitCode } = e as { exitCode?: number }
        if (exitCode === undefined) throw e
        return exitCode === 0 ? 0 : 2
    }
    return command.opts()
}

/** Breaks what is wider than a terminal between words; what is behind a line's end is indented as its beginning. */
export function fold(text: string, width: number): string {
    return text
        .split("\n")
        .map(line => {
            const [indent] = /^ */.exec(line)!
            let rest = line
            let folded = ""
            while (rest.length > width) {
                const at = rest.lastIndexOf(" ", width)
                if (at <= indent.length) break
                folded += rest.slice(0, at) + "\n"
                rest = indent + rest.slice(at + 1)
            }
            return folded + rest
        })
        .join("\n")
}

let endsWithReader = false
let isGone = false

/** Whoever reads a tool's output may stop, as `| head -1` does: then it ends as by Ctrl-C, without a stack trace. */
function endWithReader() {
    if (endsWithReader) return
    endsWithReader = true
    for (const stream of [process.stdout, process.stderr])
        stream.on("error", (e: NodeJS.ErrnoException) => {
            if (e.code !== "EPIPE") throw e
            if (isGone) return
            isGone = true
            if (!process.listenerCount("SIGINT")) process.exit(0)
            process.kill(process.pid, "SIGINT")
        })
}

/** Where a tool's help and complaints go when it is no test that asks. */
export function toConsole(text: string, isError: boolean) {
    const { stdout, stderr } = process
    ;(isError ? stderr : stdout).write(text)
}

/** A flag's value: a whole number in a range. */
export const whole = (low: number, high: number) => (text: string) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < low || value > high)
        throw new InvalidArgumentError(
            `Allowed: whole numbers from ${low} to ${high}.`,
        )
    return value
}
