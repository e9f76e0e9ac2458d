// The board's status light.
import * as ds from "@devicescript/core"

/** Half a period of blinking. */
const BLINK_MS = 500

/** Blinks red as long as `goesOn` says so. On a board without a light nothing comes of it. */
export function blink(goesOn: () => boolean) {
    const control = new ds.Control("control[int:0]")
    const run = async () => {
        while (goesOn()) {
            await control.setStatusLight(255, 0, 0, 0)
            await ds.sleep(BLINK_MS)
            await control.setStatusLight(0, 0, 0, 0)
            await ds.sleep(BLINK_MS)
        }
    }
    run.start()
}
