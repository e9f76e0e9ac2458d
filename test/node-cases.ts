// Runs a table of cases under Node's test runner.
import { test } from "node:test"
import "../host/device-methods"
import type { Case } from "./cases"

/** Registers one test for each case. */
export function runCases(cases: Case[]) {
    for (const c of cases) test(c.name, () => c.run())
}
