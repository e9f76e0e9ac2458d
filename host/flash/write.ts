// Writes an image to a board in download mode: `devs flash` does it with esptool; what goes wrong is said in plain words.
import type { Board } from "./boards"
import { runDevs, type DevsOptions } from "./devs"
import { whyFailed } from "./esptool"
import { Trouble } from "./trouble"

export interface Target {
    board: Board
    /** Every board there is, for the message about a wrong chip. */
    all: Board[]
    port: string
    /** The command that runs esptool. */
    esptool: string
    /** Bits a second; undefined: what devs takes. */
    baud: number | undefined
}

/**
 * Writes the image in `file` to where its name says.
 * @throws Trouble with the reason when it isn't all there
 */
export async function writeImage(
    { board, all, port, esptool, baud }: Target,
    file: string,
    options: DevsOptions,
) {
    // The port is chosen already, whoever made its chip.
    const args = ["flash", "esp32", "--all-serial", "--port", port]
    args.push("--board", board.id, "--esptool", esptool, "--file", file)
    if (baud !== undefined) args.push("--baud", `${baud}`)
    const { code, output } = await runDevs(args, options)
    if (code !== 0) throw new Trouble(whyFailed(output, board, all, port))
}
