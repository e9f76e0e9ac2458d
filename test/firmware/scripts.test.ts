// One script, two judges: in the lab, and before a real mosquitto on real time.
import assert from "node:assert/strict"
import { after, before, describe, test } from "node:test"
import { noMosquitto } from "../mosquitto"
import { QUICK, SCRIPTS, type Script } from "./scripts"
import {
    COMPLAINT,
    labStage,
    MosquittoTheatre,
    type Stage,
    type StageSpec,
} from "./stages"

const specOf = (script: Script): StageSpec => ({
    ...script,
    settings: { ...QUICK, ...script.settings },
})

/** Plays a script, and checks what always holds. */
async function play(script: Script, stage: Stage) {
    try {
        await script.run(stage, stage.devices[0])
        assert.deepEqual(stage.panics(), [], "panics")
        assert.deepEqual(stage.complaints(), [], "complaints")
        for (const device of stage.devices) {
            assert.equal(device.said("boot").length, 1, "starts")
            for (const { delayMs, lane } of device.said("retry"))
                if (lane !== "slow")
                    assert.ok(delayMs >= 1 && delayMs <= QUICK.OVERLOAD_CAP)
        }
    } finally {
        await stage.close()
    }
}

describe("scripts in the lab", () => {
    for (const script of SCRIPTS)
        test(script.name, async () =>
            play(script, await labStage(specOf(script))),
        )
})

describe("the same scripts before mosquitto", { skip: noMosquitto }, () => {
    const theatre = new MosquittoTheatre()
    before(() => theatre.open())
    after(() => theatre.close())

    // At once: most of a script is waiting.
    describe("played", { concurrency: SCRIPTS.length }, () => {
        for (const script of SCRIPTS)
            test(script.name, async () =>
                play(script, await theatre.stage(specOf(script))),
            )
    })

    test("mosquitto had no complaint, of unnamed clients either", () => {
        assert.deepEqual(
            theatre.log().filter(line => COMPLAINT.test(line)),
            [],
        )
    })
})
