// A long session with a real broker: publishes at random, subscribes and unsubscribes, and stops and
// starts now and then.
import * as ds from "@devicescript/core"
import { below } from "../../src/core/int"
import { Sfc32 } from "../../src/core/random"
import type { Client, Message } from "../../src/index"
import { filterOf, payloadOf, topicOf } from "./api-message"

/** Goes on for `forMs`; prints the numbers of messages made and of those the client refused or may have lost. */
export async function longSession(
    client: Client,
    seed: number,
    forMs: number,
    say: (what: any) => void,
) {
    const random = new Sfc32(seed, 1, 1, 1)
    const connected = async () => {
        while (client.state() !== "connected") await ds.sleep(1)
    }
    let got = 0
    const count = () => {
        got++
    }
    const filters: string[] = []
    await connected()
    await client.subscribe(
        "echo/in/+",
        async (m: Message) => {
            await client.publish(`echo/out/${m.topic.slice(8)}`, m.payload)
        },
        1,
    )
    say({ ready: true })
    const endMs = ds.millis() + forMs
    const answers: any = {}
    const note = (what: string) => {
        answers[what] = (answers[what] ? answers[what] : 0) + 1
    }
    let i = 0
    for (; ds.millis() < endMs; ++i) {
        const retain = below(20, random) === 0
        note(
            await client.publish(topicOf(seed, i), payloadOf(seed, i), {
                retain,
            }),
        )
        await ds.sleep(10 + below(50, random))
        switch (below(40, random)) {
            case 0:
            case 1:
                if (filters.length < 12) {
                    const filter = filterOf(seed, i)
                    filters.push(filter)
                    const qos = below(2, random) as 0 | 1
                    note(await client.subscribe(filter, count, qos))
                }
                break
            case 2:
                if (filters.length)
                    note(await client.unsubscribe(filters.shift(), count))
                break
            case 3:
                if (below(3, random) === 0) {
                    client.stop()
                    while (client.state() !== "halted") await ds.sleep(1)
                    client.start()
                    await connected()
                }
                break
        }
    }
    await connected()
    await ds.sleep(1000)
    say({ made: i, got, answers, counters: client.counters })
}
