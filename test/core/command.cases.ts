// Commands as a table: what each message means, and what is refused.
import { parseCommand, REBOOT_AFTER_MS } from "../../src/core/command"
import { type Case, equal } from "../cases"

const LATER_MS = REBOOT_AFTER_MS

/** What a message asks for, in words: the name, with what belongs to it. */
function said(
    name: string,
    text: string | undefined = "",
    upMs = LATER_MS,
    retain = false,
    dup = false,
    onTrial = false,
): string {
    const message = { retain, dup, text }
    const command = parseCommand(name, message, upMs, onTrial)
    switch (command.name) {
        case "log":
            return `log ${command.forMs}`
        case "refused":
            return `refused: ${command.reason}`
        default:
            return command.name
    }
}

const LOG_REFUSED = "refused: payload must be 0..86400 seconds"

export function cases(): Case[] {
    return [
        {
            name: "ping and status: with any payload, flags and age",
            run: () => {
                for (const name of ["ping", "status"]) {
                    equal(said(name), name)
                    equal(said(name, "x"), name)
                    equal(said(name, undefined, 0, true, true), name)
                }
            },
        },
        {
            name: "retry and policy-reset: with any payload and age, but not retained",
            run: () => {
                for (const name of ["retry", "policy-reset"]) {
                    equal(said(name), name)
                    equal(said(name, "x", 0, false, true), name)
                    equal(said(name, "", LATER_MS, true), "refused: retained")
                }
            },
        },
        {
            name: "an unknown name is refused, and so is any other spelling",
            run: () => {
                for (const name of [
                    "",
                    "Ping",
                    "ping ",
                    "pings",
                    "pin",
                    "refused",
                    "constructor",
                ])
                    equal(said(name), "refused: unknown command", name)
            },
        },
        {
            name: "log without a payload is for ten minutes",
            run: () => equal(said("log"), "log 600000"),
        },
        {
            name: "log for 0 to 86400 s, in milliseconds",
            run: () => {
                equal(said("log", "0"), "log 0")
                equal(said("log", "1"), "log 1000")
                equal(said("log", "59"), "log 59000")
                equal(said("log", "86399"), "log 86399000")
                equal(said("log", "86400"), "log 86400000")
                equal(said("log", "000000001"), "log 1000", "nine digits")
            },
        },
        {
            name: "log refuses what is not such a number",
            run: () => {
                for (const text of [
                    "86401",
                    "999999999",
                    "0000000001",
                    "99999999999999999999",
                    "-1",
                    "+1",
                    "1.5",
                    "1e3",
                    " 1",
                    "1 ",
                    "0x1",
                    "/",
                    ":",
                    "\u0000",
                    "\u0661",
                    "true",
                ])
                    equal(said("log", text), LOG_REFUSED, text)
            },
        },
        {
            name: "log refuses a payload that is no text",
            run: () => {
                const text: string | undefined = undefined
                const message = { retain: false, dup: false, text }
                const command = parseCommand("log", message, LATER_MS, false)
                equal(command.name, "refused")
            },
        },
        {
            name: "reboot after a minute",
            run: () => {
                equal(said("reboot"), "reboot")
                equal(said("reboot", "now"), "reboot")
                equal(said("reboot", "", 2147483647), "reboot")
            },
        },
        {
            name: "reboot in the first minute is refused, to the millisecond",
            run: () => {
                const early = "refused: started less than 60 s ago"
                equal(said("reboot", "", 0), early)
                equal(said("reboot", "", LATER_MS - 1), early)
                equal(said("reboot", "", LATER_MS), "reboot")
            },
        },
        {
            name: "in a trial after a hold reboot is refused, and nothing else",
            run: () => {
                const onTrial = (name: string) =>
                    said(name, "", LATER_MS, false, false, true)
                equal(onTrial("reboot"), "refused: on trial after a hold")
                for (const name of ["ping", "status", "retry", "policy-reset"])
                    equal(onTrial(name), name)
            },
        },
        {
            name: "a retained or repeated reboot is refused at any age",
            run: () => {
                const retained = "refused: retained"
                const dup = "refused: may be a repetition (DUP)"
                equal(said("reboot", "", LATER_MS, true), retained)
                equal(said("reboot", "", 0, true), retained)
                equal(said("reboot", "", LATER_MS, true, true), retained)
                equal(said("reboot", "", LATER_MS, false, true), dup)
                equal(said("reboot", "", 0, false, true), dup)
            },
        },
    ]
}
