// Every table of cases, compiled to bytecode and run in the VM with garbage collection at each
// allocation. The same tables run under Node in their own test files.
import assert from "node:assert/strict"
import { test } from "node:test"
import { VirtualClock } from "../host/vm/clock"
import { DeviceVm } from "../host/vm/device"
import { MemoryFlash } from "../host/vm/flash"
import { noNetwork } from "../host/vm/network"
import { loadProgram } from "../host/vm/program"
import { cases as backoff } from "./core/backoff.cases"
import { cases as command } from "./core/command.cases"
import { cases as config } from "./core/config.cases"
import { cases as connection } from "./core/connection.cases"
import { cases as fleetPolicy } from "./core/fleet-policy.cases"
import { cases as int } from "./core/int.cases"
import { cases as key } from "./core/key.cases"
import { cases as line } from "./core/line.cases"
import { cases as link } from "./core/link.cases"
import { cases as random } from "./core/random.cases"
import { cases as record } from "./core/record.cases"
import { cases as restart } from "./core/restart.cases"
import { cases as verdict } from "./core/verdict.cases"
import { cases as watchdog } from "./core/watchdog.cases"
import { cases as writeBudget } from "./core/write-budget.cases"
import { cases as bytes } from "./mqtt/bytes.cases"
import { cases as encode } from "./mqtt/encode.cases"
import { cases as flashOutbox } from "./mqtt/flash-outbox.cases"
import { cases as inFlight } from "./mqtt/in-flight.cases"
import { cases as outbox } from "./mqtt/outbox.cases"
import { cases as parser } from "./mqtt/parser.cases"
import { cases as repeats } from "./mqtt/repeats.cases"
import { cases as session } from "./mqtt/session.cases"
import { cases as topic } from "./mqtt/topic.cases"
import { cases as codec5 } from "./mqtt/v5-codec.cases"
import { cases as parser5 } from "./mqtt/v5-parser.cases"
import { cases as rules5 } from "./mqtt/v5-rules.cases"
import { cases as session5 } from "./mqtt/v5-session.cases"

const PROGRAMS = {
    "test/bytecode/core-tables.ts": [int, random, backoff, verdict, line],
    "test/bytecode/machine-tables.ts": [
        command,
        config,
        connection,
        key,
        link,
        inFlight,
        outbox,
        repeats,
        session,
    ],
    "test/bytecode/mqtt-tables.ts": [bytes, encode, parser, topic],
    "test/bytecode/mqtt5-tables.ts": [codec5, parser5, rules5, session5],
    "test/bytecode/restart-tables.ts": [
        fleetPolicy,
        record,
        restart,
        watchdog,
        writeBudget,
        flashOutbox,
    ],
}

interface Result {
    name: string
    error: string
}

/** Runs a program of tables to its last line; returns what it printed for each case. */
async function runProgram(file: string): Promise<Result[]> {
    const clock = new VirtualClock()
    const results: Result[] = []
    const trouble: string[] = []
    let done = false
    const device = new DeviceVm({
        deviceId: "1122334455667788",
        clock,
        network: noNetwork,
        flash: new MemoryFlash(),
        entropy: count => new Uint8Array(count).fill(7),
        gcStress: true,
        onConsole: text => {
            if (text.startsWith("!")) trouble.push(text)
            if (!text.startsWith("# ")) return
            const row = JSON.parse(text.slice(text.indexOf("{")))
            if (row.done) done = true
            else results.push(row)
        },
    })
    device.powerOn()
    clock.runForSync(50)
    device.deploy(loadProgram(file).bytecode)
    await clock.runUntil(() => done || trouble.length > 0, 600_000)
    device.powerOff()
    assert.deepEqual(trouble, [], `${file} died`)
    assert.ok(done, `${file} did not finish`)
    return results
}

for (const [file, tables] of Object.entries(PROGRAMS))
    test(`${file} holds in the VM as it does in Node`, async () => {
        const results = await runProgram(file)
        assert.deepEqual(
            results.filter(r => r.error),
            [],
        )
        const names = tables.flatMap(cases => cases().map(c => c.name))
        assert.equal(results.length, names.length, "cases that ran")
    })

test("the firmware has no float literal", () => {
    const { report } = loadProgram("src/main.ts")
    assert.match(report, /floats: 0kb/)
})
