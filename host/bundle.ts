// `npm run bundle`: images for a production line, one for a board or one for each device of a fleet.
import { span } from "./show"
import { findBoard } from "./flash/boards"
import { buildProgram } from "./flash/build"
import { bundleImage, saveImage } from "./flash/bundle"
import { runCommand, type Work } from "./flash/command"
import { runtimeImage } from "./flash/runtime"
import {
    deviceSettings,
    gitWarning,
    namesOf,
    pickDevice,
    readFleet,
    type FleetDevice,
} from "./flash/settings"

void runCommand("bundle", async work => {
    const { options, signal } = work
    const { project, file } = options
    const { board } = await findBoard(options.board, project)
    const devices = devicesOf(work)
    const runtime = await runtimeImage(board, {
        cwd: project,
        file,
        signal,
        say: work.say,
    })
    const bytecode = buildProgram(project, options.program)
    const startMs = performance.now()
    const images: string[] = []
    for (const device of devices) {
        if (signal.aborted) break
        const settings = deviceSettings(project, device)
        const image = await bundleImage(runtime, bytecode, settings)
        const name = device ? `${board.id}-${device.id}` : board.id
        images.push(saveImage(options.out, name, image, runtime.flashOffset))
        if (devices.length === 1) work.say(`settings: ${namesOf(settings)}`)
        const leftMs =
            ((performance.now() - startMs) / images.length) *
            (devices.length - images.length)
        work.progress(
            `${images.length} of ${devices.length} images, ${span(leftMs)} left`,
        )
    }
    const address = `0x${runtime.flashOffset.toString(16)}`
    const made = images.length === 1 ? images[0] : `in ${options.out}`
    work.result(
        `${images.length} of ${devices.length} image${devices.length === 1 ? "" : "s"}: ${made}\n` +
            `write one with: esptool --chip ${board.chip} write_flash ${address} IMAGE`,
        {
            ok: !signal.aborted,
            board: board.id,
            chip: board.chip,
            address,
            images,
        },
    )
})

/** The devices to make images of: those of the CSV, or one without settings of its own. */
function devicesOf({ options, say }: Work): (FleetDevice | undefined)[] {
    const { fleet, device } = options
    if (fleet === undefined) return [undefined]
    const warning = gitWarning(fleet)
    if (warning) say(warning)
    return device === undefined ? readFleet(fleet) : [pickDevice(fleet, device)]
}
