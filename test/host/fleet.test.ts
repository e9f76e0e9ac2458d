// The fleet simulator: its parts, what is claimed of the policies (the short list; `npm run fleet -- grid` has the
// long one), and the commands as a user meets them.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { parseEnv } from "node:util"
import { defaultPolicy } from "../../src/core/policy"
import { readPolicy } from "../../src/core/policy-settings"
import { Sfc32 } from "../../src/core/random"
import { SimBroker } from "../../host/fleet/broker"
import { Calendar } from "../../host/fleet/calendar"
import {
    adaptiveClaims,
    fittedClaims,
    play,
    type Claim,
} from "../../host/fleet/claims"
import { planTool } from "../../host/fleet/cmd-plan"
import { runTool } from "../../host/fleet/cmd-run"
import { preset, presetNames } from "../../host/fleet/presets"
import { rowResult, type RowStrategy } from "../../host/fleet/row"
import { FleetSim, type Result, type Scenario } from "../../host/fleet/sim"
import { FakeIo } from "./fleet-io"

/** An outage of 60 s of 1,000 devices and 100 connections/s, but for `changes`. */
function play1(
    name: string,
    changes: Partial<Scenario> = {},
    patienceMs = 10_000,
): Result {
    const scenario: Scenario = {
        ...{ devices: 1000, rate: 100, backlogS: 20, broker: "queue" },
        ...{ outageS: 60, silent: false, powerOn: false, seed: 1 },
        ...{ limitS: 7200 },
        ...changes,
    }
    const { devices, rate } = scenario
    const fleet = { devices, rate, patienceMs, margin: 1.25 }
    const sim = new FleetSim(scenario, preset(name, fleet)!)
    while (sim.run(1e6));
    return sim.result()
}

describe("the calendar", () => {
    test("gives back every event once, in the order of time, near and far", () => {
        const random = new Sfc32(1, 2, 3, 4)
        const calendar = new Calendar(1000, random)
        const due = Array.from({ length: 1000 }, (_, i) =>
            i % 10 ? (random.next() >>> 0) % 60_000 : 2 ** 21 * (i % 7) + i,
        )
        due.forEach((atMs, i) => calendar.add(i, atMs))
        const seen = new Set<number>()
        let last = 0
        for (;;) {
            const i = calendar.take(1e9)
            if (i < 0) break
            assert.equal(calendar.time, due[i])
            assert.ok(calendar.time >= last)
            last = calendar.time
            seen.add(i)
        }
        assert.equal(seen.size, 1000)
        assert.equal(calendar.size, 0)
    })

    test("takes nothing that is due later, and moves what it is told to", () => {
        const calendar = new Calendar(3, new Sfc32(1, 2, 3, 4))
        for (const i of [0, 1, 2]) calendar.add(i, 100 * (i + 1))
        assert.equal(calendar.take(50), -1)
        calendar.moveAll(i => (i === 0 ? 1000 : undefined))
        const order = [1, 2, 0].map(() => calendar.take(1e6))
        assert.deepEqual(order, [1, 2, 0])
    })
})

describe("the brokers", () => {
    test("queue: in order, C a second, and nothing beyond the backlog", () => {
        const broker = new SimBroker({ kind: "queue", rate: 10, backlogS: 1 })
        const answers = Array.from({ length: 12 }, () => broker.arrive(0))
        assert.deepEqual(answers.slice(0, 3), [100, 200, 300])
        assert.equal(answers[10], 1100)
        assert.equal(answers[11], "dropped")
        assert.equal(broker.arrive(500), 700)
    })

    test("busy: says so at once when 2 s are queued", () => {
        const broker = new SimBroker({ kind: "busy", rate: 10, backlogS: 20 })
        const answers = Array.from({ length: 22 }, () => broker.arrive(0))
        assert.deepEqual(answers.slice(20), [2100, "busy"])
    })

    test("fragile: dies when more than 5 s are queued for 1 s, and starts with an empty queue", () => {
        const broker = new SimBroker({ kind: "fragile", rate: 1, backlogS: 99 })
        for (let i = 0; i < 8; ++i) broker.arrive(0)
        assert.equal(broker.dies(0), false)
        assert.equal(broker.dies(999), false)
        assert.equal(broker.dies(1000), true)
        assert.equal(broker.deaths, 1)
        assert.equal(broker.arrive(11_000), 1000)
    })
})

