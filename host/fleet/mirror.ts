// The simulation's end of the comparison with real devices: every device draws the very numbers that the
// VM of that number draws, because it has the same id and the same entropy.
import type { Policy } from "../../src/core/policy"
import { seededRandom } from "../../src/core/random"
import { ours, type PolicyMaker } from "./policy"
import type { Scenario } from "./sim"
import { identity } from "./vm-fleet"

/** Our policy with each device's own draws. Before an outage each has drawn the first wait of its power-on. */
export function mirrored(
    name: string,
    policy: Policy,
    { seed, powerOn }: Scenario,
): PolicyMaker {
    const make = ours(name, policy, device => {
        const { id, entropy } = identity(seed, device)
        return seededRandom(Buffer.from(entropy), id)
    })
    return (devices, random) => {
        const fleet = make(devices, random)
        if (!powerOn) for (let i = 0; i < devices; ++i) fleet.started(i)
        return fleet
    }
}
