// A serial port that comes and goes: opens it, hands its bytes on, and opens it again when the board is back.
import { existsSync } from "node:fs"
import { SerialPort } from "serialport"
import { checkAccess, listPorts, vendorOf, type Port } from "../flash/ports"
import { Trouble } from "../flash/trouble"
import type { Clock, Timer } from "../vm/clock"

/** How often a port that is gone is looked for. */
export const REOPEN_MS = 500

/** The console of the ESP32's runtime over a USB-UART chip (microsoft/devicescript-esp32, main/usb.c). */
const UART_BAUD = 1_500_000

/** With USB of its own the chip takes any rate; the log pin of other chips has this one. */
const USUAL_BAUD = 115_200

export interface SerialEvents {
    bytes: (bytes: Uint8Array) => void
    opened: (reason: string) => void
    /** Gone; it is opened again by itself. */
    closed: (reason: string) => void
}

/** The rate to read a port at, unless the user says. */
export function usualBaud(port: Port | undefined): number {
    const isUsbChip = port && vendorOf(port) && !/^303a$/i.test(port.vendorId!)
    return isUsbChip ? UART_BAUD : USUAL_BAUD
}

/** What tells a board from others, under whatever name it comes back. Many USB-UART chips all say "0001". */
export function identityOf({ serialNumber, path }: Port): string {
    return serialNumber && serialNumber.length >= 8 ? serialNumber : path
}

export class Serial {
    private port: SerialPort | undefined
    private timer: Timer | undefined
    private ended = false
    private path: string

    /**
     * @param info the port as it was listed, or just its path
     * @param list what ports there are
     */
    constructor(
        private readonly info: Port,
        readonly baud: number,
        private readonly clock: Clock,
        private readonly events: SerialEvents,
        private readonly list = () => listPorts(),
    ) {
        this.path = info.path
    }

    /** Opens it. @throws Trouble when it can't be opened now */
    async open() {
        if (process.platform !== "win32") checkAccess(this.path)
        const port = new SerialPort({
            path: this.path,
            baudRate: this.baud,
            autoOpen: false,
            // Dropping the lines at the end would reset some boards.
            hupcl: false,
        })
        try {
            await new Promise<void>((done, failed) =>
                port.open(e => (e ? failed(e) : done())),
            )
        } catch (e) {
            throw new Trouble(inWords(this.path, e as Error))
        }
        if (this.ended) return port.close()
        this.port = port
        port.on("data", (bytes: Buffer) => this.events.bytes(bytes))
        // An error of a port in use is followed by its end.
        port.on("error", e => this.lost(e.message))
        port.on("close", (e: Error | null) =>
            this.lost(e ? "unplugged, or another program closed it" : "closed"),
        )
        this.events.opened(`${this.path} at ${this.baud} baud`)
        this.look()
    }

    /** Not every driver says that a board was pulled out; that its name is gone says it, too. */
    private look() {
        if (process.platform === "win32") return
        this.timer = this.clock.setTimeout(() => {
            if (existsSync(this.path)) this.look()
            else this.lost("unplugged")
        }, REOPEN_MS)
    }

    private lost(reason: string) {
        if (!this.port || this.ended) return
        this.port.removeAllListeners().on("error", () => {})
        if (this.port.isOpen) this.port.close()
        this.port = undefined
        this.clock.clearTimeout(this.timer)
        this.events.closed(reason)
        this.later()
    }

    private later() {
        this.timer = this.clock.setTimeout(() => {
            void this.again().catch(() => {
                if (!this.ended) this.later()
            })
        }, REOPEN_MS)
    }

    private async again() {
        // The same board may come back under another name.
        if (!existsSync(this.path)) this.path = await this.newPath()
        await this.open()
    }

    private async newPath(): Promise<string> {
        const { path } = this.info
        const identity = identityOf(this.info)
        if (identity === path) return path
        const ports = await this.list()
        return ports.find(port => identityOf(port) === identity)?.path ?? path
    }

    /** Holds back what comes while nobody can take it. */
    pause() {
        this.port?.pause()
    }

    resume() {
        this.port?.resume()
    }

    /** Closes it for good. */
    async close() {
        this.ended = true
        this.clock.clearTimeout(this.timer)
        const { port } = this
        this.port = undefined
        if (port?.isOpen) await new Promise(done => port.close(done))
    }
}

function inWords(path: string, { message }: Error): string {
    if (/lock|busy|access denied/i.test(message))
        return `${path} is in use by another program: close it first (a serial monitor, devs devtools, VS Code)`
    return `can't open ${path}: ${message.replace(/^Error: /, "")}`
}
