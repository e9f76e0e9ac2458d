// The tables of mqtt, as bytecode.
import { finish, runTable } from "./run-tables"
import { cases as bytes } from "../mqtt/bytes.cases"
import { cases as encode } from "../mqtt/encode.cases"
import { cases as parser } from "../mqtt/parser.cases"
import { cases as topic } from "../mqtt/topic.cases"

await runTable(bytes())
await runTable(encode())
await runTable(parser())
await runTable(topic())
finish()
