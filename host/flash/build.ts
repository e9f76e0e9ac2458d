// The program to write, compiled in the project's own folder, where `devs annotate` and the
// monitor find the source lines of it.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { loadProgram, PROJECT, withLock } from "../vm/program"
import { runDevsSync } from "./devs"
import { Trouble } from "./trouble"

const BIN = ".devicescript/bin"

/**
 * Compiles a program.
 * @param cwd the project's folder
 * @param file the program, from there
 * @throws Trouble with the compiler's words
 */
export function buildProgram(cwd: string, file: string): Uint8Array {
    if (!existsSync(join(cwd, file)))
        throw new Trouble(`${file}: no such program in ${cwd}`, 2)
    if (!existsSync(join(cwd, "devsconfig.json")))
        throw new Trouble(
            `${cwd} is no DeviceScript project: it has no devsconfig.json; run there: npx devs init`,
            2,
        )
    return resolve(cwd) === PROJECT ? own(file) : another(cwd, file)
}

/** The project these tools are part of: compiled once per content. */
function own(file: string): Uint8Array {
    try {
        const { bytecode, debugJson } = loadProgram(file)
        const bin = join(PROJECT, BIN)
        mkdirSync(bin, { recursive: true })
        writeFileSync(join(bin, "bytecode.devs"), bytecode)
        writeFileSync(join(bin, "bytecode-dbg.json"), debugJson)
        return bytecode
    } catch (e) {
        throw new Trouble((e as Error).message)
    }
}

function another(cwd: string, file: string): Uint8Array {
    let ended = { code: 1, output: "" }
    withLock(() => (ended = runDevsSync(["build", file], cwd)))
    const built = join(cwd, BIN, "bytecode.devs")
    if (ended.code !== 0 || !existsSync(built))
        throw new Trouble(`devs build ${file} failed:\n${ended.output}`)
    return readFileSync(built)
}
