// Pay for what you use: a program that doesn't name a feature doesn't carry it.
import assert from "node:assert/strict"
import { test } from "node:test"
import { loadProgram } from "../../host/vm/program"

/** Names of all functions in a program, and its size. */
function contents(file: string) {
    const { bytecode, debugJson } = loadProgram(file)
    const { functions, sources } = JSON.parse(debugJson) as {
        functions: { name: string; location?: [number, number] }[]
        sources: { path: string; length: number }[]
    }
    const files = new Set<string>()
    for (const { location } of functions) {
        let start = 0
        for (const { path, length } of sources) {
            const at = location?.[0] ?? -1
            if (at >= start && at < start + length) files.add(path)
            start += length
        }
    }
    return { bytes: bytecode.length, files }
}

/** Files of which only those who name a feature carry a function, with a program that does. */
const FEATURES = {
    "devs/qos1.ts": [
        "src/device/qos1.ts",
        "src/mqtt/in-flight.ts",
        "src/mqtt/repeats.ts",
    ],
    "devs/flash-outbox.ts": [
        "src/device/flash-outbox.ts",
        "src/mqtt/flash-outbox.ts",
        "src/mqtt/flash-slot.ts",
        "src/core/write-budget.ts",
    ],
    "devs/keyed-commands.ts": [
        "src/core/key.ts",
        "src/core/dedup.ts",
        "src/device/keys.ts",
    ],
    "devs/request.ts": ["src/device/request.ts", "src/core/retry-budget.ts"],
    "devs/http.ts": [
        "src/device/http.ts",
        "src/device/lease.ts",
        "src/core/http-retry.ts",
    ],
}

test("the minimal program carries no feature that it does not name; one that names it does", t => {
    const minimal = contents("devs/minimal.ts")
    const qos1 = contents("devs/qos1.ts")
    for (const [program, files] of Object.entries(FEATURES)) {
        const { bytes, files: carried } = contents(program)
        t.diagnostic(`${program}: ${bytes - minimal.bytes} B more than minimal`)
        for (const file of files) {
            assert.ok(!minimal.files.has(file), `minimal carries ${file}`)
            if (program === "devs/flash-outbox.ts")
                assert.ok(!qos1.files.has(file), `QoS 1 carries ${file}`)
            assert.ok(carried.has(file), `${program} does not carry ${file}`)
        }
        assert.ok(bytes > minimal.bytes)
    }
})
