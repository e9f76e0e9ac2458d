// What a part of the bench found, and how it is printed. Pure.
import type { Guarded } from "./baseline"

/** A table for people; it is a Markdown table, to be copied into a page as it is. */
export interface TextTable {
    title: string
    head: string[]
    rows: string[][]
    /** So many columns, from the first, are words; default 1. The others are numbers. */
    words?: number
    /** Sentences below it. */
    notes: string[]
}

/** What a part found. */
export interface Report {
    tables: TextTable[]
    /** All of it, for programs. */
    json: object
    /** What `--check` compares with the baseline, by name. */
    guards: Record<string, Guarded>
    /** What could not be measured, and why. */
    failures?: string[]
}

/** One thing measured of ours and of others. */
export interface Figure {
    what: string
    unit: string
    ours: number
    /** By the other's name; the same names in all figures of a table. NaN: it has nothing of the kind. */
    others: Record<string, number>
    /** Ours over the other's, where rounds by turns say it better than the quotient. */
    ratios?: Record<string, number>
}

/** Ours over another's. */
export function ratioOf(figure: Figure, other: string): number {
    return figure.ratios?.[other] ?? figure.ours / figure.others[other]
}

/** Ratios first, then what they are made of. */
export function besides(title: string, figures: Figure[]): TextTable {
    const others = Object.keys(figures[0]?.others ?? {})
    return {
        title,
        head: ["", ...others.map(o => `ours / ${o}`), "ours", ...others, ""],
        rows: figures.map(figure => [
            figure.what,
            ...others.map(o => number(ratioOf(figure, o), 2)),
            number(figure.ours),
            ...others.map(o => number(figure.others[o])),
            figure.unit,
        ]),
        notes: [],
    }
}

/** A number in three digits or more, or with so many decimals; a dash for none. */
export function number(value: number, decimals?: number): string {
    if (Number.isNaN(value)) return "-"
    if (!Number.isFinite(value)) return "never"
    if (decimals !== undefined) return value.toFixed(decimals)
    if (Number.isInteger(value) || Math.abs(value) >= 100)
        return value.toFixed(0)
    return value.toFixed(Math.abs(value) < 10 ? 2 : 1)
}

/** The table as text, its columns aligned. */
export function tableText(table: TextTable): string {
    const { title, head, rows, notes, words = 1 } = table
    const widths = head.map((cell, c) =>
        Math.max(3, cell.length, ...rows.map(row => row[c].length)),
    )
    const line = (cells: string[]) =>
        "| " +
        cells
            .map((cell, c) =>
                c < words ? cell.padEnd(widths[c]) : cell.padStart(widths[c]),
            )
            .join(" | ") +
        " |"
    const rule = widths.map((w, c) =>
        c < words ? "-".repeat(w) : "-".repeat(w - 1) + ":",
    )
    return [
        title,
        "",
        line(head),
        line(rule),
        ...rows.map(line),
        ...(notes.length ? ["", ...notes] : []),
    ].join("\n")
}
