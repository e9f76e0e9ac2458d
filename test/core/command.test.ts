// Runs the table of command.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./command.cases"

runCases(cases())
