// The tables of what is kept in flash and of the watchdog, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as fleetPolicy } from "../core/fleet-policy.cases"
import { cases as record } from "../core/record.cases"
import { cases as restart } from "../core/restart.cases"
import { cases as watchdog } from "../core/watchdog.cases"
import { cases as writeBudget } from "../core/write-budget.cases"
import { cases as flashOutbox } from "../mqtt/flash-outbox.cases"

await runTable(fleetPolicy())
await runTable(record())
await runTable(restart())
await runTable(watchdog())
await runTable(writeBudget())
await runTable(flashOutbox())
finish()
