// What a publish costs beside the stock client: one socket write, and about half the CPU.
import assert from "node:assert/strict"
import { test } from "node:test"
import { comparePublish } from "./perf"

/** The aim is half; a machine with other work to do measures a little more or less. */
const MOST_OF_STOCK = 0.7

test("a QoS 0 publish of 32 B is one socket write, 46 B, and takes at most half the stock client's CPU, give or take", async t => {
    const { ours, stock } = await comparePublish(7)
    t.diagnostic(
        `${ours.cpuUs.toFixed(1)} us, stock ${stock.cpuUs.toFixed(1)} us`,
    )
    assert.equal(ours.writes, 1)
    assert.equal(ours.bytes, 46)
    assert.equal(stock.writes, 2)
    const ratio = ours.cpuUs / stock.cpuUs
    assert.ok(ratio < MOST_OF_STOCK, `${ratio.toFixed(2)} of stock's`)
})