describe("what is claimed of the policies", () => {
    const holds = (claim: Claim) => {
        const r = play(claim)
        assert.ok(
            claim.kept(r),
            `${claim.name}: p99 ${r.p99} s, ${r.ratio} N/C, wasted ${r.wasted}, deaths ${r.brokerDeaths}; ${claim.promised}`,
        )
    }
    test("fitted to an exact C: within 1.15 N/C after a restart and a power cut, nothing wasted, no death", () =>
        fittedClaims(
            [
                { devices: 1000, rate: 10 },
                { devices: 100_000, rate: 500 },
            ],
            1.05,
            1.15,
            ["queue", "fragile"],
            [60],
        ).forEach(holds))
    test("fitted with a margin of 1.25: within 1.4 N/C in every outage and at every broker", () =>
        fittedClaims(
            [{ devices: 4000, rate: 20 }],
            1.25,
            1.4,
            ["queue", "busy", "fragile"],
            [5, 60, 600],
        ).forEach(holds))
    test("adaptive, knowing nothing: within 3 N/C or 100 s, in every outage, all are back", () =>
        adaptiveClaims([10, 60, 300], 10).forEach(holds))

    test("a fleet too big for a cap of 60 s never comes back with any strategy; adaptive brings it back", () => {
        const big = { devices: 6000, rate: 6, limitS: 7200 }
        for (const name of ["equal-60s", "full-60s", "decorrelated-60s"])
            assert.equal(play1(name, big).p99, Infinity, name)
        assert.ok(play1("adaptive", big).ratio < 2)
    })

    test("fast first costs nothing in an outage of 5 s, and a herd in one of 1 s", () => {
        const io = new FakeIo()
        void planTool.run(["--devices", "20000", "--rate", "100", "--json"], io)
        const plan = JSON.parse(io.printed)
        assert.ok(plan.fastFirst.predicted.peakPerSecond < 200)
        assert.equal(plan.fastFirst.predicted.wasted, 0)
        assert.ok(plan.fastFirst.quickRestart.peakPerSecond > 10_000)
        assert.ok(plan.quickRestart.peakPerSecond < 200)
    })
})

