// Where a message's time goes: which functions it calls, and how often. Every call leaves a frame on the heap, so two looks
// at the heap, one message apart, tell all calls between them without disturbing the program.
import type { TextTable } from "./report"
import type { Rig } from "./rig"

/** Calls for each message, by function. */
export type Calls = Map<string, number>

/**
 * Looks at the calls of one message after another.
 * @param looks frames on the heap, one message apart; steps in which some were collected are left out
 */
export function callsBetween(looks: Map<string, number>[]): Calls {
    const sums: Calls = new Map()
    let steps = 0
    for (let i = 1; i < looks.length; ++i) {
        const [before, after] = [looks[i - 1], looks[i]]
        const names = [...new Set([...before.keys(), ...after.keys()])]
        const grown = names.map(
            name => (after.get(name) ?? 0) - (before.get(name) ?? 0),
        )
        if (grown.some(count => count < 0)) continue
        steps++
        for (const [n, name] of names.entries())
            sums.set(name, (sums.get(name) ?? 0) + grown[n])
    }
    const mean = [...sums].map(([name, sum]): [string, number] => [
        name,
        sum / steps,
    ])
    return new Map(mean.filter(([, count]) => count > 0))
}

/** The calls of each of `count` messages received, or published with a QoS. */
export async function callsOf(
    rig: Rig,
    direction: "receive" | 0 | 1,
    count: number,
): Promise<Calls> {
    const looks: Map<string, number>[] = []
    if (direction === "receive")
        for (let i = 0; i < count; ++i) {
            rig.receive(1)
            looks.push(rig.frames())
        }
    else {
        rig.probe = () => looks.push(rig.frames())
        await rig.publish(direction, count)
        rig.probe = () => {}
    }
    return callsBetween(looks)
}

/** The functions that have a row of their own; the rest is one. */
const MOST_CALLED = 16

/** The functions that are called most, for each kind of message. */
export function callsTable(columns: Record<string, Calls>): TextTable {
    const all = Object.values(columns)
    const total = (name: string) =>
        all.reduce((sum, calls) => sum + (calls.get(name) ?? 0), 0)
    const names = [...new Set(all.flatMap(calls => [...calls.keys()]))]
    names.sort((a, b) => total(b) - total(a))
    const row = (title: string, of: string[]) => [
        title,
        ...all.map(calls =>
            of.reduce((sum, n) => sum + (calls.get(n) ?? 0), 0).toFixed(1),
        ),
    ]
    return {
        title: "Calls for each message, minimal client: each is an allocation, too",
        head: ["", ...Object.keys(columns)],
        rows: [
            ...names.slice(0, MOST_CALLED).map(name => row(name, [name])),
            row("others", names.slice(MOST_CALLED)),
            row("all", names),
        ],
        notes: [],
    }
}
