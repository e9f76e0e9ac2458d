// A device's recent past as one row of characters: time runs to the right and ends now. Pure.
// Each state has a character of its own, so that the strip can be read without colours.
import { STATE_NAMES, type DeviceView, type State } from "./view"

/** How far a strip looks back. */
export const STRIP_MS = 10 * 60_000

/** In a cell that saw several states the one named first here is shown. */
const CELLS: [State, string][] = [
    ["crashed", "x"],
    ["halted", "#"],
    ["held", "h"],
    ["connecting", "|"],
    ["noLink", "_"],
    ["away", "-"],
    ["off", "o"],
    ["waiting", "."],
    ["starting", "^"],
    ["connected", "█"],
    ["unknown", " "],
]

/** What the characters of these cells mean. */
export function legendOf(states: readonly State[]): string {
    return CELLS.filter(([state]) => state !== "unknown")
        .filter(([state]) => states.includes(state))
        .map(([state, cell]) => `${cell} ${STATE_NAMES[state]}`)
        .join("   ")
}

export function cellOf(state: State): string {
    return CELLS[rank(state)][1]
}

function rank(state: State): number {
    return CELLS.findIndex(([name]) => name === state)
}

/** The state shown in each of `cells` cells over the last `windowMs`; what is older than the history is unknown. */
export function strip(
    { history }: DeviceView,
    nowMs: number,
    cells: number,
    windowMs = STRIP_MS,
): State[] {
    const out: State[] = Array.from({ length: cells }, () => "unknown")
    const cellMs = windowMs / cells
    const fromMs = nowMs - windowMs
    const cell = (ms: number) =>
        Math.min(Math.floor((ms - fromMs) / cellMs), cells - 1)
    history.forEach(({ atMs, state }, i) => {
        const untilMs = history[i + 1]?.atMs ?? nowMs
        if (untilMs < fromMs || atMs > nowMs) return
        // A state that ends where a cell begins is not in it.
        const last = cell(Math.max(untilMs - 1, atMs))
        for (let c = Math.max(cell(atMs), 0); c <= last; ++c)
            if (rank(state) < rank(out[c])) out[c] = state
    })
    return out
}
