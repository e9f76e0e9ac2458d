// The tables of the two state machines, and of what goes in and out of them, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as command } from "../core/command.cases"
import { cases as config } from "../core/config.cases"
import { cases as connection } from "../core/connection.cases"
import { cases as key } from "../core/key.cases"
import { cases as link } from "../core/link.cases"
import { cases as inFlight } from "../mqtt/in-flight.cases"
import { cases as outbox } from "../mqtt/outbox.cases"
import { cases as repeats } from "../mqtt/repeats.cases"
import { cases as session } from "../mqtt/session.cases"

await runTable(command())
await runTable(config())
await runTable(connection())
await runTable(key())
await runTable(link())
await runTable(inFlight())
await runTable(outbox())
await runTable(repeats())
await runTable(session())
finish()
