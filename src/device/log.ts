// The device's side of the public log: one line of strict JSON on the console for each decision.
import * as ds from "@devicescript/core"
import type { Decision } from "../core/connection"
import { lineOf } from "../core/journal"
import { formatLine, type Line } from "../core/line"
import type { Cause } from "../core/verdict"
import type { Client, Log } from "./client"

/** At most one line for dropped messages in this time. */
const DROP_LINE_MS = 10000

/** Prints a line; the runtime puts the time before it. */
export function log(line: Line) {
    console.data(formatLine(line) as any)
}

/** The part of a client that prints a line for each decision and, not too often, for what is dropped. */
export function lineLog(): Log {
    return new LineLog()
}

/** @devsWhenUsed */
class LineLog implements Log {
    private dropLineMs = -DROP_LINE_MS

    decision(
        client: Client,
        what: Decision,
        nowMs: number,
        cause: Cause | undefined,
        flag: boolean | undefined,
    ) {
        const connection = client.connection
        const session = client.session
        log(lineOf(what, connection, nowMs, cause, flag, session.codec.level))
    }

    drop(
        client: Client,
        what: string,
        topic: string | undefined,
        bytes: number | undefined,
        reason: string,
    ) {
        const nowMs = ds.millis()
        if (nowMs < this.dropLineMs + DROP_LINE_MS) return
        this.dropLineMs = nowMs
        const dropped = client.counters.dropped
        log({ ev: "drop", what, topic, bytes, reason, dropped })
    }
}
