// A real pseudo-terminal: a serial port for whatever opens `path`, a stream for the test. Needs socat.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { closeSync, constants, existsSync, openSync } from "node:fs"
import { createServer, type AddressInfo, type Socket } from "node:net"

/** True when pseudo-terminals can be made here. */
export const hasPty = spawnSync("socat", ["-V"]).status === 0

export interface Pty {
    /** The board's end. */
    board: Socket
    /** Pulls it out. */
    close(): Promise<void>
}

/** Makes a pseudo-terminal that programs open as `path`; it must end in a name like ttyUSB0. */
export async function openPty(path: string): Promise<Pty> {
    const server = createServer()
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const socat = spawn(
        "socat",
        [`PTY,link=${path},raw,echo=0`, `TCP:127.0.0.1:${port}`],
        { stdio: "ignore" },
    )
    const [board] = (await once(server, "connection")) as [Socket]
    server.close()
    while (!existsSync(path)) await new Promise(done => setTimeout(done, 10))
    // Kept open, so that socat does not end when a program closes the port.
    const held = openSync(path, constants.O_RDWR | constants.O_NOCTTY)
    let ended: Promise<unknown> | undefined
    const close = () => {
        const exit = once(socat, "exit")
        closeSync(held)
        board.destroy()
        socat.kill()
        return exit
    }
    return {
        board,
        async close() {
            await (ended ??= close())
        },
    }
}
