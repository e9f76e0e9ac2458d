// Compiles DeviceScript programs with the installed `devs`, one after another in this one process: from the second on it
// takes a third of the time, because the compiler is loaded and warm. program.ts runs it: compile.ts FILE...
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    renameSync,
    rmSync,
    symlinkSync,
    writeFileSync,
} from "node:fs"
import { createRequire, Module } from "node:module"
import { dirname, join } from "node:path"
import { CACHE, CONFIG, folderOf, PROJECT } from "./program"

/** What of `devs` is used. */
interface Devs {
    /** `devs build`; what it prints goes to the console. */
    buildOnce(file: string, options: { stats: true }): Promise<void>
    /** The version of programs that are built without git. */
    version: string
}

/**
 * Without git `devs` puts no version into a program, and by that the restart limit tells one build from another. This
 * goes to the end of its source.
 */
const VERSIONED = `
const readPackage = compilePackageJson
compilePackageJson = (folder, file, config, errors) => {
    readPackage(folder, file, config, errors)
    config.hwInfo["@version"] ??= module.exports.version
}
module.exports = { buildOnce }
`

const LINKS = ["src", "devs", "test", "boards", "node_modules", ...CONFIG]

/** `devs` colours its words for a terminal. */
const COLOUR = /\x1b\[[0-9;]*m/g

/** Where `devs build` writes to. */
const OUT = ".devicescript/bin"

/** The command line tool as a module: it exports nothing but its main function, which ends the process. */
function loadDevs(): Devs {
    const require = createRequire(import.meta.url)
    const path = require.resolve("@devicescript/cli/built/devicescript-cli.cjs")
    const text = readFileSync(path, "utf8")
    const devs = new Module(path) as Module & {
        _compile(text: string, path: string): void
    }
    devs.filename = path
    devs.paths = [join(PROJECT, "node_modules"), dirname(path)]
    devs._compile(text + VERSIONED, path)
    return devs.exports as Devs
}

/** Runs `work`; what it printed. */
async function listen(work: () => Promise<void>): Promise<string> {
    const streams = [process.stdout, process.stderr]
    const writes = streams.map(stream => stream.write)
    let said = ""
    for (const stream of streams)
        stream.write = (text: unknown) => {
            said += String(text)
            return true
        }
    try {
        await work()
    } catch (e) {
        said += `${(e as Error).message}\n`
    } finally {
        streams.forEach((stream, i) => (stream.write = writes[i]))
    }
    return said.replace(COLOUR, "")
}

async function compile(devs: Devs, file: string) {
    const folder = folderOf(file)
    if (existsSync(folder)) return
    rmSync(OUT, { recursive: true, force: true })
    const { version } = JSON.parse(readFileSync("package.json", "utf8"))
    // The folder's name ends with a hash of the sources.
    devs.version = `v${version}-${folder.slice(-16, -9)}`
    const report = await listen(() => devs.buildOnce(file, { stats: true }))
    if (existsSync(join(OUT, "bytecode.devs"))) {
        writeFileSync(join(OUT, "report.txt"), report)
        renameSync(OUT, folder)
    } else process.stderr.write(`devs build ${file} failed:\n${report}`)
}

async function main(files: string[]) {
    mkdirSync(CACHE, { recursive: true })
    // `devs build` always writes to where it runs, so it runs in a folder of its own.
    const work = mkdtempSync(join(CACHE, "work-"))
    process.on("exit", () => rmSync(work, { recursive: true, force: true }))
    for (const signal of ["SIGINT", "SIGTERM"] as const)
        process.on(signal, () => process.exit(1))
    for (const name of LINKS)
        if (existsSync(join(PROJECT, name)))
            symlinkSync(join(PROJECT, name), join(work, name))
    process.chdir(work)
    const devs = loadDevs()
    for (const file of files) {
        await compile(devs, file)
        process.stdout.write(`${file}\n`)
    }
}

void main(process.argv.slice(2))