describe("the presets", () => {
    test("the fixed intervals, for a small fleet, take what their intervals are", () => {
        assert.ok(play1("mqtt.js", { rate: 1e5 }).last < 2)
        assert.ok(play1("esp-mqtt", { rate: 1e5 }).last <= 11)
        assert.ok(play1("stock", { rate: 1e5 }).last <= 51)
    })

    test("a client that gives up does not come back, however long one waits", () => {
        const r = play1("aws-io", { outageS: 600 })
        assert.equal(r.recovered, 0)
        assert.ok(r.attemptsPerDevice <= 11)
    })

    /** The waits of one device through failures without an end. */
    const waits = (name: string, count: number, attemptMs = 20) => {
        const fleet = {
            devices: 1,
            rate: 1,
            patienceMs: 10_000,
            margin: 1.25,
        }
        const policy = preset(name, fleet)!(1, new Sfc32(1, 2, 3, 4))
        const list = [policy.lost(0)]
        while (list.length < count)
            list.push(policy.failed(0, "refused", attemptMs))
        return list
    }
    const exact: [string, number[]][] = [
        ["mqtt.js", [1, 1, 1]],
        ["paho-python", [1, 2, 4, 8, 16, 32, 64, 120, 120]],
        ["esp-mqtt", [10, 10]],
        ["aws-311", [1, 2, 4, 8, 16, 32, 64, 128, 128]],
        ["libmosquitto", [1, 4, 9, 16, 25, 30, 30]],
        ["esphome", [0, 5, 5]],
        ["tasmota", [10, 20, 30]],
        ["stock", [50, 50]],
        ["none-60s", [1, 2, 4, 8, 16, 32, 60, 60]],
    ]
    for (const [name, seconds] of exact)
        test(`${name} waits ${seconds.join(", ")} s`, () =>
            assert.deepEqual(
                waits(name, seconds.length),
                seconds.map(s => s * 1000),
            ))
    const ranges: [string, [number, number][]][] = [
        [
            "paho-c",
            [
                [0, 1],
                [1, 2],
                [3, 4],
                [6, 9],
            ],
        ],
        [
            "hivemq",
            [
                [0.75, 1.25],
                [1.5, 2.5],
                [3, 5],
            ],
        ],
        [
            "aws-v5",
            [
                [0, 1],
                [0, 2],
                [0, 4],
            ],
        ],
        [
            "mosquitto-bridge",
            [
                [5, 5],
                [5, 15],
                [5, 30],
            ],
        ],
        [
            "azure-c",
            [
                [0, 0],
                [1, 1.05],
                [2, 2.1],
            ],
        ],
        [
            "grpc",
            [
                [0.8, 1.2],
                [1.26, 1.92],
            ],
        ],
        [
            "p-retry",
            [
                [1, 2],
                [2, 4],
                [4, 8],
            ],
        ],
        [
            "cockatiel",
            [
                [0, 0.181],
                [0, 0.4],
            ],
        ],
        [
            "freertos",
            [
                [0, 0.5],
                [0, 1],
                [0, 2],
                [0, 4],
                [0, 5],
            ],
        ],
    ]
    for (const [name, bounds] of ranges)
        test(`${name} waits within ${bounds.map(b => b.join("..")).join(", ")} s`, () =>
            waits(name, bounds.length).forEach((ms, i) => {
                const [low, high] = bounds[i].map(s => s * 1000)
                assert.ok(ms >= low && ms <= high, `wait ${i}: ${ms} ms`)
            }))
    test("grpc and azure-embedded measure from the attempt's start: a slow one is followed at once", () => {
        assert.equal(waits("grpc", 2, 10_000)[1], 0)
        assert.equal(waits("azure-embedded", 2, 10_000)[1], 0)
    })
})

test("row: the calls of AWS's table, within 5 %, over 100 seeded runs", () => {
    const table: Record<number, Record<string, number>> = {
        50: {
            none: 689,
            exponential: 623,
            decorrelated: 373,
            equal: 345,
            full: 331,
        },
        100: {
            none: 2420,
            exponential: 1865,
            decorrelated: 997,
            equal: 812,
            full: 795,
        },
        190: {
            none: 8007,
            exponential: 5173,
            decorrelated: 2432,
            equal: 1759,
            full: 1771,
        },
    }
    for (const [clients, row] of Object.entries(table))
        for (const [strategy, calls] of Object.entries(row)) {
            const r = rowResult(strategy as RowStrategy, Number(clients), 1)
            const off = Math.abs(r.calls / calls - 1)
            assert.ok(off < 0.05, `${strategy} ${clients}: ${r.calls}`)
        }
})

