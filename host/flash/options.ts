// The command lines of `npm run flash`, `bundle` and `deploy`: flags in, checked options out.
// A flag that can't be used is named together with its value and what is allowed; exit code 2.
import { Command, InvalidArgumentError } from "commander"
import { resolve } from "node:path"
import { readFlags } from "../flags"
import { PROJECT } from "../vm/program"

export type CommandName = "flash" | "bundle" | "deploy"

export interface Options {
    /** Undefined: the list of boards is wanted. */
    board: string | undefined
    /** Undefined: the one port with a board on it. */
    port: string | undefined
    /** A runtime image somebody has already. */
    file: string | undefined
    esptool: string | undefined
    /** Bits a second on the port while writing; undefined: what devs takes, 1,500,000. */
    baud: number | undefined
    /** CSV with settings for each device. */
    fleet: string | undefined
    /** Which of the CSV's rows; undefined: all, or none where there is no CSV. */
    device: string | undefined
    /** Where images go. */
    out: string
    program: string
    project: string
    json: boolean
}

const COMMON = `
Settings come from .env.defaults and .env.local, Wi-Fi from WIFI_SSID and WIFI_PWD there.
Their values are not printed. Flash can be read over USB, secrets with it.

Exit codes: 0 done; 1 it could not be done; 2 a flag can't be used; 130 Ctrl-C (143 SIGTERM).

Examples:`

const ABOUT: Record<CommandName, { does: string; after: string }> = {
    flash: {
        does: "Writes runtime, program and settings to a board on USB, all in one go.",
        after: `
It erases what was in the board's flash: the program, all settings, Wi-Fi and the restart record.
${COMMON}
  npm run flash -- --board esp32c3_supermini
  npm run flash -- --board esp32_bare --port /dev/ttyUSB0 --baud 460800
  npm run flash -- --board seeed_xiao_esp32c3 --file devicescript-esp32c3-seeed_xiao_esp32c3-0x0.bin`,
    },
    bundle: {
        does: "Makes images of runtime, program and settings, for a production line.",
        after: `
It touches no board. An image replaces all of a board's flash when it is written, and it holds the
secrets of its settings. With --fleet it makes one image for each row of a CSV: a column id, every
other column a setting's key (WIFI_SSID and WIFI_PWD too), an empty cell left to the .env files.
${COMMON}
  npm run bundle -- --board esp32s3_bare
  npm run bundle -- --board esp32s3_bare --fleet devices.csv --out line-1`,
    },
    deploy: {
        does: "Sends program and settings to a board that has the runtime, and ends a hold.",
        after: `
It replaces the program and each setting it sends. Other settings stay, Wi-Fi too where none is given.
${COMMON}
  npm run deploy
  npm run deploy -- --port /dev/ttyACM0 --program devs/minimal.ts`,
    },
}

function baud(text: string): number {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < 9600 || value > 4_000_000)
        throw new InvalidArgumentError("Allowed: 9600 to 4000000.")
    return value
}

function boardId(text: string): string {
    if (!/^\w{1,60}$/.test(text))
        throw new InvalidArgumentError("Allowed: letters, digits and _.")
    return text
}

/**
 * Reads the flags.
 * @param args what follows the script's name
 * @param print where help (`isError` false) and complaints go
 * @returns the options, or the exit code when there is nothing to run
 */
export function readOptions(
    name: CommandName,
    args: string[],
    print: (text: string, isError: boolean) => void,
): Options | number {
    const command = commandOf(name)
    const given = readFlags(command, args, print)
    if (typeof given === "number") return given
    const project = resolve(given.project ?? PROJECT)
    if (given.device !== undefined && given.fleet === undefined) {
        print("error: --device needs --fleet, the CSV it is in\n", true)
        return 2
    }
    return {
        board: given.board,
        port: given.port,
        file: given.file,
        esptool: given.esptool,
        baud: given.baud,
        fleet: given.fleet,
        device: given.device,
        out: resolve(given.out ?? `${project}/.devicescript/bundle`),
        program: given.program ?? "src/main.ts",
        project,
        json: given.json === true,
    }
}

function commandOf(name: CommandName): Command {
    const { does, after } = ABOUT[name]
    const command = new Command(`npm run ${name} --`).description(does)
    if (name !== "deploy")
        command
            .option(
                "--board <id>",
                "which board; without it, lists them",
                boardId,
            )
            .option(
                "--file <image>",
                "a runtime image from disk instead of a download",
            )
    if (name !== "bundle")
        command.option(
            "--port <path>",
            "its serial port (default: the one with a board on it)",
        )
    if (name === "flash")
        command
            .option("--baud <rate>", "speed while writing", baud)
            .option("--esptool <path>", "where esptool is")
    command
        .option("--fleet <csv>", "settings of each device, by a column id")
        .option("--device <id>", "the one row of the CSV to take")
    if (name === "bundle")
        command.option(
            "--out <folder>",
            "where the images go (default: .devicescript/bundle)",
        )
    return command
        .option("--program <file>", "the program (default: src/main.ts)")
        .option(
            "--project <folder>",
            "the DeviceScript project (default: this one)",
        )
        .option("--json", "print the result as one line of JSON")
        .addHelpText("after", after)
}
