// `npm run bench`: its arithmetic, its comparison with the baseline, its tables, its outage at a real mosquitto,
// and one short run of the whole command.
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { describe, test } from "node:test"
import { connect, type MqttClient } from "mqtt"
import { readOptions } from "../../host/bench"
import { baselineOf, compare } from "../../host/bench/baseline"
import { callsBetween } from "../../host/bench/calls"
import { playOutage, type Herd, type Outage } from "../../host/bench/outage"
import { besides, number, tableText } from "../../host/bench/report"
import { densest, median, quantile, ratioByTurns } from "../../host/bench/stats"
import { PROJECT } from "../../host/vm/program"
import { noMosquitto } from "../mosquitto"

describe("statistics", () => {
    test("median and quantiles are values that were measured; NaN where nothing was", () => {
        assert.equal(median([3, 1, 2]), 2)
        assert.equal(median([4, 1, 2, 3]), 2)
        assert.equal(quantile([1, 2, 3, 4], 1), 4)
        assert.equal(quantile([1, 2, 3, 4], 0), 1)
        const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
        assert.equal(quantile(hundred, 0.99), 99)
        assert.equal(quantile([1, Infinity], 0.99), Infinity)
        assert.ok(Number.isNaN(median([])))
    })

    test("by turns: a machine that is slow for some rounds changes nothing", () => {
        // Half of the cost; in rounds 2 and 3 the machine is ten times as slow.
        assert.equal(
            ratioByTurns([5, 50, 51, 5, 5], [10, 100, 100, 10, 10]),
            0.5,
        )
        // An interrupted last round is left out.
        assert.equal(ratioByTurns([1, 1], [2]), 0.5)
    })

    test("densest counts the fullest span, both ends included", () => {
        assert.equal(densest([], 100), 0)
        assert.equal(densest([0, 100, 200, 300], 100), 2)
        assert.equal(densest([0, 99, 100, 101, 400], 100), 3)
    })
})

test("calls between two looks at the heap; a step in which frames were collected is left out", () => {
    const look = (a: number, b: number) =>
        new Map([
            ["a", a],
            ["b", b],
        ])
    const looks = [look(1, 5), look(3, 5), look(7, 6), look(0, 0), look(3, 1)]
    // Steps of a: 2, 4, collected, 3; of b: 0, 1, collected, 1.
    assert.deepEqual(
        [...callsBetween(looks)],
        [
            ["a", 3],
            ["b", 2 / 3],
        ],
    )
})

describe("the comparison with the baseline", () => {
    const always = () => true
    const comparing = (value: number, kind: "count" | "bytes" | "ratio") =>
        compare({ x: { value, kind } }, { x: 1000 }, always, "RENEW")

    test("a count may not grow at all, bytes by 1 %, a ratio by a quarter", () => {
        for (const [kind, most] of [
            ["count", 1000],
            ["bytes", 1010],
            ["ratio", 1250],
        ] as const) {
            assert.deepEqual(comparing(most, kind), { faults: [], news: [] })
            const [fault] = comparing(most + 1, kind).faults
            assert.ok(fault, `${most + 1} as ${kind}`)
        }
    })

    test("it says what grew, from what to what, and what is allowed", () => {
        assert.deepEqual(comparing(1100, "bytes").faults, [
            "x grew from 1000 to 1100 (+10.0 %); allowed: 1010, which RENEW changes",
        ])
        const { faults } = compare(
            { x: { value: 1, kind: "count" } },
            { x: 0 },
            always,
            "RENEW",
        )
        assert.match(faults[0], /from 0 to 1 \(from nothing\); allowed: 0/)
        assert.equal(comparing(NaN, "ratio").faults.length, 1)
    })

    test("what has shrunk is no fault, but news: the baseline should follow", () => {
        const { faults, news } = comparing(900, "bytes")
        assert.deepEqual(faults, [])
        assert.match(news[0], /down to 900 \(-10\.0 %\); RENEW keeps it/)
        assert.deepEqual(comparing(999, "bytes").news, [])
    })

    test("what the baseline lacks, and what was due and not measured, are faults", () => {
        const found = { y: { value: 1, kind: "count" as const } }
        const due = compare(found, { x: 1 }, always, "RENEW")
        assert.equal(due.faults.length, 2)
        assert.match(due.faults[0], /^y is 1: not in .*baseline\.json; RENEW/)
        assert.match(due.faults[1], /^x is in .*was not measured/)
        const other = compare({}, { x: 1 }, () => false, "RENEW")
        assert.deepEqual(other.faults, [])
    })
})

test("tables: ratios first, columns aligned, a dash where another has nothing of the kind", () => {
    const table = besides("Costs", [
        { what: "a", unit: "us", ours: 5, others: { p: 10, q: NaN } },
        {
            what: "bee",
            unit: "B",
            ours: 1234,
            others: { p: 100, q: 0.5 },
            ratios: { p: 12, q: 2468 },
        },
    ])
    assert.equal(
        tableText(table),
        [
            "Costs",
            "",
            "|     | ours / p | ours / q | ours |   p |    q |     |",
            "| --- | -------: | -------: | ---: | --: | ---: | --: |",
            "| a   |     0.50 |        - |    5 |  10 |    - |  us |",
            "| bee |    12.00 |  2468.00 | 1234 | 100 | 0.50 |   B |",
        ].join("\n"),
    )
    assert.deepEqual(
        [12.345, 1234.5, 0.5, Infinity].map(n => number(n)),
        ["12.3", "1235", "0.50", "never"],
    )
})

