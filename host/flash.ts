// `npm run flash`: from a blank board to one that runs the program, in one write.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { findBoard } from "./flash/boards"
import { buildProgram } from "./flash/build"
import { bundleImage, saveImage } from "./flash/bundle"
import { runCommand } from "./flash/command"
import { findEsptool } from "./flash/esptool"
import { checkAccess, choosePort, listPorts } from "./flash/ports"
import { runtimeImage } from "./flash/runtime"
import { deviceSettings, namesOf, pickDevice } from "./flash/settings"
import { writeImage } from "./flash/write"

void runCommand("flash", async work => {
    const { options, signal } = work
    const { project: cwd, baud, fleet, device } = options
    const { board, all } = await findBoard(options.board, cwd)
    // What a person has to see to comes first, before anything that takes long.
    const esptool = findEsptool(options.esptool)
    const port = choosePort(await listPorts(), options.port)
    checkAccess(port.path)
    const settings = deviceSettings(
        cwd,
        fleet === undefined ? undefined : pickDevice(fleet, device),
    )
    const runtime = await runtimeImage(board, {
        cwd,
        signal,
        file: options.file,
        say: work.say,
    })
    work.say(`settings: ${namesOf(settings)}`)
    const bytecode = buildProgram(cwd, options.program)
    const image = await bundleImage(runtime, bytecode, settings)
    // It holds secrets: it lies in a folder that only this user can enter, and goes at the end.
    const folder = mkdtempSync(join(tmpdir(), "herdless-"))
    try {
        const file = saveImage(folder, board.id, image, runtime.flashOffset)
        const target = { board, all, port: port.path, esptool, baud }
        await writeImage(target, file, { cwd, signal, onText: work.text })
    } finally {
        rmSync(folder, { recursive: true, force: true })
    }
    work.result(
        `${board.name} on ${port.path} has runtime, program and settings.\n` +
            `If it does not start by itself, press RESET. Watch it: npm run monitor`,
        { ok: true, board: board.id, port: port.path, bytes: image.length },
    )
})
