// Calls of the library with arguments that it has to refuse: what an application gets for them.
import * as ds from "@devicescript/core"
import type { Client } from "../../src/index"

/** Calls with everything an API user may get wrong, and prints the outcome of each. */
export async function badArguments(client: Client, say: (what: any) => void) {
    const c = client as any
    const quiet = () => {}
    const report = async (call: string, outcome: any) => {
        say({ call, outcome })
        await ds.sleep(1)
    }
    for (const topic of [
        "",
        "a/+",
        "#",
        "a\0b",
        5,
        true,
        null,
        undefined,
        { a: 1 },
        hex`61`,
    ] as any[])
        await report(`publish topic ${topic}`, await c.publish(topic, "x"))
    for (const payload of [5, true, null, undefined, [1], quiet] as any[])
        await report(
            `publish payload ${typeof payload}`,
            await c.publish("t", payload),
        )
    await report(
        "publish payload of 5000 B",
        await c.publish("t", Buffer.alloc(5000)),
    )
    await report(
        "publish payload of 25000 B",
        await c.publish("t", Buffer.alloc(25000)),
    )
    for (const filter of [
        "",
        "a#",
        "#/a",
        "a+/b",
        "a/+b",
        "a\0b",
        5,
        null,
        undefined,
    ] as any[])
        await report(
            `subscribe filter ${filter}`,
            await c.subscribe(filter, quiet),
        )
    for (const qos of [2, -1, 3, 1.5, "1", null] as any[])
        await report(
            `subscribe qos ${qos} ${typeof qos}`,
            await c.subscribe("t", quiet, qos),
        )
    for (const handler of [undefined, null, 5, "f"] as any[])
        await report(
            `subscribe handler ${handler}`,
            await c.subscribe("t", handler),
        )
    for (const filter of ["", "never", 5, null, undefined] as any[])
        await report(`unsubscribe ${filter}`, await c.unsubscribe(filter))
    c.logFor("x")
    c.logFor(undefined)
    c.logFor(-1)
}
