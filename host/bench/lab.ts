// The part "lab": how fast the tools themselves are. Device-seconds of the lab for each second of CPU, and attempts of the
// fleet simulator. There is nothing to compare them with but their own past, and that only on one machine.
import { adaptive, fitted } from "../fleet/presets"
import { ours } from "../fleet/policy"
import { FleetSim, type Scenario } from "../fleet/sim"
import { World } from "../lab/world"
import type { Bench, Part } from "./part"
import type { Report } from "./report"

/** A world, its firmware connected and idle for so long. */
interface Idle {
    devices: number
    wifi: boolean
    lazyTurns: boolean
    seconds: number
}

const WORLDS: Idle[] = [
    { devices: 1, wifi: false, lazyTurns: true, seconds: 86_400 },
    { devices: 100, wifi: false, lazyTurns: true, seconds: 1000 },
    { devices: 100, wifi: false, lazyTurns: false, seconds: 150 },
    { devices: 100, wifi: true, lazyTurns: true, seconds: 60 },
    { devices: 100, wifi: true, lazyTurns: false, seconds: 30 },
]

/** With --short, of devices and of time only so much. */
const SHORT = 10

const nameOf = ({ devices, wifi, lazyTurns }: Idle) =>
    `${devices} devices, ${wifi ? "Wi-Fi on a bus" : "no bus"}, ${lazyTurns ? "lazy" : "eager"}`

/** Device-seconds for each second of CPU. */
async function worldRate({ devices, wifi, lazyTurns, seconds }: Idle) {
    const world = new World({ lazyTurns })
    try {
        world.scripted()
        for (let i = 0; i < devices; ++i) {
            const device = await world.device({
                settings: { MQTT_HOST: "broker" },
                wifi,
            })
            device.powerOn()
            if (wifi) device.joinWifi()
        }
        await world.until("connected", 60_000)
        await world.run(10_000)
        const cpuS = await cpuSeconds(() => world.run(seconds * 1000))
        return (devices * seconds) / cpuS
    } finally {
        await world.close()
    }
}

async function cpuSeconds(run: () => void | Promise<void>): Promise<number> {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1e6
}

const OUTAGE: Scenario = {
    devices: 100_000,
    rate: 1000,
    backlogS: 20,
    broker: "queue",
    outageS: 60,
    silent: false,
    powerOn: false,
    seed: 1,
    limitS: 7200,
}

/** Simulated attempts for each second of CPU. */
async function simRate(policy: "adaptive" | "fitted", devices: number) {
    const scenario = { ...OUTAGE, devices, rate: devices / 100 }
    const fleet = { ...scenario, patienceMs: 10_000, margin: 1.25 }
    const made = policy === "adaptive" ? adaptive(fleet) : fitted(fleet)
    let sim: FleetSim | undefined
    const cpuS = await cpuSeconds(() => {
        sim = new FleetSim(scenario, ours(policy, made))
        while (sim.run(60_000));
    })
    return (sim!.result().attemptsPerDevice * devices) / cpuS
}

async function run(bench: Bench): Promise<Report> {
    const rates: { what: string; perSecond: number; unit: string }[] = []
    const steps = WORLDS.length + 2
    for (const world of WORLDS) {
        if (bench.stopped()) break
        await bench.progress(rates.length / steps, nameOf(world))
        const part = bench.short ? SHORT : 1
        const small = {
            ...world,
            devices: Math.ceil(world.devices / part),
            seconds: world.seconds / part,
        }
        rates.push({
            what: `lab: ${nameOf(small)}`,
            perSecond: await worldRate(small),
            unit: "device-seconds",
        })
    }
    for (const policy of ["adaptive", "fitted"] as const) {
        if (bench.stopped()) break
        await bench.progress(rates.length / steps, `fleet, ${policy}`)
        const devices = OUTAGE.devices / (bench.short ? SHORT : 1)
        rates.push({
            what: `fleet simulator: ${devices} devices, ${policy}`,
            perSecond: await simRate(policy, devices),
            unit: "attempts",
        })
    }
    const table = {
        title: "The tools, for each second of CPU",
        head: ["", "a second", ""],
        rows: rates.map(({ what, perSecond, unit }) => [
            what,
            perSecond.toFixed(0),
            unit,
        ]),
        notes: [],
    }
    return { tables: [table], json: { rates }, guards: {} }
}

export const labPart: Part = {
    name: "lab",
    summary: "how fast the lab and the fleet simulator are",
    seconds: short => (short ? 10 : 60),
    run,
}
