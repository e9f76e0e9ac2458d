// The command line of `npm run monitor`: flags in, checked options out.
import { Command } from "commander"
import { readFlags, whole } from "../flags"

export interface Options {
    list: boolean
    /** A serial port's path; undefined: the board that is found. */
    port: string | undefined
    baud: number | undefined
    /** A recording, or a console's raw text. */
    file: string | undefined
    /** Where what is heard is recorded. */
    record: string | undefined
    /** How it is shown. */
    show: "live" | "plain" | "json" | "web"
    /** For "web"; 0 is any free one. */
    webPort: number
}

const HELP = `
Without --port the one ESP32 board is taken that is plugged in; with --web all of them. Without a
board, text from a pipe is read: npm start -- --json | npm run monitor
On a terminal it shows one picture that changes (q or Ctrl-C ends it, the last picture stays); else,
or with --plain, a line for each event. A port that goes away is opened again when it is back.
Crash frames are shown as source lines when the build with the program's SHA-256 is in .devicescript.

--json prints, and --record writes, one JSON object a line: t (ms since the start), dev (port or device), clock (the
device's own ms), then the fields of the log line, or ev "text", "port", "noise", "flood".

Exit codes: 0 ended by you or by the end of the file; 1 no board, or it can't be opened; 2 a flag can't be used.

Examples:
  npm run monitor
  npm run monitor -- --port /dev/ttyUSB0 --baud 115200 --record night.jsonl
  npm run monitor -- --file night.jsonl
  npm run monitor -- --web`

/** The rates a port may be read at. */
const MAX_BAUD = 4_000_000

/** A port for a page: any free one, or from 1024 up. */
export function pagePort(text: string): number {
    if (text === "0") return 0
    return whole(1024, 65535)(text)
}

/**
 * Reads the flags.
 * @param args what follows the script's name
 * @param terminal whether stdin and stdout are one
 * @param print where help (`isError` false) and complaints go
 * @returns the options, or the exit code when there is nothing to run
 */
export function readOptions(
    args: string[],
    terminal: { stdout: boolean },
    print: (text: string, isError: boolean) => void,
): Options | number {
    const command = new Command("npm run monitor --")
        .description(
            "Shows what a board on a serial port is doing, when it will try again, and why.",
        )
        .option("--list", "list the serial ports")
        .option("--port <path>", "the board's serial port")
        .option("--baud <rate>", "bits per second", whole(300, MAX_BAUD))
        .option("--file <path>", "show a recording, or a console's text")
        .option("--record <path>", "write what is heard to a new file")
        .option("--plain", "a line for each event")
        .option("--json", "one line of JSON for each event")
        .option(
            "--web [port]",
            "serve a page with all boards on 127.0.0.1",
            pagePort,
        )
        .addHelpText("after", HELP)
    const given = readFlags(command, args, print)
    if (typeof given === "number") return given
    const complaint = contradiction(given)
    if (complaint) {
        print(`error: ${complaint}\n`, true)
        return 2
    }
    return {
        list: given.list === true,
        port: given.port,
        baud: given.baud,
        file: given.file,
        record: given.record,
        show:
            given.web !== undefined
                ? "web"
                : given.json
                  ? "json"
                  : given.plain || !terminal.stdout
                    ? "plain"
                    : "live",
        webPort: typeof given.web === "number" ? given.web : 0,
    }
}

function contradiction(given: Record<string, unknown>): string | undefined {
    const shown = ["plain", "json", "web"].filter(name => name in given)
    if (shown.length > 1) return `--${shown.join(" and --")}: one of them`
    if ("list" in given)
        for (const name of Object.keys(given))
            if (name !== "list") return `--list and --${name}: one of them`
    if ("file" in given)
        for (const name of ["port", "baud", "record"])
            if (name in given) return `--file and --${name}: one of them`
    return undefined
}
