// The official way to run the firmware: `devs devtools`, and `devs run --tcp` against it.
import { spawn, type ChildProcess } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { loadProgram, PROJECT } from "../../host/vm/program"

const CLI = createRequire(import.meta.url).resolve(
    "@devicescript/cli/built/devicescript-cli.cjs",
)

/** devtools listens here and nowhere else. */
const TCP_PORT = 8082

function isTaken(port: number): Promise<boolean> {
    return new Promise(answer => {
        const socket = connect(port, "127.0.0.1")
        socket.once("error", () => answer(false))
        socket.once("connect", () => {
            socket.destroy()
            answer(true)
        })
    })
}

/** Collects what a child prints; `seen` resolves once it matches. */
function watch(child: ChildProcess) {
    let text = ""
    let check = () => {}
    const take = (data: Buffer) => {
        text += data.toString()
        check()
    }
    child.stdout!.on("data", take)
    child.stderr!.on("data", take)
    return (pattern: RegExp) =>
        new Promise<void>((resolve, reject) => {
            check = () => {
                if (pattern.test(text)) resolve()
            }
            check()
            child.once("exit", () => reject(new Error(`ended:\n${text}`)))
            setTimeout(
                () => reject(new Error(`no ${pattern} in:\n${text}`)),
                60_000,
            ).unref()
        })
}

test("devs devtools with devs run --tcp runs the firmware", async t => {
    if (await isTaken(TCP_PORT)) return t.skip(`port ${TCP_PORT} is taken`)
    const folder = mkdtempSync(join(tmpdir(), "herdless-"))
    for (const name of [
        "src",
        "node_modules",
        "devsconfig.json",
        "package.json",
    ])
        symlinkSync(join(PROJECT, name), join(folder, name))
    const children: ChildProcess[] = []
    const run = (...args: string[]) => {
        const child = spawn(process.execPath, [CLI, ...args], { cwd: folder })
        children.push(child)
        return watch(child)
    }
    try {
        await run("devtools")(/tcpsocket/)
        writeFileSync(
            join(folder, "main.devs"),
            loadProgram("src/main.ts").bytecode,
        )
        const seen = run("run", "--tcp", "main.devs")
        await seen(/"ev":"boot"/)
        await seen(/"ev":"config","key":"MQTT_HOST","value":"missing"/)
    } finally {
        for (const child of children) {
            const gone = new Promise(done => child.once("exit", done))
            if (child.exitCode === null && child.kill("SIGKILL")) await gone
        }
        rmSync(folder, { recursive: true, force: true })
    }
})
