// The clients of the part "fleet", each kind in a process of its own that ends when our end of its pipe does.
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { join } from "node:path"
import { PROJECT } from "../vm/program"
import type { Herd, Outage } from "./outage"

/** What a herd is run by, and with which arguments after the port and the number of clients. */
interface Command {
    program: string
    args: string[]
}

/** A file of TypeScript, run as the tools are. */
const tsx = (file: string): Command => ({
    program: process.execPath,
    args: ["--import", "tsx", join(PROJECT, "host/bench", file)],
})

/** Debian's own: another Python first on the PATH has no Debian packages. */
const PYTHON = ["/usr/bin/python3", "python3"].find(
    python => spawnSync(python, ["-c", "import paho.mqtt.client"]).status === 0,
)

class ProcessHerd implements Herd {
    gone: string | undefined
    private child: ChildProcess | undefined
    private said = ""

    constructor(
        private readonly command: Command,
        private readonly more: string[] = [],
    ) {}

    async start(port: number, { devices, seed }: Outage) {
        const { program, args } = this.command
        const all = [...args, `${port}`, `${devices}`, `${seed}`, ...this.more]
        const child = spawn(program, all, {
            cwd: PROJECT,
            stdio: ["pipe", "ignore", "pipe"],
        })
        this.child = child
        child.stderr!.on("data", text => {
            this.said = (this.said + text).slice(-1000)
        })
        const ended = (why: string) => {
            this.gone ??= `the clients ended: ${why} ${this.said.trim()}`
        }
        child.on("error", e => ended(e.message))
        child.on("exit", (code, signal) => ended(`${signal ?? code}`))
        child.stdin!.on("error", () => {})
    }

    async stop() {
        const child = this.child
        this.child = undefined
        if (!child || this.gone) return
        const gone = new Promise(done => child.once("exit", done))
        child.kill("SIGKILL")
        await gone
    }
}

/** The reference firmware in the VM, with these settings and a broker's address. */
export const firmware = (settings: Record<string, string>): Herd =>
    new ProcessHerd(tsx("herd-vm.ts"), [
        "src/main.ts",
        JSON.stringify({ ...settings, MQTT_HOST: "127.0.0.1" }),
    ])

/** The stock MQTTClient in the VM. */
export const stock = (): Herd =>
    new ProcessHerd(tsx("herd-vm.ts"), [
        "test/bytecode/stock-reconnect.ts",
        "{}",
    ])

/** MQTT.js as it comes. */
export const mqttJs = (): Herd => new ProcessHerd(tsx("herd-mqttjs.ts"))

/** paho-mqtt for Python as it comes; undefined where it is not installed. */
export const paho = (): Herd | undefined =>
    PYTHON === undefined
        ? undefined
        : new ProcessHerd({
              program: PYTHON,
              args: [join(PROJECT, "host/bench/herd_paho.py")],
          })
