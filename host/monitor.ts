// `npm run monitor`: what a board on a serial port, a recording or a pipe tells, as a live picture, as
// lines, as JSON, or as a page for many boards. It cleans up whatever ends it.
import { createReadStream, createWriteStream } from "node:fs"
import { basename } from "node:path"
import type { Readable, Writable } from "node:stream"
import pc from "picocolors"
import { toConsole } from "./flags"
import {
    choosePort,
    inWords,
    listPorts,
    vendorOf,
    type Port,
} from "./flash/ports"
import { Trouble } from "./flash/trouble"
import { Builds } from "./monitor/builds"
import { Desk } from "./monitor/desk"
import { toJson, type MonitorEvent } from "./monitor/event"
import { Listener } from "./monitor/listener"
import { readOptions, type Options } from "./monitor/options"
import { picture, plainRow } from "./monitor/picture"
import { RecordingReader } from "./monitor/recording"
import { identityOf, Serial, usualBaud } from "./monitor/serial"
import { Terminal } from "./monitor/terminal"
import { newView } from "./monitor/view"
import { WebPage } from "./monitor/web"
import { RealClock } from "./vm/clock"
import { PROJECT } from "./vm/program"

const { stdin, stdout, stderr } = process

/** How often a page looks for boards that were plugged in. */
const LOOK_MS = 2000

/** How often counters of noise and floods are looked at. */
const TICK_MS = 250

class Monitor {
    private readonly clock = new RealClock()
    private readonly desk = new Desk()
    private readonly builds = new Builds(PROJECT)
    private readonly colours = pc.createColors(
        !!stdout.isTTY && !process.env.NO_COLOR,
    )
    private readonly serials = new Map<string, Serial>()
    private terminal: Terminal | undefined
    private page: WebPage | undefined
    private record: Writable | undefined
    private ending = false
    /** The time the picture is drawn for; a file's own time when one is shown. */
    private nowMs = () => this.elapsedMs()

    constructor(private readonly options: Options) {}

    private elapsedMs() {
        return Math.round(this.clock.nowMs())
    }

    async run() {
        const { options } = this
        if (options.list) return await this.list()
        this.record = options.record ? await newFile(options.record) : undefined
        for (const stream of [stdout, this.record])
            stream?.on("drain", () => this.serials.forEach(s => s.resume()))
        if (options.file !== undefined) return await this.showFile(options.file)
        if (
            options.port === undefined &&
            !stdin.isTTY &&
            options.show !== "web"
        )
            return await this.showPipe()
        await this.showPorts()
    }

    private async list() {
        stdout.write(inWords(await listPorts()) + "\n")
        await this.end(0)
    }

    /** One event: recorded, printed, and into its device's view. */
    private readonly tell = (event: MonitorEvent) => {
        if (this.ending) return
        const { show } = this.options
        const fits = [
            this.record?.write(toJson(event) + "\n"),
            show === "json" && stdout.write(toJson(event) + "\n"),
            show === "plain" &&
                stdout.write(plainRow(event, this.colours) + "\n"),
        ]
        // Whoever can't take more makes the port wait, not our memory grow.
        if (
            (fits[0] === false && this.record) ||
            (stdout.writableNeedDrain && show !== "live")
        )
            this.serials.forEach(serial => serial.pause())
        this.desk.take(event)
    }

    private async showPorts() {
        const { port: path, show } = this.options
        if (show === "web") {
            await this.openPage()
            if (path === undefined) return void this.lookForBoards()
        }
        const port = path === undefined ? await theBoard() : await about(path)
        await this.listenTo(port)
        this.openTerminal()
    }

    private async listenTo(port: Port) {
        const baud = this.options.baud ?? usualBaud(port)
        const { clock } = this
        const listener = new Listener({
            dev: port.path,
            builds: this.builds,
            tell: this.tell,
        })
        const serial = new Serial(port, baud, clock, {
            bytes: bytes => listener.bytes(bytes, this.elapsedMs()),
            opened: reason => listener.opened(reason, this.elapsedMs()),
            closed: reason => listener.closed(reason, this.elapsedMs()),
        })
        const tick = () => {
            listener.tick(this.elapsedMs())
            clock.setTimeout(tick, TICK_MS)
        }
        this.serials.set(identityOf(port), serial)
        await serial.open()
        tick()
    }

    /** Every board there is, and every one that comes. */
    private async lookForBoards() {
        try {
            for (const port of await listPorts())
                if (vendorOf(port) && !this.serials.has(identityOf(port)))
                    await this.listenTo(port).catch(e => {
                        stderr.write(`${(e as Error).message}\n`)
                    })
        } catch (e) {
            stderr.write(`${(e as Error).message}\n`)
            return
        }
        this.clock.setTimeout(() => void this.lookForBoards(), LOOK_MS)
    }

