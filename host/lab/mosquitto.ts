// A real mosquitto: on loopback, on a free port, in a folder of its own, ended by its id.
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, connect, type AddressInfo } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"

/** Where Debian puts it; it is not on every user's PATH. */
export const PROGRAM = ["mosquitto", "/usr/sbin/mosquitto"].find(
    path => spawnSync(path, ["-h"]).error === undefined,
)

/** A TCP port that is free now. */
export async function freePort(): Promise<number> {
    const server = createServer()
    await new Promise<void>(done => server.listen(0, "127.0.0.1", done))
    const { port } = server.address() as AddressInfo
    await new Promise(done => server.close(done))
    return port
}

export class Mosquitto {
    private child: ChildProcess | undefined
    private readonly folder = mkdtempSync(join(tmpdir(), "herdless-"))

    /** @param config lines of mosquitto.conf after the listener's */
    constructor(
        readonly port: number,
        private readonly config: string[] = [],
    ) {}

    /** Starts it and waits until it accepts connections. */
    async start() {
        if (!PROGRAM)
            throw new Error(
                "mosquitto is not installed (apt-get install mosquitto)",
            )
        const file = join(this.folder, "mosquitto.conf")
        const lines = [
            `listener ${this.port} 127.0.0.1`,
            "allow_anonymous true",
            // Started as root it would become another user, who cannot read our folder.
            `user ${userInfo().username}`,
            ...this.config,
        ]
        writeFileSync(file, lines.join("\n") + "\n")
        const child = spawn(PROGRAM, ["-c", file], { stdio: "ignore" })
        this.child = child
        while (!(await accepts(this.port))) {
            if (child.exitCode !== null)
                throw new Error(`mosquitto ended with ${child.exitCode}`)
            await new Promise(done => setTimeout(done, 20))
        }
    }

    /** Ends it; its port refuses connections afterwards. */
    async stop(signal: NodeJS.Signals = "SIGTERM") {
        const child = this.child
        this.child = undefined
        if (!child || child.exitCode !== null) return
        const gone = new Promise(done => child.once("exit", done))
        child.kill(signal)
        await gone
    }

    async dispose() {
        await this.stop("SIGKILL")
        rmSync(this.folder, { recursive: true, force: true })
    }
}

function accepts(port: number): Promise<boolean> {
    return new Promise(answer => {
        const socket = connect(port, "127.0.0.1")
        socket.once("connect", () => answer(true))
        socket.once("error", () => answer(false))
        socket.once("connect", () => socket.destroy())
    })
}
