// The tables of core, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as backoff } from "../core/backoff.cases"
import { cases as int } from "../core/int.cases"
import { cases as line } from "../core/line.cases"
import { cases as random } from "../core/random.cases"
import { cases as verdict } from "../core/verdict.cases"

await runTable(backoff())
await runTable(int())
await runTable(line())
await runTable(random())
await runTable(verdict())
finish()
