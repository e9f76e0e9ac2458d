// A log line whose end the runtime has cut off, made whole again as far as it got. The ESP32's runtime
// prints at most 158 bytes a line (microsoft/jacdac-c, source/jd_dmesg.c with JD_DMESG_LINE_BUFFER 160), while a line may have
// 240 and its time: what is lost is the end of a long reason and the flags after it. Pure.
import { parseLine, type TimedLine } from "../../src/core/line"

/** A line shorter than this was not cut by the runtime, it is just broken. */
export const MIN_CUT_BYTES = 150

/** Fields that stand at the end of a line, and what to take for them when they are lost. */
const LOST: Record<string, Record<string, unknown>> = {
    boot: { cause: "?", upMs: 0 },
    attempt: { port: 0, proto: "?" },
    lost: { reason: "", flap: false },
    retry: { reason: "", proven: false },
    halt: { reason: "" },
    held: { reason: "", trips: 0 },
    drop: { reason: "", dropped: 0 },
    config: { value: "", allowed: "?", used: "?" },
}

/** The line, with the text it was cut in marked by "..."; undefined when there is too little of it. Never throws. */
export function mendLine(text: string): TimedLine | undefined {
    const head = /^# \d{1,15} (?=\{"ev":"([a-z]+)")/.exec(text)
    const lost = head && Object.hasOwn(LOST, head[1]) && LOST[head[1]]
    if (!head || !lost || text.length < MIN_CUT_BYTES) return undefined
    const json = text.slice(head[0].length)
    const whole =
        // Cut inside a text; a lone backslash before the cut would escape our quote.
        object(json.replace(/\\$/, "") + '..."}') ??
        // Cut behind a value.
        object(json + "}") ??
        // Cut inside a name, a number or a flag: the field is lost.
        object(json.slice(0, json.lastIndexOf(',"')) + "}")
    return whole && parseLine(head[0] + JSON.stringify({ ...lost, ...whole }))
}

function object(json: string): object | undefined {
    try {
        const parsed: unknown = JSON.parse(json)
        return typeof parsed === "object" && parsed ? parsed : undefined
    } catch {
        return undefined
    }
}
