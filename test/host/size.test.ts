// `npm run size`: what it measures is what is there, and its output and exit codes.
import assert from "node:assert/strict"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import {
    bytesPerFeature,
    bytesPerFile,
    guardsOf,
    NAMES,
    PROGRAMS,
    readOptions,
    sizeOf,
    sizeTables,
    type Name,
    type Size,
} from "../../host/size"
import { loadProgram, PROJECT } from "../../host/vm/program"

test("size of the stock client, a minimal program and the firmware: bytecode and heap at rest", async () => {
    const sizes: Partial<Record<Name, Size>> = {}
    for (const name of ["stock", "minimal", "firmware"] as const) {
        const size = (sizes[name] = await sizeOf(name))
        const { file } = PROGRAMS[name]
        assert.equal(size.bytes, loadProgram(file).bytecode.length)
        // More than an empty program, and a device of 40 kB has room for an application.
        assert.ok(
            size.heap > 1000 && size.heap < 20_000,
            `${name}: ${size.heap} B of heap`,
        )
    }
    const { stock, minimal, firmware } = sizes
    assert.ok(stock!.bytes < minimal!.bytes)
    assert.ok(minimal!.bytes < firmware!.bytes)
    assert.ok(minimal!.heap < firmware!.heap)
})

test("size's tables: each program beside minimal, then the firmware; what --check compares", () => {
    const all = Object.fromEntries(
        NAMES.map((name, i) => [name, { bytes: 1000 + i, heap: 500 - i }]),
    ) as Record<Name, Size>
    const text = sizeTables(all)
    const row = text.split("\n").find(line => line.startsWith("| QoS 1"))
    const cells = row!.split("|").map(cell => cell.trim())
    assert.deepEqual(cells.slice(2, 7), [
        "test/size/qos1.ts",
        "1008",
        "492",
        "+7",
        "-7",
    ])
    const guards = guardsOf(all)
    assert.equal(Object.keys(guards).length, 2 * NAMES.length)
    assert.deepEqual(guards["QoS 1: heap B"], { value: 492, kind: "bytes" })
})

test("the firmware by feature: every byte of it, each source file in one feature", () => {
    const files = bytesPerFile("firmware")
    const features = bytesPerFeature(files)
    const sum = (rows: { bytes: number }[]) =>
        rows.reduce((total, row) => total + row.bytes, 0)
    assert.equal(sum(features), sum(files))
    // One that no feature knows would stand there by its own name.
    for (const { name } of features) assert.doesNotMatch(name, /\.ts$/)
    const ofMqtt5 = files.filter(f => f.file.startsWith("src/mqtt/v5-"))
    const mqtt5 = features.find(f => f.name.startsWith("MQTT 5"))
    assert.ok(mqtt5!.bytes > sum(ofMqtt5), "server moves are there, too")
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
    assert.deepEqual(filesOf("MQTT 5").filter(ofMqtt5).sort(), [
        "src/mqtt/v5-codec.ts",
        "src/mqtt/v5-parser.ts",
        "src/mqtt/v5-properties.ts",
    ])
    assert.equal(filesOf("firmware").filter(ofMqtt5).length, 6)
    // Texts are in no file: a reason that only MQTT 5 has is in the program that has it.
    const has = (name: Name, text: string) =>
        Buffer.from(loadProgram(PROGRAMS[name].file).bytecode).includes(text)
    assert.ok(has("MQTT 5", "session taken over"))
    assert.ok(!has("minimal", "session taken over"))
})

test("size says what is wrong with a flag and exits with 2; --help exits with 0", () => {
    let said = ""
    const read = (flag: string) =>
        readOptions([flag], text => {
            said += text
        })
    assert.equal(read("--jsn"), 2)
    assert.match(said, /--jsn/)
    assert.equal(read("--help"), 0)
    assert.match(said, /Exit codes/)
})
