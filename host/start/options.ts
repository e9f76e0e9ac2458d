// The command line of `npm start`: flags in, checked options out.
// A flag that can't be used is named together with its value and what is allowed; exit code 2.
import { Command, InvalidArgumentError } from "commander"
import { readFlags, whole } from "../flags"
import { pagePort } from "../monitor/options"
import { MAX_KEY_BYTES, toJson, type Settings } from "../vm/env"
import { MAX_VALUE_BYTES } from "../vm/flash-image"

export interface Options {
    /** Play one outage of this length and exit; undefined: keys are read instead. */
    outageMs: number | undefined
    json: boolean
    verbose: boolean
    /** An outside broker; undefined: the embedded one. */
    outside: { host: string; port: number | undefined } | undefined
    /** 16 lower-case hexadecimal digits; undefined: a random one. */
    deviceId: string | undefined
    /** Devices to run; more than one only with the page. */
    devices: number
    /** The page's port, 0 for any; undefined: no page. */
    webPort: number | undefined
    /** Settings given on the command line, as the device stores them. */
    settings: Settings
}

/** What `npm start` plays when there is nobody to press keys. */
export const DEFAULT_OUTAGE_MS = 10000

/** The keys, as the help and `?` show them. */
export const KEYS = [
    "b  broker down, or up again",
    "w  Wi-Fi down, or up again",
    "p  power-cycle the device: one second without power",
    "c  crash the program: the runtime starts it again 5 s later",
    "?  this list",
    "q  quit (Ctrl-C and Ctrl-D too)",
]

const HELP = `
Keys, on a terminal:
${KEYS.map(line => "  " + line).join("\n")}

Without a terminal, or with --outage, one outage is played: the device connects and is
stable, the broker goes away, comes back, and the device has to be back and stable in time.
Settings of .env.defaults and .env.local apply to the firmware, except for the broker's address.
With --json, t counts milliseconds from the start of this command; dev is the device's id, or
"host" for what happens around it (ev broker, client, publish, power, wifi, panic, outage).

Exit codes: 0 quit, or back and stable; 1 not back in time, or it could not start;
2 a flag can't be used; 130 Ctrl-C (143 SIGTERM) before an outage was over.

Examples:
  npm start
  npm start -- --outage 10
  npm start -- --outage 30 --json --set RETRY_CAP=5000
  npm start -- --host test.example.org --port 1883
  npm start -- --devices 50 --web`

/** Seconds as milliseconds. */
function outage(text: string): number {
    const seconds = Number(text)
    if (!/^\d+(\.\d+)?$/.test(text) || seconds < 0.1 || seconds > 86400)
        throw new InvalidArgumentError("Allowed: 0.1 to 86400 seconds.")
    return Math.round(seconds * 1000)
}

function port(text: string): number {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < 1 || value > 65535)
        throw new InvalidArgumentError("Allowed: 1 to 65535.")
    return value
}

/** A real VM costs about a percent of a core. */
export const MAX_HERD = 200

function host(text: string): string {
    if (!/^[\w.:-]{1,100}$/.test(text))
        throw new InvalidArgumentError(
            "Allowed: a name or an address of 1 to 100 characters.",
        )
    return text
}

function deviceId(text: string): string {
    if (!/^[0-9a-f]{16}$/i.test(text) || /^0+$/.test(text))
        throw new InvalidArgumentError(
            "Allowed: 16 hexadecimal digits, not all zero.",
        )
    return text.toLowerCase()
}

function setting(text: string, before: Settings | undefined): Settings {
    const [, key, value] = /^(\w+)=(.+)$/s.exec(text) ?? []
    if (key === undefined || key.length > MAX_KEY_BYTES)
        throw new InvalidArgumentError(
            `Allowed: KEY=VALUE, KEY of at most ${MAX_KEY_BYTES} letters, digits and _.`,
        )
    if (key === "MQTT_HOST" || key === "MQTT_PORT")
        throw new InvalidArgumentError("Use --host and --port for the broker.")
    const json = toJson(value)
    if (Buffer.byteLength(json) > MAX_VALUE_BYTES)
        throw new InvalidArgumentError(
            `Allowed: a value of at most ${MAX_VALUE_BYTES} bytes.`,
        )
    return { ...before, [key]: json }
}

/** What makes no sense together with a page that is looked at and acted on. */
const PAGE_ALONE = ["outage", "json", "host", "port", "deviceId"]

/**
 * Reads the flags.
 * @param args what follows the script's name
 * @param hasTerminal whether somebody can press keys
 * @param print where help (`isError` false) and complaints go
 * @returns the options, or the exit code when there is nothing to run
 */
export function readOptions(
    args: string[],
    hasTerminal: boolean,
    print: (text: string, isError: boolean) => void,
): Options | number {
    const command = new Command("npm start --")
        .description(
            "Runs the firmware in the simulator against a broker of its own and shows what it does.",
        )
        .option(
            "--outage <seconds>",
            "play one outage of this length and exit",
            outage,
        )
        .option("--json", "print each event as one line of JSON")
        .option(
            "--host <name>",
            "use this broker instead of an embedded one",
            host,
        )
        .option(
            "--port <number>",
            "its port (host 127.0.0.1 if not given)",
            port,
        )
        .option(
            "--device-id <hex>",
            "16 hexadecimal digits (default: random)",
            deviceId,
        )
        .option(
            "--set <key=value>",
            "a setting of the firmware; may be repeated",
            setting,
        )
        .option(
            "--web [port]",
            "serve a page on 127.0.0.1 with every device and buttons for trouble",
            pagePort,
        )
        .option(
            "--devices <number>",
            "how many devices; with --web (default: 1)",
            whole(1, MAX_HERD),
        )
        .option("--verbose", "show what the runtime itself prints, too")
        .addHelpText("after", HELP)
    const given = readFlags(command, args, print)
    if (typeof given === "number") return given
    const hasPage = given.web !== undefined
    const clash = hasPage
        ? PAGE_ALONE.find(name => given[name] !== undefined)
        : given.devices !== undefined && "devices"
    if (clash) {
        const why = hasPage
            ? `--web and --${clash}: one of them`
            : "--devices is for a page: add --web"
        print(`error: ${why}\n`, true)
        return 2
    }
    const hasBroker = given.host !== undefined || given.port !== undefined
    return {
        outageMs: given.outage ?? (hasTerminal ? undefined : DEFAULT_OUTAGE_MS),
        json: given.json === true,
        verbose: given.verbose === true,
        outside: hasBroker
            ? { host: given.host ?? "127.0.0.1", port: given.port }
            : undefined,
        deviceId: given.deviceId,
        devices: given.devices ?? 1,
        webPort: hasPage
            ? typeof given.web === "number"
                ? given.web
                : 0
            : undefined,
        settings: given.set ?? {},
    }
}