describe("npm run fleet -- run", () => {
    const run = async (flags: string) => {
        const io = new FakeIo()
        const code = await runTool.run(flags.split(" ").filter(Boolean), io)
        return { code, io }
    }

    test("--json has every policy, and the same seed the same figures", async () => {
        const flags = "--devices 50 --rate 10 --policy all --watch 600 --json"
        const one = await run(flags)
        const two = await run(flags)
        assert.equal(one.code, 0)
        assert.equal(one.io.printed, two.io.printed)
        const json = JSON.parse(one.io.printed)
        assert.equal(json.limitSeconds, 5)
        assert.equal(json.seed, 1)
        assert.deepEqual(
            json.policies.map((p: any) => p.name),
            presetNames(),
        )
        assert.deepEqual(Object.keys(json.policies[0]), [
            ...["name", "recovered", "p50", "p99", "last", "ratio"],
            ...["attemptsPerDevice", "wasted", "peakPerSecond", "brokerDeaths"],
        ])
        const other = await run(flags + " --seed 2")
        assert.notEqual(other.io.printed, one.io.printed)
    })

    test("never is null", async () => {
        const { io } = await run(
            "--devices 100 --rate 1 --policy stock --watch 1 --json",
        )
        const [stock] = JSON.parse(io.printed).policies
        assert.deepEqual([stock.p50, stock.p99, stock.last], [null, null, null])
    })

    test("Ctrl-C prints what is known: the finished policies and the one under way", async () => {
        const io = new FakeIo()
        io.stopAfter = 30
        const code = await runTool.run(["--json", "--devices", "200"], io)
        assert.equal(code, 130)
        const { policies, interrupted } = JSON.parse(io.printed)
        assert.equal(interrupted, true)
        assert.ok(policies.length > 0)
        assert.ok(policies.length < presetNames().length)
    })

    const bad: [string, RegExp][] = [
        ["--devices 0", /--devices.*'0'.*1 to 5000000/],
        ["--devices 1.5", /--devices.*'1.5'/],
        ["--rate -1", /--rate.*'-1'.*0\.01 to 1000000/],
        ["--backlog x", /--backlog.*'x'/],
        ["--patience 0", /--patience.*'0'.*0\.1 to 600/],
        ["--outage 1e9", /--outage.*'1e9'.*0 to 86400/],
        ["--broker slow", /--broker.*'slow'.*queue, busy, fragile, row/],
        ["--policy adaptive,nix", /--policy.*nix is unknown.*adaptive, fitted/],
        ["--policy full-60s --broker row", /--policy.*unknown.*decorrelated/],
        ["--report a.txt", /--report.*'a.txt'.*\.html/],
        ["--report /nowhere/a.html", /--report.*folder that exists/],
        ["--nonsense", /unknown option '--nonsense'/],
        ["extra", /too many arguments/],
    ]
    for (const [flags, complaint] of bad)
        test(`${flags} is refused`, async () => {
            const { code, io } = await run(flags)
            assert.equal(code, 2)
            assert.match(io.complaints, complaint)
            assert.equal(io.printed, "")
        })
})

describe("npm run fleet -- plan", () => {
    const plan = async (flags: string) => {
        const io = new FakeIo()
        const code = await planTool.run(flags.split(" "), io)
        return { code, io }
    }

    test("its settings make the policy that it predicts for", async () => {
        const { io } = await plan("--devices 10000 --rate 100 --json")
        const { env, policy, predicted, limitSeconds } = JSON.parse(io.printed)
        const lines = Object.entries(env).map(([k, v]) => `${k}=${v}`)
        const settings = parseEnv(lines.join("\n"))
        const complaints: unknown[] = []
        const read = readPolicy({
            raw: (key: string) =>
                /^\d+$/.test(settings[key] ?? "x")
                    ? settings[key]
                    : settings[key] && JSON.stringify(settings[key]),
            complain: (line: unknown) => complaints.push(line),
        })
        assert.deepEqual(read, { ...defaultPolicy(), spreadMs: 125_000 })
        assert.deepEqual(complaints, [])
        assert.equal(policy.spreadMs, 125_000)
        assert.equal(limitSeconds, 100)
        assert.ok(predicted.p99 > 100 && predicted.p99 < 140)
        assert.ok(predicted.peakPerSecond < 200)
    })

    test("a fleet that no spread fits is told so", async () => {
        const { io } = await plan("--devices 20000 --rate 1")
        assert.match(io.printed, /warning: a spread of 25000 s/)
    })

    test("without a rate there is no plan", async () => {
        const { code, io } = await plan("--devices 10")
        assert.equal(code, 2)
        assert.match(io.complaints, /--rate/)
    })
})
