// Commands to a device, as messages on `<prefix>/<id>/cmd/<name>`: what a message means and
// whether it may be done. Pure. Anyone who may publish there may try anything, so everything is
// refused that isn't known, and nothing here can be repeated by accident into harm.
//
// | command | payload                             | does                                              |
// |---------|-------------------------------------|---------------------------------------------------|
// | ping    | anything                            | answers                                           |
// | status  | anything                            | answers with state and counters                   |
// | retry   | anything                            | ceiling back to the cap, next attempt at once     |
// | log     | seconds 0..86400, empty for 600     | debug lines on the console for that time          |
// | reboot  | anything                            | clean goodbye, then a reset of the chip           |
// | policy-reset | anything                       | forgets the fleet's policy: its own one again      |
//
// A retry is refused when the message is retained: it would come again at every connection, and keep
// the waits from growing while the broker is overloaded. A policy-reset too: it would undo the fleet's policy again and again. A reboot is refused when the message is retained (it would come again after the reboot), DUP (it
// may have been done already), comes in the first minute (a reboot loop would have no end), or in a trial after a hold (it would
// count as a failed one, and the device be held twice as long).

/** What is to be done. */
export type Command =
    | { name: "ping" }
    | { name: "status" }
    | { name: "retry" }
    | { name: "log"; forMs: number }
    | { name: "reboot" }
    | { name: "policy-reset" }
    | { name: "refused"; reason: string }

/** No reboot by command before the program has run this long. */
export const REBOOT_AFTER_MS = 60000

const LOG_DEFAULT_S = 600
const LOG_MAX_S = 86400

/** What the message that carried a command says about itself. */
export interface CommandMessage {
    retain: boolean
    dup: boolean
    /** The payload as text, or undefined when it is not well-formed UTF-8. */
    text: string | undefined
}

/** What a command message asks for; `upMs` is how long the program has run, `onTrial` whether this is a trial start. */
export function parseCommand(
    name: string,
    message: CommandMessage,
    upMs: number,
    onTrial: boolean,
): Command {
    switch (name) {
        case "ping":
        case "status":
            return { name }
        case "retry":
        case "policy-reset":
            return message.retain ? refused("retained") : { name }
        case "log":
            return parseLog(message.text)
        case "reboot":
            return parseReboot(message, upMs, onTrial)
        default:
            return refused("unknown command")
    }
}

function parseReboot(
    message: CommandMessage,
    upMs: number,
    onTrial: boolean,
): Command {
    if (message.retain) return refused("retained")
    if (message.dup) return refused("may be a repetition (DUP)")
    if (upMs < REBOOT_AFTER_MS) return refused("started less than 60 s ago")
    if (onTrial) return refused("on trial after a hold")
    return { name: "reboot" }
}

function parseLog(text: string | undefined): Command {
    const seconds = text === "" ? LOG_DEFAULT_S : wholeNumber(text, LOG_MAX_S)
    if (seconds < 0) return refused("payload must be 0..86400 seconds")
    return { name: "log", forMs: thousand(seconds) }
}

/** Decimal digits as a number up to `max`, or -1. */
function wholeNumber(text: string | undefined, max: number): number {
    if (!text || text.length > 9) return -1
    let value = 0
    for (let i = 0; i < text.length; ++i) {
        const digit = text.charCodeAt(i) - 48
        if (digit < 0 || digit > 9) return -1
        value = (value << 3) + value + value + digit
    }
    return value <= max ? value : -1
}

/** 1,000 n, in a file that may not multiply; n up to 2^21. */
function thousand(n: number): number {
    return (n << 10) - (n << 4) - (n << 3)
}

function refused(reason: string): Command {
    return { name: "refused", reason }
}
