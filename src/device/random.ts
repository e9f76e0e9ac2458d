// The device's random source: seeded from hardware and from who the device is, because
// `Math.random()` starts from a constant in the simulator.
import * as ds from "@devicescript/core"
import { seededRandom, type Random } from "../core/random"

type RandomBuffer = Buffer & { fillRandom(): RandomBuffer }

/** A generator of its own for each caller; no two devices share a sequence. */
export function deviceRandom(): Random {
    const entropy = Buffer.alloc(8) as RandomBuffer
    entropy.fillRandom()
    return seededRandom(entropy, ds.deviceIdentifier("self"))
}
