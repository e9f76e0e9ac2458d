// Finds Espressif's esptool, which `devs flash` writes with, and reads its complaints.
import { spawnSync } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { listed, type Board } from "./boards"
import { Trouble } from "./trouble"

/** `esptool` is Debian's and version 5's name, `esptool.py` that of the versions before. */
const NAMES = ["esptool.py", "esptool"]
const PYTHONS = ["python3", "python", "py"]

/**
 * The command that runs esptool, as `devs flash --esptool` takes it.
 * @param asked what the user gave; taken as it is
 * @throws Trouble that says how to install it
 */
export function findEsptool(
    asked: string | undefined,
    path = process.env.PATH ?? "",
): string {
    if (asked !== undefined) return asked
    for (const name of NAMES)
        for (const folder of path.split(delimiter))
            if (folder && isRunnable(join(folder, name)))
                return join(folder, name)
    for (const python of PYTHONS) {
        const run = spawnSync(python, ["-m", "esptool", "version"], {
            encoding: "utf8",
            env: { ...process.env, PATH: path },
        })
        if (run.status === 0) return `${python} -m esptool`
    }
    throw new Trouble(
        "esptool is missing; install version 4.5 or later:\n" +
            "  pip install esptool        (any system)\n" +
            "  apt install esptool        (Debian 13, Ubuntu 24.04 and later)\n" +
            "  brew install esptool       (macOS)\n" +
            "or say where it is: --esptool PATH",
    )
}

function isRunnable(file: string): boolean {
    try {
        accessSync(file, constants.X_OK)
        return true
    } catch {
        return false
    }
}

/** The chip esptool found on the port, as `devs` names it. Versions 4 and 5 say it differently. */
export function chipFound(output: string): string | undefined {
    const found =
        /Chip (?:is|type:) +(ESP32(?:-(?:S2|S3|C2|C3|C6|H2|P4))?)/.exec(
            output,
        )?.[1]
    return found?.replace("-", "").toLowerCase()
}

/** In plain words why writing failed, from what esptool and devs said. */
export function whyFailed(
    output: string,
    board: Board,
    all: Board[],
    port: string,
): string {
    const chip = chipFound(output)
    if (chip && chip !== board.chip)
        return (
            `wrong chip: the board on ${port} is an ${chip}, ${board.id} has an ${board.chip}. ` +
            `Nothing was written. Boards with that chip:\n${listed(all.filter(b => b.chip === chip))}`
        )
    if (/please update your esptool/.test(output))
        return "esptool is too old: install version 4.5 or later (pip install --upgrade esptool)"
    if (/Permission denied|EACCES/.test(output))
        return `no permission on ${port}`
    if (
        /busy|Resource temporarily unavailable|Could not exclusively lock/i.test(
            output,
        )
    )
        return `${port} is in use: end the monitor, or whatever else has it open`
    if (
        /Failed to connect|No serial data received|Can't start flashing/.test(
            output,
        )
    )
        return (
            `the chip on ${port} does not answer: hold BOOT (IO0), press RESET (EN), let go of BOOT, ` +
            "and try again; or the cable carries no data"
        )
    return `devs flash failed on ${port}; its last lines are above`
}
