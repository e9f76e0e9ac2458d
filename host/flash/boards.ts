// Which boards there are: those of the installed `devs` and the project's own in boards/.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { PROJECT } from "../vm/program"
import { runDevs } from "./devs"
import { Trouble } from "./trouble"

export interface Board {
    id: string
    /** The maker's name for it. */
    name: string
    /** Its chip as `devs` names it: esp32, esp32s2, esp32c3, esp32s3. */
    chip: string
}

/** Reads the list that `devs flash` prints when the board is missing. */
export function parseBoards(listing: string): Board[] {
    const boards: Board[] = []
    let chip = ""
    for (const line of listing.split("\n")) {
        const heading = /^ {2}(ESP32[\w-]*):$/.exec(line)
        if (heading) chip = heading[1].replaceAll("-", "").toLowerCase()
        const board = /^ {4}--board (\w+) +(.+)$/.exec(line)
        if (board && chip) boards.push({ id: board[1], name: board[2], chip })
    }
    return boards
}

/** One line for each board, under its chip. */
export function listed(boards: Board[]): string {
    const width = Math.max(...boards.map(b => b.id.length))
    const lines: string[] = []
    for (const chip of [...new Set(boards.map(b => b.chip))].sort()) {
        lines.push(`  ${chip}`)
        for (const { id, name } of boards.filter(b => b.chip === chip))
            lines.push(`    ${id.padEnd(width)} ${name}`)
    }
    return lines.join("\n")
}

/**
 * The board of this id.
 * @param cwd the project's folder
 * @throws Trouble with the list when there is none, or a board file in boards/ is wrong
 */
export async function findBoard(
    id: string | undefined,
    cwd: string,
): Promise<{ board: Board; all: Board[] }> {
    const { output } = await runDevs(["flash", "esp32"], { cwd })
    const bad = /^.*boards\/.*\.board\.json\(\d+\): .*$/m.exec(output)
    if (bad) throw new Trouble(bad[0])
    const all = parseBoards(output)
    if (!all.length) throw new Trouble(`devs lists no boards:\n${output}`)
    const board = all.find(b => b.id === id)
    if (board) return { board, all }
    if (id !== undefined && existsSync(ourFile(id)))
        throw new Trouble(
            `no board ${id} in ${cwd}. Herdless has its file; run there:\n` +
                `  mkdir -p boards && cp ${ourFile(id)} boards/`,
            2,
        )
    const what =
        id === undefined ? "Which board? Say --board ID" : `no board ${id}`
    throw new Trouble(`${what}. Allowed:\n${listed(all)}`, 2)
}

/** Where a board that this project has is described. */
const ourFile = (id: string) => join(PROJECT, "boards", `${id}.board.json`)
