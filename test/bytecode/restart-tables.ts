// The tables of the restart limit, its record, and the watchdog, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as record } from "../core/record.cases"
import { cases as restart } from "../core/restart.cases"
import { cases as watchdog } from "../core/watchdog.cases"

await runTable(record())
await runTable(restart())
await runTable(watchdog())
finish()
