// The soak: a short one finds nothing, is no idle run and is the same every time; a firmware with a
// mistake is found out, with a replay that fails alike and a shorter one; the command line.
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { test } from "node:test"
import { readOptions } from "../../host/soak/options"
import { runJob } from "../../host/soak/run"
import { drawSchedule } from "../../host/soak/schedule"
import { KINDS } from "../../host/soak/troubles"
import { PROJECT } from "../../host/vm/program"

const TARGETS = [
    { name: "d1", wifi: false },
    { name: "d2", wifi: true },
]

/** Runs `npm run soak` with these flags. */
function soak(args: string, killAfterMs?: number) {
    const child = spawn(
        process.execPath,
        ["--import", "tsx", "host/soak.ts", ...args.split(" ")],
        { cwd: PROJECT },
    )
    let out = ""
    let err = ""
    child.stdout.on("data", (d: Buffer) => (out += d.toString()))
    child.stderr.on("data", (d: Buffer) => (err += d.toString()))
    if (killAfterMs) setTimeout(() => child.kill("SIGINT"), killAfterMs)
    return new Promise<{ code: number | null; out: string; err: string }>(
        resolve => child.on("close", code => resolve({ code, out, err })),
    )
}

test("a plan has everything, in order, and nothing that outlasts it", () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 20; ++seed) {
        let lastMs = 0
        for (const t of drawSchedule(seed, 24, TARGETS)) {
            seen.add(t.what)
            assert.ok(t.atMs >= lastMs && t.atMs + t.forMs <= 24 * 3_600_000)
            lastMs = t.atMs
            if (KINDS[t.what].needs === "wifi") assert.equal(t.device, "d2")
        }
    }
    assert.deepEqual([...seen].sort(), Object.keys(KINDS).sort())
})

test("a short soak: every invariant holds, and it was no idle run", async () => {
    const fired: Record<string, number> = {}
    for (const seed of [101, 102, 103]) {
        const outcome = await runJob({ seed, hours: 0.5, devices: 3 })
        const { finding } = outcome
        assert.equal(
            finding && `${finding.invariant}: ${finding.what}`,
            undefined,
        )
        assert.ok(outcome.stats.losses > 5, JSON.stringify(outcome.stats))
        assert.ok(outcome.stats.deliveries > 20, JSON.stringify(outcome.stats))
        for (const name of Object.keys(outcome.fired)) fired[name] = 1
    }
    const kinds = Object.keys(fired).length
    assert.ok(kinds > Object.keys(KINDS).length / 2, `${kinds} kinds fired`)
})

test("the same seed gives the same run to the byte, another seed another", async () => {
    const job = { seed: 5, hours: 0.05, devices: 3 }
    const first = await runJob(job)
    assert.equal((await runJob(job)).digest, first.digest)
    assert.notEqual((await runJob({ ...job, seed: 6 })).digest, first.digest)
})

test("--json: what was done, and exit code 0", async () => {
    const { code, out } = await soak(
        "--seeds 2 --hours 0.05 --devices 1 --json",
    )
    const result = JSON.parse(out)
    assert.deepEqual(Object.keys(result), [
        "seeds",
        "deviceSeconds",
        "wallSeconds",
        "faults",
        "failures",
    ])
    assert.equal(result.seeds, 2)
    assert.ok(result.deviceSeconds >= 360)
    assert.deepEqual(result.failures, [])
    assert.equal(code, 0)
})

const BAD = "--hours 1 --devices 1 --program test/bytecode/soak-bad.ts"

test("a firmware with a mistake: seed, invariant, last events, a replay that fails alike, and one trouble that is enough", async () => {
    const found = await soak(`--seed 3 ${BAD} --shrink`)
    assert.equal(found.code, 1)
    assert.match(found.out, /seed 3: "line" did not hold for d1/)
    assert.match(found.out, /a retry now that nobody asked for/)
    const [all, ...fewer] = found.out.match(/(?<=replay: npm run soak -- ).+/g)!
    assert.match(found.out, /1 troubles?:/)
    assert.match(fewer.at(-1)!, /--only \d+( |$)/)
    const again = await soak(`${all} --json`)
    assert.equal(again.code, 1)
    assert.deepEqual(JSON.parse(again.out).failures, [
        { seed: 3, invariant: "line", replay: `npm run soak -- ${all}` },
    ])
})

test("Ctrl-C prints what is known so far", async () => {
    const { code, out } = await soak(
        "--seeds 500 --hours 24 --devices 1 --jobs 1",
        4000,
    )
    assert.equal(code, 130)
    assert.match(out, /^(\d+ seeds, |stopped before a seed was done)/)
})

test("a flag that can't be used is named with what is allowed, exit code 2", () => {
    for (const [flags, allowed] of [
        ["--hours x", "0.01 to 1000"],
        ["--seeds 0", "1 to 100000"],
        ["--only 1,x", "numbers with commas"],
        ["--program none.ts", "a file of this project"],
        ["--what", "unknown option"],
    ]) {
        let said = ""
        const code = readOptions(flags.split(" "), text => (said += text))
        assert.equal(code, 2, flags)
        assert.ok(said.includes(allowed), said)
    }
})
