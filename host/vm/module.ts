// Cuts the DeviceScript VM (JavaScript and WASM) out of the installed CLI and makes
// independent instances of it. Nothing of the VM is kept in this repository.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { compileFunction } from "node:vm"
import type { Clock, Timer } from "./clock"

/** The parts of the VM's module that the host uses. */
export interface VmModule {
    HEAPU8: Uint8Array
    _malloc(bytes: number): number
    _free(pointer: number): void
    _jd_em_tcpsock_on_event(event: number, pointer: number, bytes: number): void
    sockOpen(hostPointer: number, port: number): number
    sockWrite(pointer: number, bytes: number): number
    sockClose(): number
    sockIsAvailable(): boolean
    sendPacket(frame: Uint8Array): void
    handlePacket(frame: Uint8Array): void
    flashLoad(): Uint8Array
    flashSave(image: Uint8Array): void
    flashSize?: number
    dmesg(line: string): void
    log(...args: unknown[]): void
    error(...args: unknown[]): void
    panicHandler(code: number): void
    deployHandler(code: number): void
    devsSetDeviceId(hex: string): void
    devsStart(): void
    devsStop(): void
    devsIsRunning(): boolean
    devsDeploy(bytecode: Uint8Array): number
    devsVerify(bytecode: Uint8Array): number
    devsGcStress(on: boolean): void
    /** Runs what is due in the VM now instead of at its next turn (at most 10 ms away). */
    wake(): void
}

/** What an instance stands on instead of Node's globals. */
export interface VmSurroundings {
    clock: Clock
    entropy: (bytes: number) => Uint8Array
    /** Called for what the module itself prints (aborts, panics), not for the console. */
    diagnostics: (text: string) => void
    /** May put off the VM's next turn, which the VM wants in `askedMs`. */
    turnMs?: (askedMs: number) => number
}

const VERSION = "2.16.4"
const SHA256 =
    "7b2c6f18a6a74eb5005aa7e625805520ffd050abeee4ea2794786d698684ff89"
const HEAD =
    '"runtime/devicescript-vm/built/devicescript-vm.js"(exports, module2) {\n'
const TAIL = "\n  }\n});\n"
const WASM = /wasmBinaryFile = "data:application\/octet-stream;base64,([^"]+)"/

type VmBody = (
    exports: object,
    module: { exports: unknown },
    ...free: unknown[]
) => void

let loaded: { body: VmBody; wasm: WebAssembly.Module } | undefined

/** The text of the VM's module in the installed CLI. */
function vmSource(): string {
    const require = createRequire(import.meta.url)
    const path = require.resolve("@devicescript/cli/built/devicescript-cli.cjs")
    const text = readFileSync(path, "utf8")
    const start = text.indexOf(HEAD)
    const end = text.indexOf(TAIL, start)
    const source =
        start < 0 || end < 0 ? "" : text.slice(start + HEAD.length, end)
    const hash = createHash("sha256").update(source).digest("hex")
    if (hash !== SHA256)
        throw new Error(
            `the VM inside @devicescript/cli is not the one of ${VERSION} ` +
                `(sha256 ${hash}): install @devicescript/cli@${VERSION} exactly`,
        )
    return source
}

function load() {
    const source = vmSource()
    const base64 = WASM.exec(source)![1]
    const body = compileFunction(source, [
        "exports",
        "module2",
        "require",
        "Date",
        "setTimeout",
        "clearTimeout",
        "setInterval",
        "clearInterval",
        "console",
        "process",
        "__dirname",
        "__filename",
    ]) as VmBody
    // Compiled once: an instance then costs about a millisecond instead of thirty.
    const wasm = new WebAssembly.Module(Buffer.from(base64, "base64"))
    return { body, wasm }
}

/** The VM's one timer: the next turn of its main loop. */
class Turns {
    private next: { run: () => void; timer: Timer } | undefined

    constructor(
        private readonly clock: Clock,
        private readonly turnMs: (askedMs: number) => number = ms => ms,
    ) {}

    readonly set = (run: () => void, askedMs: number) => {
        const timer = this.clock.setTimeout(this.now, this.turnMs(askedMs))
        this.next = { run, timer }
        return this.next
    }
    readonly clear = () => {
        this.clock.clearTimeout(this.next?.timer)
        this.next = undefined
    }
    readonly now = () => {
        const run = this.next?.run
        this.clear()
        run?.()
    }
}

/** Makes one VM; it stands still until `devsStart()`. */
export function createVm(around: VmSurroundings): VmModule {
    loaded ??= load()
    const { body, wasm } = loaded
    const { clock, diagnostics } = around
    const turns = new Turns(clock, around.turnMs)
    const say = (...args: unknown[]) => diagnostics(args.join(" "))
    const holder: { exports: unknown } = { exports: undefined }
    body(
        {},
        holder,
        (name: string) => {
            if (name === "crypto") return { randomBytes: around.entropy }
            if (name === "fs" || name === "path") return {}
            throw new Error(`the VM asked for ${name}`)
        },
        { now: () => clock.nowMs() },
        turns.set,
        turns.clear,
        () => undefined, // Emscripten's start-up watchdog, which would keep Node alive
        turns.clear,
        { log: say, debug: say, warn: say, error: say },
        {
            versions: { node: process.versions.node },
            release: { name: "node" },
            argv: [],
        },
        "/",
        "/devicescript-vm.js",
    )
    const module = {
        instantiateWasm(
            imports: WebAssembly.Imports,
            receive: (instance: WebAssembly.Instance) => void,
        ) {
            const instance = new WebAssembly.Instance(wasm, imports)
            receive(instance)
            return instance.exports
        },
        wake: turns.now,
        // `ds.reboot()` ends the C program; DeviceVm catches this and makes a new VM.
        quit(_status: number, exit: unknown) {
            throw exit
        },
    } as unknown as VmModule
    const ready = (holder.exports as (m: VmModule) => Promise<VmModule>)(module)
    ready.catch(e => diagnostics(String(e)))
    return module
}
