// Runs the table of v5-rules.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./v5-rules.cases"

runCases(cases())
