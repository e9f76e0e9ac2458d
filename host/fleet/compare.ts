// The same outage under one policy after the other, with progress, until done or told to stop.
import { setImmediate } from "node:timers/promises"
import type { PolicyMaker } from "./policy"
import { FleetSim, type Result, type Scenario } from "./sim"
import type { Io } from "./tool"

export interface Contender {
    name: string
    make: PolicyMaker
}

export interface Comparison {
    scenario: Scenario
    /** One for each contender that was begun; the last may be unfinished when interrupted. */
    results: Result[]
    interrupted: boolean
}

/** Simulated time between two looks at Ctrl-C. */
const STEP_MS = 1000

export async function compare(
    scenario: Scenario,
    contenders: Contender[],
    io: Io,
): Promise<Comparison> {
    const results: Result[] = []
    const startMs = performance.now()
    const endMs = (scenario.limitS + outageOf(scenario)) * 1000
    for (const [i, { name, make }] of contenders.entries()) {
        const sim = new FleetSim(scenario, make)
        while (sim.run(STEP_MS)) {
            await setImmediate()
            if (io.stopped()) break
            const part = Math.max(
                sim.servedDevices / scenario.devices,
                sim.timeMs / endMs,
            )
            const done = (i + part) / contenders.length
            const leftS =
                ((performance.now() - startMs) * (1 / done - 1)) / 1000
            io.status(
                `${name} (${i + 1} of ${contenders.length}): ${Math.round(sim.timeMs / 1000)} s simulated, ` +
                    `${sim.servedDevices} of ${scenario.devices} back; about ${Math.ceil(leftS)} s left`,
            )
        }
        results.push(sim.result())
        if (io.stopped()) return { scenario, results, interrupted: true }
    }
    return { scenario, results, interrupted: false }
}

function outageOf(scenario: Scenario): number {
    return scenario.powerOn ? 0 : scenario.outageS
}
