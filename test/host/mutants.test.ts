// A way to break the firmware whose text is gone from its file breaks nothing: `npm run mutants` would say so late.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import { MUTANTS } from "../../host/mutants/list"
import { PROJECT } from "../../host/vm/program"

test("each mutant finds the text that it changes, once", () => {
    const lost = MUTANTS.filter(
        ({ file, from }) =>
            readFileSync(join(PROJECT, file), "utf8").split(from).length !== 2,
    )
    assert.deepEqual(
        lost.map(m => m.name),
        [],
    )
})