    /** A file is shown as it ended; with a page it stays. */
    private async showFile(path: string) {
        let lastMs = 0
        this.nowMs = () => lastMs
        if (this.options.show === "web") await this.openPage()
        const reader = new RecordingReader({
            dev: basename(path),
            builds: this.builds,
            tell: event => {
                lastMs = Math.max(lastMs, event.tMs)
                this.tell(event)
            },
        })
        await this.readAll(createReadStream(path), reader)
        if (this.options.show === "live") {
            // The last row is for what comes next.
            const rows = stdout.rows ? stdout.rows - 1 : 0
            stdout.write(this.draw(stdout.columns, rows).join("\n") + "\n")
        }
        if (this.options.show !== "web") await this.end(0)
    }

    /** A pipe is followed as it comes. A recording in it has its own times, and goes on from the last. */
    private async showPipe() {
        let ahead = 0
        this.nowMs = () => this.elapsedMs() + ahead
        const reader = new RecordingReader({
            dev: "stdin",
            builds: this.builds,
            nowMs: () => this.elapsedMs(),
            tell: event => {
                ahead = event.tMs - this.elapsedMs()
                this.tell(event)
            },
        })
        this.openTerminal()
        if (!(await this.readAll(stdin, reader)))
            throw new Trouble("nothing came through the pipe; a board: --port")
        await this.end(0)
    }

    /** Whether there was anything. */
    private async readAll(from: Readable, reader: RecordingReader) {
        let isAny = false
        for await (const bytes of from) {
            isAny = true
            reader.push(bytes as Buffer)
            if (stdout.writableNeedDrain)
                await new Promise(done => stdout.once("drain", done))
        }
        reader.end()
        return isAny
    }

    private openTerminal() {
        if (this.options.show !== "live") return
        this.terminal = new Terminal(stdout, this.clock, (width, height) =>
            this.draw(width, height),
        )
        this.terminal.open()
        if (!stdin.isTTY) return
        stdin.setRawMode(true)
        stdin.on("data", (keys: Buffer) => {
            if (/^[q\x03\x04]/.test(keys.toString())) void this.end(0)
        })
    }

    /** The device heard of last, and how many there are besides it. */
    private draw(columns: number, rows: number): string[] {
        // A terminal that does not know its size says 0.
        const width = columns || 80
        const height = rows || 24
        const views = [...this.desk.views.values()]
        const view = views.reduce(
            (a, b) => (b.heardMs >= a.heardMs ? b : a),
            views[0] ?? newView("nothing heard yet"),
        )
        const [serial] = this.serials.values()
        const baud = serial?.baud
        const { colours } = this
        const nowMs = this.nowMs()
        const shown = picture(view, { nowMs, width, height, colours, baud })
        if (views.length < 2) return shown
        return [
            ...shown.slice(0, height - 1),
            `and ${views.length - 1} more: --web shows all`,
        ]
    }

    private async openPage() {
        this.page = new WebPage({
            title: "Herdless monitor",
            desk: this.desk,
            clock: this.clock,
            nowMs: () => this.nowMs(),
            stands: this.options.file !== undefined,
        })
        const url = await this.page.listen(this.options.webPort)
        stderr.write(`${url}  (Ctrl-C ends it)\n`)
    }

    /** Undoes everything and exits. */
    async end(code: number, message = "") {
        if (this.ending) return
        this.ending = true
        this.terminal?.close()
        if (this.terminal && stdin.isTTY) stdin.setRawMode(false)
        if (message) stderr.write(message + "\n")
        for (const serial of this.serials.values())
            await serial.close().catch(() => {})
        await this.page?.close()
        const { record } = this
        if (record) await new Promise<void>(done => record.end(done))
        if (stdout.writableNeedDrain)
            await new Promise(done => stdout.once("drain", done))
        process.exit(code)
    }
}

/** The one board that is plugged in. */
async function theBoard(): Promise<Port> {
    return choosePort(await listPorts())
}

/** What is known of a port the user named; it need not be one that is listed. */
async function about(path: string): Promise<Port> {
    const ports = await listPorts().catch(() => [])
    return ports.find(port => port.path === path) ?? { path }
}

/** Nothing that is there is written over. */
async function newFile(path: string): Promise<Writable> {
    const stream = createWriteStream(path, { flags: "wx" })
    await new Promise<void>((done, failed) => {
        stream.once("open", () => done())
        stream.once("error", (e: NodeJS.ErrnoException) =>
            failed(
                new Trouble(
                    e.code === "EEXIST"
                        ? `--record ${path}: the file exists; give a new name`
                        : `--record ${path}: ${e.message}`,
                ),
            ),
        )
    })
    return stream
}

const options = readOptions(
    process.argv.slice(2),
    { stdout: !!stdout.isTTY },
    toConsole,
)
if (typeof options === "number") process.exitCode = options
else {
    const monitor = new Monitor(options)
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
        process.on(signal, () => void monitor.end(0))
    monitor.run().catch((e: unknown) => {
        const { message } = e as Error
        void monitor.end(
            e instanceof Trouble ? e.exitCode : 1,
            `npm run monitor: ${message}`,
        )
    })
}
