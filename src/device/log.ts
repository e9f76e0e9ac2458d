// The device's side of the public log: one line of strict JSON on the console.
import { formatLine, type Line } from "../core/line"

/** Prints a line; the runtime puts the time before it. */
export function log(line: Line) {
    console.data(formatLine(line) as any)
}
