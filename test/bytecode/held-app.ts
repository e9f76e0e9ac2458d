// A light switch that works during a hold, and ends it after half a minute.
import * as ds from "@devicescript/core"
import { limitRestarts } from "../../src/index"

await limitRestarts({
    version: "1",
    onHeld: async limit => {
        console.log("held")
        for (let i = 0; i < 30; ++i) {
            await ds.sleep(1000)
            console.log("the switch works")
        }
        limit.clearHold()
    },
})
console.log("online")
while (true) await ds.sleep(1000)
