// What the tests of `flash`, `bundle` and `deploy` stand on: a DeviceScript project with secrets of its own,
// a computer whose USB ports are given, and the commands as a user runs them.
import { spawn } from "node:child_process"
import {
    mkdirSync,
    mkdtempSync,
    realpathSync,
    rmSync,
    symlinkSync,
    utimesSync,
    writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import type { Port } from "../../host/flash/ports"
import { PROJECT } from "../../host/vm/program"
import { givePorts, pathWith } from "../udev"
import { bootOffset, madeUpRuntime } from "./runtime"

export const SECRET = "tr0ub4dor&3"
export const WIFI_SECRET = "correct horse"

/** A program that reads a setting: small, so that it compiles fast. */
const PROGRAM = `import { readSetting } from "@devicescript/settings"
console.log("host is " + (await readSetting("MQTT_HOST", "nobody")))
`

export interface Ended {
    code: number | null
    out: string
    err: string
}

export class FlashBench {
    /** Also the computer's PATH begins here. */
    readonly folder = realpathSync(mkdtempSync(join(tmpdir(), "herdless-")))
    readonly project = join(this.folder, "project")

    constructor() {
        mkdirSync(join(this.project, "src"), { recursive: true })
        symlinkSync(
            join(PROJECT, "node_modules"),
            join(this.project, "node_modules"),
        )
        this.write("devsconfig.json", "{}")
        this.write("package.json", '{"name": "lamp", "version": "1.2.3"}')
        this.write("src/main.ts", PROGRAM)
        this.write(
            ".env.local",
            `MQTT_HOST=broker.lan\nMQTT_PWD=${SECRET}\nWIFI_SSID=lab\nWIFI_PWD=${WIFI_SECRET}\n`,
        )
        this.givePorts([])
    }

    write(name: string, text: string | Buffer) {
        writeFileSync(join(this.project, name), text)
    }

    /** Gives the project the boards of this one. */
    linkBoards() {
        symlinkSync(join(PROJECT, "boards"), join(this.project, "boards"))
    }

    /** A runtime image on disk, under the name devs would give it. */
    runtimeFile(chip: string, name = `runtime-${chip}`): string {
        const offset = bootOffset(chip).toString(16)
        const path = join(this.folder, `${name}-0x${offset}.bin`)
        writeFileSync(path, madeUpRuntime(chip))
        return path
    }

    /** An image that devs downloaded the day before yesterday: too old for it to take unasked. */
    cache(name: string, image: Buffer) {
        const folder = join(this.project, ".devicescript/cache")
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, name), image)
        const old = new Date(Date.now() - 48 * 3600 * 1000)
        utimesSync(join(folder, name), old, old)
    }

    /** Where a pseudo-terminal can be put: its name is that of a USB serial port. */
    portPath(number = 0): string {
        return join(this.folder, `ttyUSB${number}`)
    }

    /** The serial ports of this computer. */
    givePorts(ports: Port[]) {
        givePorts(this.folder, ports)
    }

    /** Runs `npm run NAME -- ARGS` on the project. */
    run(
        name: "flash" | "bundle" | "deploy",
        args: string[],
        env: NodeJS.ProcessEnv = {},
    ): Promise<Ended> {
        return this.start(name, args, env).done
    }

    /** As `run`, with the process at hand. */
    start(
        name: "flash" | "bundle" | "deploy",
        args: string[],
        env: NodeJS.ProcessEnv = {},
    ) {
        const child = spawn(
            process.execPath,
            [
                "--import",
                "tsx",
                `host/${name}.ts`,
                "--project",
                this.project,
                ...args,
            ],
            {
                cwd: PROJECT,
                stdio: ["ignore", "pipe", "pipe"],
                env: { ...this.env(), ...env },
            },
        )
        const ended: Ended = { code: null, out: "", err: "" }
        child.stdout.on("data", text => (ended.out += text))
        child.stderr.on("data", text => (ended.err += text))
        const done = new Promise<Ended>(resolve =>
            child.on("close", code => resolve({ ...ended, code })),
        )
        return { child, ended, done }
    }

    /** The environment in which these ports, and those alone, are on this computer. */
    env(): NodeJS.ProcessEnv {
        return {
            ...process.env,
            PATH: pathWith(this.folder),
            // A pseudo-terminal has no DTR and RTS to reset a chip with.
            ESPTOOL_BEFORE: "no_reset",
            ESPTOOL_AFTER: "no_reset",
            ESPTOOL_CONNECT_ATTEMPTS: "1",
        }
    }

    /** A PATH with Node and these ports on it and no esptool. */
    get barePath(): string {
        return [this.folder, dirname(process.execPath)].join(delimiter)
    }

    remove() {
        rmSync(this.folder, { recursive: true, force: true })
    }
}
