// Knows every message that was sent to a program and reads what the program says it was given:
// `rx <handler> <flags> <bytes> <topic> <first characters>`, as test/bytecode/soak-app.ts prints it.
import { filterMatches } from "../lab/mqtt-wire"
import type { Report } from "./invariants"

/** A message on its way to a device. */
export interface Numbered {
    topic: string
    bytes: number
    qos: number
    retain: boolean
}

/** Numbers are never used again, so old ones may be forgotten. */
const REMEMBER = 20_000

const LINE = /^> rx (\d+) ([-d][-r][01]) (\d+) (\S+) ?(?:m(\d+)\b)?/

/** A message's payload: its number, filled up to a size. */
export function numbered(number: number, bytes: number): string {
    return `m${number} `.padEnd(bytes, "x")
}

export class DeliveryWatch {
    private readonly sent = new Map<number, Numbered>()
    /** `<handler> <number>` of everything that was delivered in this program start. */
    private readonly got = new Map<string, number>()
    /** Deliveries so far. */
    deliveries = 0

    /** @param filters of the program's handlers, by the number it prints */
    constructor(
        private readonly filters: readonly string[],
        private readonly report: Report,
    ) {}

    /** A message goes to the device. */
    sends(number: number, message: Numbered) {
        this.sent.set(number, message)
        if (this.sent.size > REMEMBER)
            this.sent.delete(this.sent.keys().next().value!)
    }

    /** Whether a handler was given a message since the last program start. */
    has(handler: number, number: number): boolean {
        return this.got.has(`${handler} ${number}`)
    }

    /** The program starts anew, and with it what it may be given. */
    restarted() {
        this.got.clear()
    }

    /** A line on the console. */
    heard(text: string) {
        if (!text.startsWith("> rx ")) return
        const m = LINE.exec(text)
        if (!m) return this.report("delivery", `garbled: ${text.slice(0, 80)}`)
        const [, handlerText, flags, bytes, topic, numberText] = m
        const handler = Number(handlerText)
        const number = Number(numberText)
        this.deliveries++
        const filter = this.filters[handler]
        if (!filterMatches(filter, topic))
            this.report("delivery", `${topic} to the handler of ${filter}`)
        if (topic.endsWith("/giant")) return
        const message = this.sent.get(number)
        if (!message)
            return this.report("delivery", `m${number} was never sent`)
        if (message.topic !== topic || message.bytes !== Number(bytes))
            this.report(
                "delivery",
                `m${number}: ${bytes} B on ${topic} instead of ${message.bytes} B on ${message.topic}`,
            )
        const key = `${handler} ${number}`
        const times = (this.got.get(key) ?? 0) + 1
        this.got.set(key, times)
        if (this.got.size > REMEMBER)
            this.got.delete(this.got.keys().next().value!)
        // A retained message comes anew with every SUBSCRIBE.
        const again = flags[1] === "r" || (flags[0] === "d" && flags[2] === "1")
        if (times > 1 && !again)
            this.report("twice", `m${number} on ${topic} to ${filter}`)
    }
}