/** Clients of MQTT.js in this process: all at once, and one that has no patience. */
class SmallHerd implements Herd {
    readonly gone = undefined
    private readonly clients: MqttClient[] = []

    async start(port: number, { devices }: Outage) {
        for (let i = 0; i < devices; ++i)
            this.clients.push(
                connect(`mqtt://127.0.0.1:${port}`, {
                    clientId: `c${i}`,
                    reconnectPeriod: 300,
                    // The broker takes 250 ms for each.
                    connectTimeout: i ? 10_000 : 200,
                }).on("error", () => {}),
            )
    }

    async stop() {
        for (const client of this.clients) client.end(true)
    }
}

test(
    "an outage: nobody is back before it is admitted, everybody is counted, a client without patience wastes connections",
    { skip: noMosquitto },
    async () => {
        const outage: Outage = {
            devices: 6,
            rate: 4,
            backlog: 100,
            calmS: 0.1,
            outageS: 0.4,
            limitS: 60,
            seed: 1,
        }
        const looks: string[] = []
        // One is never back: a second after the others nothing more is to be seen.
        const outcome = await playOutage(
            outage,
            new SmallHerd(),
            async text => {
                looks.push(text)
                return (
                    !looks.includes("6 of 6 connected") ||
                    looks.slice(-10).some(t => t !== "5 of 6 connected")
                )
            },
        )
        assert.ok(outcome)
        assert.equal(outcome.recovered, 5, "all but the one without patience")
        assert.equal(outcome.last, Infinity)
        assert.ok(outcome.p50 >= 0.5, `half of them after ${outcome.p50} s`)
        assert.ok(outcome.attempts >= 7)
        assert.ok(outcome.peakPer100Ms >= 2)
        assert.ok(outcome.wasted >= 2, "it is served in vain each time")
    },
)

test(
    "an outage that is interrupted answers with nothing and leaves nothing behind",
    { skip: noMosquitto },
    async () => {
        const herd = new SmallHerd()
        let stopped = false
        const stop = herd.stop.bind(herd)
        herd.stop = async () => {
            stopped = true
            await stop()
        }
        const outage: Outage = {
            devices: 2,
            rate: 1,
            backlog: 1,
            calmS: 60,
            outageS: 60,
            limitS: 60,
            seed: 1,
        }
        assert.equal(
            await playOutage(outage, herd, async () => false),
            undefined,
        )
        assert.ok(stopped)
    },
)

test("bench vm --short --check: beside the stock client, nothing has grown; one socket write a publish", () => {
    const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [
            "--import",
            "tsx",
            join(PROJECT, "host/bench.ts"),
            ...["vm", "--short", "--check", "--json"],
        ],
        { cwd: PROJECT, encoding: "utf8" },
    )
    assert.equal(status, 0, stderr)
    const { vm, core } = JSON.parse(stdout)
    assert.equal(core, undefined, "only the parts that were named")
    const figure = (what: string) =>
        vm.figures.find((f: { what: string }) => f.what === what)
    assert.equal(figure("publish QoS 0: socket writes").ours, 1)
    assert.equal(figure("publish QoS 0: socket writes").others.stock, 2)
    assert.equal(figure("publish QoS 0: bytes on the wire").ours, 45)
    const { ratios } = figure("CPU per QoS 0 publish of 32 B")
    assert.ok(ratios.stock < 0.7, `${ratios.stock} of the stock client's CPU`)
})

test("bench takes all parts or those named, says what is wrong with a part and exits with 2; --help lists them", () => {
    let said = ""
    const say = (text: string) => {
        said += text
    }
    const read = (...args: string[]) =>
        readOptions(args, {
            out: say,
            err: say,
            status() {},
            stopped: () => false,
        })
    const partsOf = (options: ReturnType<typeof read>) => {
        assert.ok(typeof options === "object")
        return options.parts.map(part => part.name)
    }
    const all = ["vm", "core", "fleet", "lab"]
    assert.deepEqual(partsOf(read()), all)
    assert.deepEqual(partsOf(read("lab", "vm", "--short")), ["vm", "lab"])
    assert.equal(read("vn"), 2)
    assert.match(said, /vn.*Allowed: vm, core, fleet, lab/s)
    assert.equal(read("--help"), 0)
    for (const name of [...all, "Exit codes"])
        assert.match(said, new RegExp(name))
})

test("the committed baseline has numbers for both commands", () => {
    for (const section of ["size", "bench"] as const) {
        const numbers = Object.values(baselineOf(section))
        assert.ok(numbers.length > 10, section)
        for (const n of numbers) assert.ok(Number.isFinite(n) && n >= 0)
    }
})
