// Options that startMqtt has to refuse, and the ends of their ranges, which it has to take. On
// the device each is tried; the host compares with the same table.
import { defaultPolicy } from "../../src/core/policy"

/** One call of startMqtt: these options on top of a good host, and what the error has to say; "" for none. */
export interface OptionRow {
    /** The option under test. */
    name: string
    options: any
    error: string
}

type Add = (options: any, error: string) => void

function integer(
    add: Add,
    name: string,
    low: number,
    high: number,
    wrap: (value: any) => any,
) {
    const range = `${low}..${high}`
    for (const bad of [low - 1, high + 1, 1.5, NaN, -2147483649] as any[])
        add(wrap(bad), `${name} is ${bad}: must be ${range}`)
    for (const bad of ["5", null, true] as any[])
        add(wrap(bad), `${name} is ${bad}: must be ${range}`)
    add(wrap(low), "")
    if (high < 2147483647) add(wrap(high), "")
}

/** The rows for one option; the names are those of MqttOptions, and `policy`'s fields. */
export function optionRows(name: string): OptionRow[] {
    const rows: OptionRow[] = []
    const add: Add = (options, error) => {
        rows.push({ name, options, error })
    }
    // The field, the others at ranges that leave it its own.
    const policy = (value: any) => {
        const p: any = defaultPolicy()
        p[name] = value
        return { policy: p }
    }
    const message = () => {
        const of = (t: any) => {
            const o: any = {}
            o[name] = { topic: t, payload: "x", qos: 0, retain: false }
            return o
        }
        add(of("a/+"), `${name}.topic holds a wildcard`)
        add(of("a\0b"), `${name}.topic holds the character U+0000`)
        add(of(""), `${name}.topic is empty`)
        add(of(5), `${name}.topic is 5: must be text`)
        add(of(undefined), `${name}.topic is undefined: must be text`)
        const payload: any = {}
        payload[name] = { topic: "t", payload: 5, qos: 0, retain: false }
        add(payload, `${name}.payload is 5: must be text`)
        const none: any = {}
        none[name] = { topic: "t", qos: 0, retain: false }
        add(none, `${name}.payload is undefined: must be text`)
    }
    switch (name) {
        case "host":
            for (const host of ["", undefined, null, 5] as any[])
                add({ host }, "host is empty: must be a name or an address")
            break
        case "proto":
            add({ proto: "mqtt" }, "proto is mqtt: must be tcp or tls")
            add({ proto: 5 }, "proto is 5: must be tcp or tls")
            add({ proto: "tls" }, "")
            break
        case "port":
            integer(add, name, 1, 65535, port => ({ port }))
            break
        case "keepAliveSeconds":
            integer(add, name, 0, 65535, v => ({ keepAliveSeconds: v }))
            break
        case "pingMs":
            integer(add, name, 1, 2147483647, v => ({ pingMs: v }))
            break
        case "maxPacketBytes":
            integer(add, name, 16, 8192, v => ({ maxPacketBytes: v }))
            break
        case "outboxEntries":
            integer(add, name, 1, 1000, v => ({ outboxEntries: v }))
            break
        case "outboxBytes":
            integer(add, name, 64, 65535, v => ({ outboxBytes: v }))
            break
        case "username":
            add({ username: "a\0b" }, "username holds the character U+0000")
            add({ username: 5 }, "username is 5: must be text")
            add({ username: "" }, "")
            break
        case "password":
            add({ password: "x" }, "password needs a username")
            add({ username: "u", password: 5 }, "password is 5: must be text")
            add({ username: "u", password: "" }, "")
            break
        case "clientId":
            add({ clientId: "a\0b" }, "clientId holds the character U+0000")
            add({ clientId: 5 }, "clientId is 5: must be text")
            break
        case "will":
            message()
            for (const qos of [3, -1, 0.5, "1", undefined] as any[])
                add(
                    { will: { topic: "t", payload: "x", qos, retain: false } },
                    `will.qos is ${qos}: must be 0..2`,
                )
            break
        case "birth":
        case "farewell":
            message()
            break
        case "link":
            add({ link: 5 }, "link is 5: must be a function")
            break
        case "codec":
            add({ codec: 5 }, "codec is 5: must be a function")
            break
        case "fastFirst":
            add(policy(1), "fastFirst 1 is not one of true, false")
            break
        case "jitter":
            add(policy("fair"), "jitter fair is not one of proportional")
            break
        default:
            for (const bad of [-1, 1.5, NaN, "5", null, 2147483648] as any[])
                add(policy(bad), `${name} ${bad} is not an integer in `)
    }
    return rows
}

/** Every option there is. */
export const OPTION_NAMES = [
    "host",
    "proto",
    "port",
    "username",
    "password",
    "clientId",
    "keepAliveSeconds",
    "pingMs",
    "maxPacketBytes",
    "outboxEntries",
    "outboxBytes",
    "will",
    "birth",
    "farewell",
    "link",
    "codec",
    "minMs",
    "capMs",
    "overloadCapMs",
    "spreadMs",
    "fastFirst",
    "jitter",
    "connackMs",
    "connackOverloadMs",
    "dialMs",
    "stableMs",
    "slowMinMs",
    "slowCapMs",
    "maxAttempts",
]
