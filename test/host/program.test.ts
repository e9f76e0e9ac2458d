// Which files a compiled program is remembered by: those it is made of, all of them, and no others.
import assert from "node:assert/strict"
import {
    appendFileSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { Tree } from "../../host/mutants/tree"
import { loadProgram, PROJECT } from "../../host/vm/program"
import { sourcesOf } from "../../host/vm/sources"

test("imports are followed, also in a circle and from a folder's index; packages and strangers are not", () => {
    const folder = mkdtempSync(join(tmpdir(), "herdless-"))
    mkdirSync(join(folder, "src/lib"), { recursive: true })
    const write = (name: string, text: string) =>
        writeFileSync(join(folder, name), text)
    write(
        "src/main.ts",
        'import * as ds from "@devicescript/core"\nimport {\n    a,\n} from "./a"\nexport type { L } from "./lib"\nimport "./side"\n',
    )
    write("src/a.ts", 'import { main } from "./main"\nexport const a = 1\n')
    write("src/side.ts", '// as in "./a"; import "./gone"\n')
    write("src/lib/index.ts", "export * from './l'\n")
    write("src/lib/l.ts", "export interface L { x: 1 }\n")
    write("src/stranger.ts", 'import "./main"\n')
    const sources = sourcesOf(folder, "src/main.ts")
    assert.deepEqual(
        [...sources.keys()],
        [
            ...["src/a.ts", "src/lib/index.ts", "src/lib/l.ts", "src/main.ts"],
            "src/side.ts",
        ],
    )
    rmSync(folder, { recursive: true })
})

test("the compiler read no other file of the project", () => {
    for (const file of ["src/main.ts", "devs/minimal.ts"]) {
        const found = sourcesOf(PROJECT, file)
        const { sources } = JSON.parse(loadProgram(file).debugJson) as {
            sources: { path: string; text: string }[]
        }
        const own = sources.filter(s => !s.path.includes("node_modules/"))
        assert.ok(own.length > 5, `${own.length} files`)
        for (const { path, text } of own) assert.equal(found.get(path), text)
    }
    const minimal = sourcesOf(PROJECT, "devs/minimal.ts")
    assert.ok(!minimal.has("src/main.ts"))
})

test("in a folder without git two builds have two versions: package.json's and a hash of the sources", async () => {
    const tree = new Tree()
    try {
        const file = "devs/minimal.ts"
        const version = async () => {
            const args = ["--import", "tsx", "host/vm/compile.ts", file]
            const { code, output } = await tree.node(args, 120_000)
            assert.equal(code, 0, output)
            const programs = join(tree.folder, ".devicescript/programs")
            const found = readdirSync(programs).map(name =>
                readFileSync(join(programs, name, "bytecode.devs"), "latin1"),
            )
            rmSync(programs, { recursive: true })
            return /v\d+\.\d+\.\d+-[0-9a-f]{7}\0/.exec(found.join())?.[0]
        }
        const first = await version()
        assert.ok(first)
        appendFileSync(join(tree.folder, file), "console.log(1)\n")
        const second = await version()
        assert.ok(second)
        assert.notEqual(first, second)
    } finally {
        tree.close()
    }
})
