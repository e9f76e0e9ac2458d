// Runs tables of cases on the device: one line of JSON for each case, `{"done":true}` at the end.
// The host's side is test/tables.test.ts.
import * as ds from "@devicescript/core"
import type { Case } from "../cases"

/** Runs a table; a turn for the runtime after each case. */
export async function runTable(table: Case[]) {
    for (const c of table) {
        let error = ""
        try {
            c.run()
        } catch (e) {
            error = (e as Error).message + ""
        }
        console.data(
            JSON.stringify({ name: c.name.slice(0, 80), error }) as any,
        )
        await ds.sleep(1)
    }
}

/** Says that all tables have run. */
export function finish() {
    console.data(JSON.stringify({ done: true }) as any)
}
