// Scenes of QoS 1 for the tests of test/firmware/cases; see api-app.ts.
import * as ds from "@devicescript/core"
import type { Client } from "../../src/index"

/** Publishes `count` numbered messages to each topic in turn, `everyMs` apart, and prints what becomes of each. */
export async function publishAll(
    client: Client,
    topics: string[],
    count: number,
    everyMs: number,
    say: (what: any) => void,
) {
    const one = async (i: number) => {
        const topic = topics[i - Math.idiv(i, topics.length) * topics.length]
        const is = await client.publish(topic, `${i}`, {
            qos: 1,
            settled: outcome => say({ settled: i, outcome }),
        })
        say({ pub: i, is })
    }
    for (let i = 0; i < count; ++i) {
        await one(i)
        if (everyMs > 0) await ds.sleep(everyMs)
    }
}

/** Calls that have to be refused, and prints the outcome of each. */
export async function badQos(client: Client, say: (what: any) => void) {
    const c = client as any
    const rows: any[] = [
        { qos: 2 },
        { qos: 3 },
        { qos: "1" },
        { qos: 1, settled: 5 },
        true,
        null,
        7,
    ]
    for (const options of rows) say({ bad: await c.publish("t", "x", options) })
    say({ bad: await c.publish("t", Buffer.alloc(5000), { qos: 1 }) })
}
