// Runs the table of write-budget.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./write-budget.cases"

runCases(cases())
