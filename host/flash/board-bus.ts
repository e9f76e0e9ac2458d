// A board's Jacdac bus over its serial port: opened, its device found, closed again.
import {
    FRAME_SEND,
    JDBus,
    SRV_DEVICE_SCRIPT_MANAGER,
    UsbBridgeCmd,
    type JDService,
} from "jacdac-ts"
import { SerialPort } from "serialport"
import {
    bridgeCommand,
    bridgeCommandOf,
    encodeFrame,
    FrameDecoder,
} from "./jdusb"
import { Trouble } from "./trouble"

/** What every board's runtime talks at; USB of the chip itself ignores it. */
const BAUD = 1_500_000

/** A board that resets when its port is opened is back by then. */
const ANSWER_MS = 8000
const ASK_MS = 500

/** From the first announcement it hears to having every service in its list. */
const FIND_MS = 5000
const LOOK_MS = 50

/** What a write to a port says that has just been pulled out, before its end is noticed. */
const IS_GONE = /\b(EIO|ENXIO|ENODEV)\b/

export class BoardBus {
    private readonly jacdac = new JDBus([], {
        client: false,
        disableRoleManager: true,
    })
    private answered = false
    private fail: (e: Error) => void = () => {}
    /** Rejects when the port goes away or the work is aborted; never resolves. */
    readonly ended = new Promise<never>((_, reject) => (this.fail = reject))

    private constructor(
        private readonly port: SerialPort,
        signal: AbortSignal,
    ) {
        this.ended.catch(() => {})
        const decoder = new FrameDecoder(frame => {
            if (bridgeCommandOf(frame) === undefined)
                this.jacdac.processFrame(frame as never, "usb")
            else this.answered = true
        })
        port.on("data", (bytes: Buffer) => decoder.push(bytes))
        const gone = `${port.path} is gone: was it unplugged?`
        port.on("error", ({ message }) =>
            this.fail(
                new Trouble(
                    IS_GONE.test(message) ? gone : `${port.path}: ${message}`,
                ),
            ),
        )
        port.on("close", () => this.fail(new Trouble(gone)))
        this.jacdac.on(FRAME_SEND, (frame: Uint8Array) => this.write(frame))
        signal.addEventListener("abort", () => this.fail(new Error("aborted")))
    }

    /** @throws Trouble when it can't be opened, or nothing there speaks as a DeviceScript runtime does */
    static async open(path: string, signal: AbortSignal): Promise<BoardBus> {
        const port = await openPort(path)
        const bus = new BoardBus(port, signal)
        try {
            await bus.enable()
            return bus
        } catch (e) {
            await bus.close()
            throw e
        }
    }

    /** The board's program manager. */
    async manager(): Promise<JDService> {
        const services = () =>
            this.jacdac.services({ serviceClass: SRV_DEVICE_SCRIPT_MANAGER })
        await this.until(() => services().length > 0, FIND_MS)
        const found = services()[0]
        if (!found)
            throw new Trouble(
                `the board on ${this.port.path} answers and names no DeviceScript manager: flash it anew`,
            )
        return found
    }

    /** The first service of a class on the board, or undefined. */
    service(serviceClass: number): JDService | undefined {
        return this.jacdac.services({ serviceClass })[0]
    }

    /** `work`, or the failure of what it stands on, whichever is first. */
    async race<T>(work: Promise<T>): Promise<T> {
        try {
            return await Promise.race([work, this.ended])
        } catch (e) {
            if ((e as { code?: string }).code !== "timeout") throw e
            throw new Trouble(
                `the board on ${this.port.path} stopped answering (${(e as Error).message}). ` +
                    "Press RESET and try again; does the program fit its flash?",
            )
        }
    }

    /** Leaves the board as it was before: it forwards nothing. */
    async close() {
        this.port.removeAllListeners("close")
        if (this.port.isOpen) {
            this.write(bridgeCommand(UsbBridgeCmd.DisablePackets))
            await new Promise<void>(done => this.port.drain(() => done()))
            await new Promise<void>(done => this.port.close(() => done()))
        }
        await this.jacdac.stop()
    }

    private async enable() {
        for (let ms = 0; ms < ANSWER_MS && !this.answered; ms += ASK_MS) {
            this.write(bridgeCommand(UsbBridgeCmd.EnablePackets))
            await this.until(() => this.answered, ASK_MS)
        }
        if (this.answered) return
        throw new Trouble(
            `no DeviceScript runtime answers on ${this.port.path}. Has the board been flashed ` +
                "(npm run flash)? Is it in download mode (press RESET)?",
        )
    }

    private async until(what: () => boolean, limitMs: number) {
        const giveUpMs = performance.now() + limitMs
        while (!what() && performance.now() < giveUpMs)
            await this.race(new Promise(done => setTimeout(done, LOOK_MS)))
    }

    private write(frame: Uint8Array) {
        if (this.port.isOpen) this.port.write(Buffer.from(encodeFrame(frame)))
    }
}

function openPort(path: string): Promise<SerialPort> {
    return new Promise((resolve, reject) => {
        const port = new SerialPort({ path, baudRate: BAUD }, e => {
            if (!e) return resolve(port)
            const isBusy = /lock|busy|temporarily/i.test(e.message)
            reject(
                new Trouble(
                    isBusy
                        ? `${path} is in use: end the monitor, or whatever else has it open`
                        : `can't open ${path}: ${e.message}`,
                ),
            )
        })
    })
}
