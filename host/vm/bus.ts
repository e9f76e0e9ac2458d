// The device's Jacdac bus: jacdac-ts on the host's clock, for settings and for Wi-Fi.
import {
    ButtonEvent,
    ButtonServer,
    ControlCmd,
    FRAME_SEND,
    JDBus,
    jdpack,
    PACKET_PROCESS,
    JDServerServiceProvider,
    type JDServiceServer,
    SettingsClient,
    SRV_SETTINGS,
    WifiCmd,
    WifiEvent,
    WifiServer,
    type Packet,
    type Scheduler,
} from "jacdac-ts"
import type { Clock, Timer } from "./clock"
import type { DeviceVm } from "./device"

/** jacdac-ts's idea of time, on a Clock. */
class ClockScheduler implements Scheduler {
    constructor(private readonly clock: Clock) {}

    get timestamp() {
        return this.clock.nowMs()
    }
    resetTime() {}
    setTimeout(
        run: (...args: unknown[]) => void,
        delayMs: number,
        ...args: unknown[]
    ) {
        return this.clock.setTimeout(() => run(...args), delayMs)
    }
    clearTimeout(timer: Timer) {
        this.clock.clearTimeout(timer)
    }
    setInterval(
        run: (...args: unknown[]) => void,
        everyMs: number,
        ...args: unknown[]
    ) {
        const interval: { timer: Timer | undefined } = { timer: undefined }
        const again = () => {
            interval.timer = this.clock.setTimeout(again, everyMs)
            run(...args)
        }
        interval.timer = this.clock.setTimeout(again, everyMs)
        return interval
    }
    clearInterval(interval: { timer: Timer | undefined } | undefined) {
        if (interval) this.clock.clearTimeout(interval.timer)
    }
}

/** A frame needs about this long on the wire. */
const FRAME_MS = 1

/** One device's bus. Pass `toBus` to DeviceOptions.onFrame, then `connect` the device. */
export class Bus {
    readonly jacdac: JDBus
    private device: DeviceVm | undefined

    /** @param refreshes false: nothing on the bus asks for registers or streams readings by itself, which is much faster */
    constructor(
        private readonly clock: Clock,
        refreshes = true,
    ) {
        this.jacdac = new JDBus([], {
            deviceId: "4a0d000000000001",
            scheduler: new ClockScheduler(clock),
            client: false,
            disableRoleManager: true,
        })
        this.jacdac.backgroundRefreshRegisters = refreshes
        this.jacdac.on(FRAME_SEND, (frame: Uint8Array) =>
            // Never from within the VM's own call: it would lose the frame.
            clock.setTimeout(() => this.device?.receiveFrame(frame), FRAME_MS),
        )
    }

    readonly toBus = (frame: Uint8Array) => {
        this.clock.setTimeout(
            () => this.jacdac.processFrame(frame as never, "vm"),
            FRAME_MS,
        )
    }

    /** Calls `seen` with the colour, 0xrrggbb, that the program sets the board's status light to. */
    watchLight(seen: (rgb: number) => void) {
        this.jacdac.on(PACKET_PROCESS, (packet: Packet) => {
            const { isCommand, serviceIndex, serviceCommand, data } = packet
            if (!isCommand || serviceIndex !== 0) return
            if (serviceCommand !== (ControlCmd.SetStatusLight as number)) return
            seen((data[0] << 16) | (data[1] << 8) | data[2])
        })
    }

    connect(device: DeviceVm) {
        this.device = device
    }

    /** Puts a service, such as a sensor, on the bus as a device of its own. */
    add(server: JDServiceServer, deviceId: string) {
        this.jacdac.addServiceProvider(
            new ClockedProvider("bus", [server], { deviceId }),
        )
    }

    /** Stops the bus's timers. */
    async close() {
        this.device = undefined
        await this.jacdac.stop()
    }

    /** A client of the device's settings, once the device has announced itself. */
    settings(): SettingsClient | undefined {
        const service = this.jacdac.services({ serviceClass: SRV_SETTINGS })[0]
        return service && new SettingsClient(service)
    }
}

/** A device on the bus whose repeated events wait on the bus's clock; jacdac-ts takes Node's. */
class ClockedProvider extends JDServerServiceProvider {
    override delayedSend(packet: Packet, atMs: number) {
        const { scheduler } = this.bus
        const delayMs = atMs - scheduler.timestamp
        scheduler.setTimeout(() => void this.sendPacketAsync(packet), delayMs)
    }
}

/** jacdac-ts's server answers a reconnect by playing a whole access point; here others decide. */
class BareWifiServer extends WifiServer {
    onReconnect = () => {}

    constructor() {
        super()
        this.addCommand(WifiCmd.Reconnect, () => this.onReconnect())
        this.ipAddress.data = new Uint8Array(0)
    }

    /** What the address register reads: 4 bytes or none, as on an ESP32, not padded to 16. */
    setAddress(bytes: Uint8Array) {
        const had = this.ipAddress.data.length > 0
        this.ipAddress.data = bytes // raises no event by itself
        if (bytes.length) void this.sendEvent(WifiEvent.GotIp)
        else if (had) void this.sendEvent(WifiEvent.LostIp)
    }
}

/** The Wi-Fi service that an ESP32's runtime has on board, played on the bus. */
export class WifiAccess {
    private readonly server = new BareWifiServer()
    /** Times the program asked for a new association. */
    reconnects = 0
    /** Called each time it does. */
    onReconnect = () => {}

    constructor(bus: Bus, deviceId = "5f1f000000000001") {
        this.server.onReconnect = () => {
            this.reconnects++
            this.onReconnect()
        }
        bus.add(this.server, deviceId)
    }

    /** Associates and gets an address: four bytes (0.0.0.0 is possible and useless), or none yet. */
    gotIp(ip: number[] = [10, 0, 0, 2]) {
        this.server.ssid.setValues(["lab"])
        this.server.setAddress(new Uint8Array(ip))
    }

    /** Loses address and association. */
    lostIp() {
        this.server.ssid.setValues([""])
        this.server.setAddress(new Uint8Array(0))
    }
}

/** Hold events of a button that is kept down come this far apart. */
const HOLD_MS = 500

/** A board's button, played on the bus. */
export class ButtonAccess {
    private readonly server = new ButtonServer()

    constructor(
        bus: Bus,
        private readonly clock: Clock,
        deviceId = "5f1f000000000002",
    ) {
        bus.add(this.server, deviceId)
    }

    /** Holds it down for so long. */
    press(forMs: number) {
        void this.server.sendEvent(ButtonEvent.Down)
        for (let ms = HOLD_MS; ms <= forMs; ms += HOLD_MS)
            this.clock.setTimeout(() => {
                const time = jdpack("u32", [ms])
                void this.server.sendEvent(ButtonEvent.Hold, time)
            }, ms)
        this.clock.setTimeout(
            () =>
                void this.server.sendEvent(
                    ButtonEvent.Up,
                    jdpack("u32", [forMs]),
                ),
            forMs,
        )
    }
}
