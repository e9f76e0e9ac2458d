// `npm run crashes`: progress, Ctrl-C, flags. What it measures is tested where it is promised: test/firmware/cases/restarts.test.ts.
import assert from "node:assert/strict"
import { test } from "node:test"
import { crashes } from "../../host/crashes"
import { FakeIo } from "./fleet-io"

test("Ctrl-C: the rows that are known, the last for the hours that were played; exit code 130", async () => {
    const io = new FakeIo()
    io.stopAfter = 2
    const code = await crashes(["--hours", "100", "--json"], io)
    assert.equal(code, 130, io.complaints)
    const rows = io.printed.trimEnd().split("\n")
    assert.equal(rows.length, 1)
    const row = JSON.parse(rows[0])
    // Two quarters of an hour: six starts, and one after each hold of 5, 10 and 20 min.
    assert.equal(row.hours, 0.5)
    assert.equal(row.connections, 8)
    assert.equal(row.perHour, 16)
    assert.equal(row.worstWindow, 6)
    assert.match(
        io.statuses[0],
        /^herdless, crash after 1 s: 0 %, \S+ \w+.* to go$/,
    )
})

test("--herd: Ctrl-C in the first minute", async () => {
    const io = new FakeIo()
    io.stopAfter = 1
    assert.equal(await crashes(["--herd", "2"], io), 130, io.complaints)
    const [head, first] = io.printed.split("\n")
    assert.match(head, /^program +start +online/)
    assert.match(first, /^herdless +1 +2 /)
    assert.match(io.statuses[0], /^herdless: 5 %, .* to go$/)
})

test("a bad flag is named with what is allowed, exit code 2; help tells the exit codes", async () => {
    const io = new FakeIo()
    assert.equal(await crashes(["--hours", "0"], io), 2)
    assert.match(io.complaints, /--hours.*'0'.*whole numbers from 1 to 1000/)
    assert.equal(await crashes(["--help"], io), 0)
    assert.match(io.printed, /130 Ctrl-C/)
})
