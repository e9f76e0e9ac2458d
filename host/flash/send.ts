// Sends program and settings to a running board over its Jacdac bus, and reads back that they are there:
// a write that a reset follows at once may be lost.
import {
    DeviceScriptManagerCmd,
    DeviceScriptManagerReg,
    OutPipe,
    SettingsClient,
    SRV_SETTINGS,
    SRV_WIFI,
    WifiCmd,
} from "jacdac-ts"
import { createHash } from "node:crypto"
import type { BoardBus } from "./board-bus"
import type { DeviceSettings } from "./settings"
import type { Settings } from "../vm/env"
import { Trouble } from "./trouble"

/** The setting by which a person ends a hold of the restart limit; the firmware deletes it. */
export const CLEAR_HOLD = "CLEAR_HOLD"

export interface Parcel extends DeviceSettings {
    bytecode: Uint8Array
}

/**
 * Stops the board's program, writes the parcel, starts the new one.
 * @param progress how far the program is, 0 to 1
 * @returns whether the program was another one than before
 * @throws Trouble when something did not arrive
 */
export async function sendParcel(
    bus: BoardBus,
    parcel: Parcel,
    progress: (part: number) => void,
): Promise<boolean> {
    const manager = await bus.manager()
    const running = manager.register(DeviceScriptManagerReg.Running)
    const autostart = manager.register(DeviceScriptManagerReg.Autostart)
    await bus.race(autostart.sendSetBoolAsync(false))
    await bus.race(running.sendSetBoolAsync(false))
    await sendSettings(bus, parcel)
    const isNew = await sendProgram(bus, parcel.bytecode, progress)
    await bus.race(autostart.sendSetBoolAsync(true))
    await bus.race(running.sendSetBoolAsync(true))
    return isNew
}

async function sendSettings(bus: BoardBus, { settings, wifi }: Parcel) {
    const service = bus.service(SRV_SETTINGS)
    if (!service) throw new Trouble("the board has no settings service")
    const client = new SettingsClient(service)
    const all: Settings = { ...settings, [CLEAR_HOLD]: "1" }
    for (const key of Object.keys(all)) {
        const value = Buffer.from(all[key], "utf8")
        await bus.race(client.setValue(key, new Uint8Array(value)))
        const stored = await bus.race(client.getValue(key))
        if (!stored || !value.equals(stored))
            throw new Trouble(`the board did not keep setting ${key}`)
    }
    if (!wifi) return
    const access = bus.service(SRV_WIFI)
    if (!access) throw new Trouble("the board has no Wi-Fi service")
    await bus.race(
        access.sendCmdPackedAsync(
            WifiCmd.AddNetwork,
            [wifi.ssid, wifi.password],
            true,
        ),
    )
}

async function sendProgram(
    bus: BoardBus,
    bytecode: Uint8Array,
    progress: (part: number) => void,
): Promise<boolean> {
    const manager = await bus.manager()
    const wanted = createHash("sha256").update(bytecode).digest()
    const sha = manager.register(DeviceScriptManagerReg.ProgramSha256)
    const isThere = async () => {
        await bus.race(sha.refresh())
        return !!sha.data && wanted.equals(sha.data)
    }
    if (await isThere()) return false
    await bus.race(
        OutPipe.sendBytes(
            manager,
            DeviceScriptManagerCmd.DeployBytecode,
            bytecode,
            progress,
        ),
    )
    if (!(await isThere()))
        throw new Trouble(
            "the board has another program than was sent: try again",
        )
    return true
}
