// `npm run fleet -- real`: the outage with real firmware, beside the simulation that draws the same numbers. Where they
// differ by more than 2 %, one of them is wrong.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { realTool } from "../../host/fleet/cmd-real"
import { mirrored } from "../../host/fleet/mirror"
import { adaptive, fitted } from "../../host/fleet/presets"
import { RealFleet } from "../../host/fleet/real"
import { MosquittoFleet } from "../../host/fleet/real-mosquitto"
import { FleetSim, type Result, type Scenario } from "../../host/fleet/sim"
import { noMosquitto } from "../mosquitto"

const SCENARIO: Scenario = {
    devices: 30,
    rate: 3,
    backlogS: 20,
    broker: "queue",
    outageS: 20,
    silent: false,
    powerOn: false,
    seed: 1,
    limitS: 3600,
}

interface Variant {
    what: string
    fits?: boolean
    scenario?: Partial<Scenario>
}

/** The same outage, real and simulated. */
async function both({ fits, scenario: more }: Variant) {
    const scenario = { ...SCENARIO, ...more }
    const { devices, rate } = scenario
    const fleet = { devices, rate, patienceMs: 5000, margin: 1.25 }
    const policy = fits ? fitted(fleet) : adaptive(fleet)
    const fleetOf = await RealFleet.make("x", scenario, policy)
    for (const step of fleetOf.start()) void step
    for (const step of fleetOf.run()) void step
    const real = fleetOf.result()
    fleetOf.close()
    assert.equal(fleetOf.panics, 0)
    const sim = new FleetSim(scenario, mirrored("x", policy, scenario))
    while (sim.run(1000));
    return { real, simulated: sim.result() }
}

/** `slackS`: what a real power-on takes besides. */
function agree(real: Result, simulated: Result, slackS = 0) {
    assert.equal(real.recovered, simulated.recovered)
    for (const key of ["p50", "p99", "last", "attemptsPerDevice"] as const) {
        const off = Math.abs(real[key] - simulated[key])
        const allowed = 0.02 * simulated[key] + slackS
        assert.ok(
            off <= allowed,
            `${key}: real ${real[key]}, simulated ${simulated[key]}`,
        )
    }
}

const VARIANTS: Variant[] = [
    { what: "adaptive" },
    { what: "adaptive, silent", scenario: { silent: true } },
    { what: "adaptive, a short backlog", scenario: { backlogS: 0.5 } },
    { what: "adaptive, a broker that says busy", scenario: { broker: "busy" } },
    { what: "adaptive, no outage to speak of", scenario: { outageS: 0.5 } },
    { what: "fitted", fits: true },
    {
        what: "fitted, a fragile broker",
        fits: true,
        scenario: { broker: "fragile" },
    },
]

describe("real firmware and the simulation, from the same draws", () => {
    for (const variant of VARIANTS)
        test(`${variant.what}: within 2 %`, async () => {
            const { real, simulated } = await both(variant)
            agree(real, simulated)
            assert.equal(real.brokerDeaths, simulated.brokerDeaths)
            assert.equal(real.recovered, SCENARIO.devices)
        })

    test("a power-on: the same but for the start of the runtime", async () => {
        const scenario = { powerOn: true, rate: 8 }
        const { real, simulated } = await both({
            what: "",
            fits: true,
            scenario,
        })
        agree(real, simulated, 1.7)
        assert.ok(real.p50 > simulated.p50)
    })
})

test(
    "a real mosquitto behind a proxy: all are back, and no faster than it admits",
    { skip: noMosquitto },
    async () => {
        const scenario = { ...SCENARIO, devices: 20, rate: 8, outageS: 2 }
        const fleet = { ...scenario, patienceMs: 10_000, margin: 1.25 }
        const policy = { ...adaptive(fleet), stableMs: 500 }
        const real = await MosquittoFleet.make("adaptive", scenario, policy)
        try {
            for await (const step of real.run()) void step
            const { recovered, last, attemptsPerDevice } = real.result()
            assert.equal(recovered, 20)
            assert.ok(last >= 19 / 8 - 0.2, `${last} s`)
            assert.ok(attemptsPerDevice >= 1.5, `${attemptsPerDevice}`)
            assert.equal(real.panics, 0)
        } finally {
            await real.close()
        }
    },
)

/** Runs the tool; what it printed. */
async function real(args: string[], stopped = () => false) {
    let out = ""
    let err = ""
    const code = await realTool.run(args, {
        out: text => (out += text),
        err: text => (err += text),
        status() {},
        stopped,
    })
    return { code, out, err }
}

describe("the command", () => {
    const SMALL = ["--devices", "5", "--rate", "5", "--outage", "5"]

    test("--json: as run, and the simulation beside it", async () => {
        const { code, out } = await real([...SMALL, "--json", "--seed", "3"])
        assert.equal(code, 0)
        const json = JSON.parse(out)
        assert.equal(json.limitSeconds, 1)
        assert.equal(json.seed, 3)
        assert.deepEqual(
            json.policies.map((p: Result) => [p.name, p.recovered]),
            [
                ["adaptive", 5],
                ["fitted", 5],
            ],
        )
        assert.deepEqual(
            Object.keys(json.policies[0]),
            Object.keys(json.simulated[0]),
        )
    })

    test("Ctrl-C: what is known, exit code 130", async () => {
        let looks = 0
        const { code, out } = await real(SMALL, () => ++looks > 20)
        assert.equal(code, 130)
        assert.match(out, /interrupted/)
    })

    test("bad flags name what is allowed", async () => {
        for (const [flag, value, allowed] of [
            ["--devices", "2001", "1 to 2000"],
            ["--broker", "x", "queue, busy, fragile, mosquitto"],
            ["--policy", "esp-mqtt", "adaptive, fitted"],
        ]) {
            const { code, err } = await real([flag, value])
            assert.equal(code, 2)
            assert.ok(err.includes(flag) && err.includes(allowed), err)
        }
    })
})
