// Which files a compiled program is remembered by: those it is made of, all of them, and no others; and its version without git.
import assert from "node:assert/strict"
import {
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

test("in a folder without git a program's version is package.json's and what its sources hash to", async () => {
    const tree = new Tree()
    try {
        const args = ["host/vm/compile.ts", "devs/minimal.ts"]
        const all = ["--import", "tsx", ...args]
        const { code, output } = await tree.node(all, 120_000)
        assert.equal(code, 0, output)
        const programs = join(tree.folder, ".devicescript/programs")
        const [name] = readdirSync(programs)
        const file = join(programs, name, "bytecode.devs")
        const text = readFileSync(file, "latin1")
        const version = /v\d+\.\d+\.\d+-([0-9a-f]{7})\0/.exec(text)
        assert.ok(version)
        assert.ok(name.slice(-16).startsWith(version[1]), name)
    } finally {
        tree.close()
    }
})
