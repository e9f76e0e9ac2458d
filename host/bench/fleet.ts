// The part "fleet": the same outage for one kind of client after the other, at a real mosquitto, on the real clock.
import { planFor } from "../fleet/plan"
import { PROGRAM } from "../lab/mosquitto"
import type { Guarded } from "./baseline"
import { firmware, mqttJs, paho, stock } from "./herds"
import { playOutage, type Herd, type Outage, type Outcome } from "./outage"
import type { Bench, Part } from "./part"
import { number, type Report, type TextTable } from "./report"

/**
 * 100 s of work for the broker: with less than a client's patience (MQTT.js waits 30 s for CONNACK, paho 60 s), everybody at
 * once is served in time. The queue is mosquitto's own: it asks the system to keep 100 connections waiting.
 */
const OUTAGE: Outage = {
    devices: 200,
    rate: 2,
    backlog: 100,
    calmS: 11,
    outageS: 10,
    limitS: 250,
    seed: 1,
}

/** What CI, or a person in a hurry, has time for; the clients' patience is longer than all of it. */
const SHORT: Outage = {
    ...OUTAGE,
    devices: 20,
    rate: 5,
    calmS: 2,
    outageS: 3,
    limitS: 12,
}

/** Starting, for the time that is left. */
const START_S = 8

interface Contender {
    name: string
    make: () => Herd | undefined
    /** Why `make` may answer with nothing. */
    missing?: string
}

const PLANNED = "Herdless, npm run fleet -- plan"

function contenders(outage: Outage): Contender[] {
    const { devices, rate, seed } = outage
    const planned = (margin: number) => () =>
        firmware(
            planFor({ devices, rate, patienceMs: 10_000, margin, seed }).env,
        )
    return [
        { name: PLANNED, make: planned(1.25) },
        // What it says to somebody who has measured C; the proxy keeps it exactly.
        { name: `${PLANNED} --margin 1.05`, make: planned(1.05) },
        { name: "Herdless, no settings (adaptive)", make: () => firmware({}) },
        { name: "MQTT.js", make: mqttJs },
        {
            name: "paho-mqtt (Python)",
            make: paho,
            missing:
                "python3-paho-mqtt is not installed (apt-get install python3-paho-mqtt)",
        },
        { name: "stock MQTTClient", make: stock },
    ]
}

interface Row extends Outcome {
    name: string
}

function tableOf(outage: Outage, rows: Row[], notes: string[]): TextTable {
    const { devices, rate, outageS, backlog, limitS } = outage
    const limit = devices / rate
    return {
        title: `${devices} clients lose a mosquitto that is away for ${outageS} s and then completes ${rate} connections a second`,
        head: [
            "",
            "p50 / (N/C)",
            "p99 / (N/C)",
            "most attempts in 100 ms",
            "attempts each",
            "wasted connections",
            "not back",
        ],
        rows: rows.map(row => [
            row.name,
            number(row.p50 / limit, 2),
            number(row.p99 / limit, 2),
            `${row.peakPer100Ms}`,
            (row.attempts / devices).toFixed(1),
            `${row.wasted}`,
            `${devices - row.recovered}`,
        ]),
        notes: [
            `N/C = ${limit} s: nobody can be faster. ${backlog} connections wait, one more gets no answer; watched for ${limitS} s, ` +
                "attempts from the broker's return. Wasted: completed for a client that had given up.",
            ...notes,
        ],
    }
}

async function run(bench: Bench): Promise<Report> {
    const outage = bench.short ? SHORT : OUTAGE
    const rows: Row[] = []
    const notes: string[] = []
    const failures: string[] = []
    if (!PROGRAM)
        throw new Error(
            "mosquitto is not installed (apt-get install mosquitto)",
        )
    const all = contenders(outage)
    for (const [i, { name, make, missing: why }] of all.entries()) {
        if (bench.stopped()) break
        const herd = make()
        if (!herd) {
            bench.warn(`${name} is left out: ${why}`)
            notes.push(`${name} was left out: ${why}.`)
            continue
        }
        const startMs = performance.now()
        const look = async (text: string) => {
            const part = (performance.now() - startMs) / 1000 / mostS(outage)
            const done = (i + Math.min(part, 1)) / all.length
            await bench.progress(done, `${name}, ${text}`)
            return !bench.stopped()
        }
        try {
            const outcome = await playOutage(outage, herd, look)
            if (outcome) rows.push({ name, ...outcome })
        } catch (e) {
            failures.push(`${name}: ${(e as Error).message}`)
        }
    }
    if (bench.stopped()) notes.push("Interrupted: the last row is unfinished.")
    const planned = rows.find(row => row.name === PLANNED)
    const guards: Record<string, Guarded> = {}
    if (planned && !bench.short && !bench.stopped())
        guards["plan: p99 / (N/C)"] = {
            value: planned.p99 / (outage.devices / outage.rate),
            kind: "spread",
        }
    return {
        tables: [tableOf(outage, rows, notes)],
        json: { outage, limitSeconds: outage.devices / outage.rate, rows },
        guards,
        failures,
    }
}

const mostS = ({ calmS, outageS, limitS }: Outage) =>
    START_S + calmS + outageS + limitS

export const fleetPart: Part = {
    name: "fleet",
    summary:
        "one outage at a real mosquitto, beside MQTT.js, paho-mqtt and the stock client",
    // Most are back before the last look.
    seconds: short => (short ? 120 : 1450),
    run,
}
