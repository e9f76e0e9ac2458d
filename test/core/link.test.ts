// Runs the table of link.cases.ts under Node.
import { runCases } from "../node-cases"
import { cases } from "./link.cases"

runCases(cases())
