// Runs the table of bytes.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./bytes.cases"

runCases(cases())
