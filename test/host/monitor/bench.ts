// For tests of the monitor: a real pseudo-terminal with a real VM writing into it, as a board does on its port.
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DeviceVm } from "../../../host/vm/device"
import { MemoryFlash } from "../../../host/vm/flash"
import { RealClock } from "../../../host/vm/clock"
import { makeFlash } from "../../../host/vm/flash-image"
import { noNetwork } from "../../../host/vm/network"
import { loadProgram } from "../../../host/vm/program"

/** Why a test with a pseudo-terminal is skipped, or false. */
export const noSocat =
    spawnSync("socat", ["-V"]).status !== 0 &&
    "needs socat for a pseudo-terminal (Debian: apt install socat)"

export async function until(what: () => boolean, limitMs = 30000) {
    const giveUpMs = Date.now() + limitMs
    while (!what()) {
        if (Date.now() > giveUpMs)
            throw new Error(`not within ${limitMs} ms: ${what}`)
        await new Promise(done => setTimeout(done, 20))
    }
}

/** A port that can be plugged in and pulled out under the same name. */
export class Plug {
    private readonly folder = mkdtempSync(join(tmpdir(), "port-"))
    readonly path = join(this.folder, "ttyACM0")
    private child: ChildProcess | undefined

    async plugIn() {
        const child = spawn(
            "socat",
            ["-", `pty,raw,echo=0,link=${this.path}`],
            { stdio: ["pipe", "ignore", "ignore"] },
        )
        child.stdin.on("error", () => {})
        this.child = child
        await until(() => existsSync(this.path))
    }

    write(bytes: Uint8Array | string) {
        this.child?.stdin?.write(bytes)
    }

    /** Writes, and waits until all of it has left this process. */
    async writeAll(bytes: Uint8Array) {
        await new Promise(done => this.child!.stdin!.write(bytes, done))
    }

    async pullOut() {
        const { child } = this
        this.child = undefined
        if (!child) return
        const ended = new Promise(done => child.on("close", done))
        child.kill()
        await ended
    }

    async remove() {
        await this.pullOut()
        rmSync(this.folder, { recursive: true, force: true })
    }
}

/** A VM with a program whose console goes to a port. It has no network: every attempt is refused. */
export async function boardOn(plug: Plug, program: string, settings = {}) {
    const device = new DeviceVm({
        deviceId: "1122334455667788",
        clock: new RealClock(),
        network: noNetwork,
        flash: new MemoryFlash(
            await makeFlash(loadProgram(program).bytecode, settings),
        ),
        entropy: bytes => Buffer.alloc(bytes, 7),
        onConsole: text => plug.write(text + "\n"),
    })
    return device
}
