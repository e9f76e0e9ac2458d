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
    command
        .helpOption("-h, --help", "show this help")
        .showHelpAfterError(`(${command.name()} --help lists the flags)`)
        .exitOverride()
        .configureOutput({
            writeOut: text => print(text, false),
            writeErr: text => print(text, true),
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
