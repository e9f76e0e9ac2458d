// Runs the table of repeats.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./repeats.cases"

runCases(cases())
