// `npm run deploy`: program and settings to a board that has the runtime already.
import { BoardBus } from "./flash/board-bus"
import { buildProgram } from "./flash/build"
import { runCommand } from "./flash/command"
import { checkAccess, choosePort, listPorts } from "./flash/ports"
import { sendParcel } from "./flash/send"
import { deviceSettings, namesOf, pickDevice } from "./flash/settings"

void runCommand("deploy", async work => {
    const { project, program, fleet, device, port: asked } = work.options
    const port = choosePort(await listPorts(), asked)
    checkAccess(port.path)
    const settings = deviceSettings(
        project,
        fleet === undefined ? undefined : pickDevice(fleet, device),
    )
    const bytecode = buildProgram(project, program)
    work.say(`${port.path}: settings ${namesOf(settings)}`)
    const bus = await BoardBus.open(port.path, work.signal)
    let isNew: boolean
    try {
        isNew = await sendParcel(bus, { ...settings, bytecode }, part =>
            work.progress(`program: ${Math.round(part * 100)} %`),
        )
    } finally {
        await bus.close()
    }
    const what = isNew
        ? `program (${bytecode.length} bytes) and settings`
        : "settings; it had this program already"
    work.result(`${port.path}: sent ${what}. Watch it: npm run monitor`, {
        ok: true,
        port: port.path,
        programBytes: bytecode.length,
        isNew,
    })
})
