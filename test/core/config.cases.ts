// Settings as they come from flash: what is taken, what is refused, and what the complaint says.
import {
    choiceSetting,
    intSetting,
    textSetting,
    type ConfigSource,
} from "../../src/core/config"
import type { ConfigLine } from "../../src/core/line"
import { type Case, equal } from "../cases"

/** One stored text under every key, and the complaints it caused. */
export class Store implements ConfigSource {
    complaints = 0
    line: ConfigLine | undefined = undefined

    constructor(readonly stored: string | undefined) {}

    raw(): string | undefined {
        return this.stored
    }

    complain(line: ConfigLine) {
        this.complaints++
        this.line = line
    }
}

/** The value of an integer setting 1..65535, default 1883; `!` behind it after a complaint. */
function port(stored: string | undefined): string {
    const store = new Store(stored)
    const value = intSetting(store, "MQTT_PORT", 1, 65535, 1883)
    return shown(value, store)
}

/** The same for a text of 1 to 8 characters, default "none". */
function text(stored: string | undefined): string {
    const store = new Store(stored)
    return shown(textSetting(store, "MQTT_USER", 1, 8, "none"), store)
}

function choice(stored: string | undefined): string {
    const store = new Store(stored)
    return shown(choiceSetting(store, "PROTO", ["tcp", "tls"], "tcp"), store)
}

function shown(value: unknown, store: Store): string {
    equal(store.complaints <= 1, true, "at most one complaint")
    return `${value}${store.complaints ? "!" : ""}`
}

const GARBAGE = ["", "{", "12a", "tcp", "nul", '"', '"abc', "[1,", ":", "\\"]

export function cases(): Case[] {
    return [
        {
            name: "what isn't stored is the default, without a complaint",
            run: () => {
                equal(port(undefined), "1883")
                equal(text(undefined), "none")
                equal(choice(undefined), "tcp")
            },
        },
        {
            name: "a whole number in its range is taken, as a number or as text",
            run: () => {
                equal(port("1"), "1")
                equal(port("65535"), "65535")
                equal(port("8883"), "8883")
                equal(port('"8883"'), "8883")
                equal(port("1e4"), "10000")
                equal(port('"1e4"'), "10000")
                equal(port("80.0"), "80")
            },
        },
        {
            name: "a number out of range or not whole is the default, with a complaint",
            run: () => {
                for (const stored of [
                    "0",
                    "65536",
                    "1e5",
                    "-1",
                    "-1883",
                    "1.5",
                    '"1.5"',
                    "2147483648",
                    "4294967297", // 1 when cut to 32 bits
                    "1e300",
                    "1e400",
                    "99999999999999999999",
                ])
                    equal(port(stored), "1883!", stored)
            },
        },
        {
            name: "the whole range of settings fits: to 2^31 - 1, and below 0",
            run: () => {
                const max = new Store("2147483647")
                equal(intSetting(max, "K", 0, 2147483647, 5), 2147483647)
                const low = new Store("-7")
                equal(intSetting(low, "K", -10, 10, 5), -7)
                equal(max.complaints + low.complaints, 0, "complaints")
            },
        },
        {
            name: "what isn't a number is the default, with a complaint",
            run: () => {
                for (const stored of [
                    "null",
                    "true",
                    "false",
                    "{}",
                    "[]",
                    "[1883]",
                    '""',
                    '"abc"',
                    '"null"',
                    '"true"',
                    '"[5]"',
                    '"\\"5\\""',
                ])
                    equal(port(stored), "1883!", stored)
            },
        },
        {
            name: "garbage is the default, with a complaint, in every kind of setting",
            run: () => {
                for (const stored of GARBAGE) {
                    equal(port(stored), "1883!", stored)
                    equal(text(stored), "none!", stored)
                    equal(choice(stored), "tcp!", stored)
                }
            },
        },
        {
            name: "text is taken up to its limits, and a number as it was written",
            run: () => {
                equal(text('"a"'), "a")
                equal(text('"12345678"'), "12345678")
                equal(text('""'), "none!")
                equal(text('"123456789"'), "none!")
                equal(text('"a b"'), "a b")
                equal(text('"grün"'), "grün")
                equal(text("4711"), "4711")
                equal(text("1e5"), "1e5")
                equal(text("1.50"), "1.50")
                equal(text("123456789"), "none!")
            },
        },
        {
            name: "what isn't text is the default, with a complaint",
            run: () => {
                for (const stored of ["null", "true", "{}", '["a"]'])
                    equal(text(stored), "none!", stored)
            },
        },
        {
            name: "a choice is one of its words, to the letter",
            run: () => {
                equal(choice('"tls"'), "tls")
                equal(choice('"tcp"'), "tcp")
                for (const stored of ['"TLS"', '"tls "', '""', "1", "null"])
                    equal(choice(stored), "tcp!", stored)
            },
        },
        {
            name: "a complaint says key, value, what is allowed, and what is used",
            run: () => {
                const a = new Store("70000")
                intSetting(a, "MQTT_PORT", 1, 65535, 1883)
                equal(
                    JSON.stringify(a.line as any),
                    '{"ev":"config","key":"MQTT_PORT","value":"70000","allowed":"1..65535","used":"1883"}',
                )
                const b = new Store('""')
                textSetting(b, "MQTT_USER", 1, 8, "me")
                equal(
                    JSON.stringify(b.line as any),
                    '{"ev":"config","key":"MQTT_USER","value":"\\"\\"","allowed":"text of 1..8","used":"me"}',
                )
                const c = new Store('"udp"')
                choiceSetting(c, "PROTO", ["tcp", "tls"], "tcp")
                equal(
                    JSON.stringify(c.line as any),
                    '{"ev":"config","key":"PROTO","value":"\\"udp\\"","allowed":"tcp|tls","used":"tcp"}',
                )
            },
        },
        {
            name: "a text without a default: the complaint still says what is used",
            run: () => {
                const store = new Store("true")
                equal(textSetting(store, "K", 1, 8, undefined), undefined)
                equal(store.line ? store.line.used : "", "none", "used")
            },
        },
        {
            name: "a password is never in a complaint",
            run: () => {
                for (const stored of [
                    '"hunter2hunter2"',
                    "hunter2",
                    "[7777]",
                ]) {
                    const store = new Store(stored)
                    textSetting(store, "MQTT_PWD", 1, 4, undefined)
                    const said = JSON.stringify(store.line as any)
                    equal(store.complaints, 1, "complaints")
                    equal(said.indexOf("hunter"), -1, said)
                    equal(said.indexOf("7777"), -1, said)
                    equal(store.line ? store.line.value : "", "(secret)")
                }
            },
        },
    ]
}
