// `npm run size`: what it measures is what is there, and its output and exit codes.
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import {
    bytesPerFile,
    PROGRAMS,
    sizeTable,
    type Name,
    type Size,
} from "../../host/size"
import { loadProgram, PROJECT } from "../../host/vm/program"

function run(...args: string[]) {
    return spawnSync(
        process.execPath,
        ["--import", "tsx", join(PROJECT, "host/size.ts"), ...args],
        { cwd: PROJECT, encoding: "utf8" },
    )
}

test("size --json: bytecode and heap of the firmware, a minimal program and the stock client", () => {
    const { status, stdout, stderr } = run("--json")
    assert.equal(status, 0, stderr)
    const sizes = JSON.parse(stdout) as Record<string, Size>
    assert.deepEqual(Object.keys(sizes), Object.keys(PROGRAMS))
    for (const [name, { file }] of Object.entries(PROGRAMS)) {
        assert.equal(sizes[name].bytes, loadProgram(file).bytecode.length)
        // More than an empty program, and a device of 40 kB has room for an application.
        const { heap } = sizes[name]
        assert.ok(heap > 1000 && heap < 20_000, `${name}: ${heap} B of heap`)
    }
    assert.ok(sizes.minimal.bytes < sizes.firmware.bytes)
    assert.ok(sizes.minimal.heap < sizes.firmware.heap)
    const table = sizeTable(sizes as never)
    for (const { bytes, heap } of Object.values(sizes)) {
        assert.ok(table.includes(` ${bytes} `), table)
        assert.ok(table.includes(` ${heap}`), table)
    }
})

test("size by source file: each file exists and they add up to the bytecode", () => {
    const rows = bytesPerFile("firmware")
    const total = rows.reduce((sum, row) => sum + row.bytes, 0)
    assert.equal(total, loadProgram(PROGRAMS.firmware.file).bytecode.length)
    const files = rows.map(row => row.file)
    for (const file of files.filter(f => f.endsWith(".ts")))
        assert.ok(
            existsSync(join(PROJECT, file)) ||
                existsSync(join(PROJECT, "node_modules", file)),
            file,
        )
    for (const file of ["src/main.ts", "src/device/client.ts"])
        assert.ok(files.includes(file), file)
    assert.ok(!files.includes("(the compiler)"))
})

test("MQTT 5 is carried by those who name it, and by nobody else", () => {
    const filesOf = (name: Name) => bytesPerFile(name).map(row => row.file)
    const ofMqtt5 = (file: string) =>
        /^src\/mqtt\/(v5-|version|servers|rivals)/.test(file)
    assert.deepEqual(filesOf("minimal").filter(ofMqtt5), [])
    assert.deepEqual(filesOf("mqtt5").filter(ofMqtt5).sort(), [
        "src/mqtt/v5-codec.ts",
        "src/mqtt/v5-parser.ts",
        "src/mqtt/v5-properties.ts",
    ])
    assert.equal(filesOf("firmware").filter(ofMqtt5).length, 6)
    // Texts are in no file: a reason that only MQTT 5 has is in the program that has it.
    const has = (name: Name, text: string) =>
        Buffer.from(loadProgram(PROGRAMS[name].file).bytecode).includes(text)
    assert.ok(has("mqtt5", "session taken over"))
    assert.ok(!has("minimal", "session taken over"))
})

test("size says what is wrong with a flag and exits with 2; --help exits with 0", () => {
    const wrong = run("--jsn")
    assert.equal(wrong.status, 2)
    assert.match(wrong.stderr, /--jsn/)
    const help = run("--help")
    assert.equal(help.status, 0)
    assert.match(help.stdout, /Exit codes/)
})
