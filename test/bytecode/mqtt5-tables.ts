// The tables of MQTT 5, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as codec } from "../mqtt/v5-codec.cases"
import { cases as rules } from "../mqtt/v5-rules.cases"
import { cases as session } from "../mqtt/v5-session.cases"
import { cases as parser } from "../mqtt/v5-parser.cases"

await runTable(codec())
await runTable(parser())
await runTable(rules())
await runTable(session())
finish()
