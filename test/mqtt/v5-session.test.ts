// Runs the table of v5-session.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./v5-session.cases"

runCases(cases())
