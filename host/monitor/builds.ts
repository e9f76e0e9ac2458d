// The builds on this computer, so that a crash frame `inner_F2 (pc:19)` becomes `src/app.ts:12:9`. A device prints
// the SHA-256 of its program when it starts and before each crash: only the very same build is used.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A stack frame as the runtime prints it. */
const FRAME = /\bat (\w*)_F(\d+) \(pc:(\d+)\)/

/** What `bytecode-dbg.json` says, as far as it is used here. */
interface DebugInfo {
    functions: { name: string; startpc: number }[]
    /** Triples: source position, its length, pc; each position and pc is the difference to the one before. */
    srcmap: number[]
    /** In the order of their positions, which count through all files. */
    sources: { path: string; length: number; text: string }[]
}

/** One build, read when it is needed. */
export class Build {
    constructor(private readonly info: DebugInfo) {}

    /** Where the frame in a console line stands in the sources, as `path:line:column`. */
    locate(text: string): string | undefined {
        const [, name, index, pc] = FRAME.exec(text) ?? []
        const made = this.info.functions[Number(index)]
        if (!made || (made.name !== name && name !== "inline")) return undefined
        // The pc printed is that of the next instruction.
        return this.position(made.startpc + Math.max(Number(pc) - 1, 0))
    }

    private position(pc: number): string | undefined {
        const { srcmap, sources } = this.info
        let at = 0
        let here = 0
        let pos = 0
        for (let i = 0; i + 2 < srcmap.length; i += 3) {
            here += srcmap[i + 2]
            if (here > pc) break
            at += srcmap[i]
            pos = at
        }
        for (const { path, length, text } of sources) {
            if (pos >= length) {
                pos -= length
                continue
            }
            const before = text.slice(0, pos).split("\n")
            return `${path}:${before.length}:${before[before.length - 1].length + 1}`
        }
        return undefined
    }
}

/** Looking through the folders costs some ms, and what asks for it comes from a device. */
const LOOK_AGAIN_MS = 2000

export class Builds {
    private readonly known = new Map<string, Build | undefined>()
    private nextMs = -Infinity

    /** @param project the folder of package.json */
    constructor(private readonly project: string) {}

    /** The build whose program has this SHA-256 (hex), if it is here. */
    bySha(sha: string, nowMs: number): Build | undefined {
        const known = this.known.get(sha)
        if (known || nowMs < this.nextMs) return known
        this.nextMs = nowMs + LOOK_AGAIN_MS
        const found = this.folders().find(folder => shaOf(folder) === sha)
        if (!found) return undefined
        const json = readFileSync(join(found, "bytecode-dbg.json"), "utf8")
        const build = new Build(JSON.parse(json) as DebugInfo)
        this.known.set(sha, build)
        return build
    }

    private folders(): string[] {
        const out = join(this.project, ".devicescript")
        const programs = join(out, "programs")
        const cached = existsSync(programs) ? readdirSync(programs) : []
        return [
            join(out, "bin"),
            ...cached.map(name => join(programs, name)),
        ].filter(folder => existsSync(join(folder, "bytecode-dbg.json")))
    }
}

function shaOf(folder: string): string | undefined {
    const file = join(folder, "bytecode.devs")
    if (!existsSync(file)) return undefined
    return createHash("sha256").update(readFileSync(file)).digest("hex")
}
