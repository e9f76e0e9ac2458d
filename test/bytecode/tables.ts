// Runs every table of cases as bytecode: one line `#... {"ok":true,"name":...}` for each case, then
// the number of cases. The host's side is test/tables.test.ts.
import * as ds from "@devicescript/core"
import type { Case } from "../cases"
import { cases as backoff } from "../core/backoff.cases"
import { cases as int } from "../core/int.cases"
import { cases as line } from "../core/line.cases"
import { cases as random } from "../core/random.cases"
import { cases as verdict } from "../core/verdict.cases"

async function run(table: Case[]) {
    for (const c of table) {
        let error = ""
        try {
            c.run()
        } catch (e) {
            error = (e as Error).message + ""
        }
        console.data(JSON.stringify({ name: c.name, error }) as any)
        await ds.sleep(1)
    }
}

await run(int())
await run(random())
await run(backoff())
await run(verdict())
await run(line())
console.data(JSON.stringify({ done: true }) as any)
