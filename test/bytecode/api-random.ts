// An application that does everything the library offers at random, from a seed.
import * as ds from "@devicescript/core"
import { below } from "../../src/core/int"
import { Sfc32 } from "../../src/core/random"
import type { Client, Message } from "../../src/index"

const FILTERS = ["r/#", "r/+/b", "r/a/b", "r/a", "+/a/+", "#", "r/c/d/e", "q/x"]
const TOPICS = ["r/a", "r/a/b", "r/c/d/e", "q/x", "out", "out/deep/er"]

/** Requests that may be on their way at a time. */
const MAX_ASKING = 8

/** Subscriptions at a time. */
const MAX_HELD = 12

interface Held {
    filter: string
    /** In an array: a closure read from a field is another one. */
    handlers: ((m: Message) => Promise<void>)[]
}

/**
 * `rounds` rounds of 45 s of calls at random; after each it drops all it has and prints
 * `calm`, while the heap is filled and collected, until a round's 75 s are over.
 */
export async function randomApp(
    client: Client,
    seed: number,
    rounds: number,
    say: (what: any) => void,
) {
    const random = new Sfc32(seed, 2, 3, 4)
    const pick = (n: number) => below(n, random)
    const held: Held[] = []
    let asking = 0
    let calls = 0
    let got = 0

    const handler = async (m: Message) => {
        got++
        switch (pick(8)) {
            case 0:
                throw new Error("now and then")
            case 1:
                await ds.sleep(pick(400))
                break
            case 2:
                await client.publish("echo", m.payload)
                break
            case 3:
                await client.unsubscribe("r/a/b")
                break
        }
    }
    const subscribe = async () => {
        asking++
        const filter = FILTERS[pick(FILTERS.length)]
        // A handler of its own each time.
        const own = async (m: Message) => await handler(m)
        held.push({ filter, handlers: [own] })
        await client.subscribe(filter, own, pick(2) as 0 | 1)
        asking--
    }
    const unsubscribe = async () => {
        const one = held.shift()
        if (!one) return
        asking++
        await client.unsubscribe(one.filter, one.handlers[0])
        asking--
    }
    const publish = async () => {
        asking++
        const payload = Buffer.alloc(pick(4) ? pick(60) : pick(1500))
        for (let i = 0; i < payload.length && i < 50; ++i)
            payload[i] = pick(256)
        const topic = TOPICS[pick(TOPICS.length)]
        await client.publish(topic, payload, { retain: pick(8) === 0 })
        asking--
    }
    const restart = async () => {
        asking++
        client.stop()
        await ds.sleep(pick(300))
        client.start()
        asking--
    }
    const call = () => {
        calls++
        const kind = pick(20)
        if (kind < 10) publish.start()
        else if (kind < 13) {
            if (held.length < MAX_HELD) subscribe.start()
        } else if (kind < 16) unsubscribe.start()
        else if (kind === 16) client.retryNow()
        else if (kind === 17) client.start()
        else if (kind === 18) client.logFor(pick(500))
        else if (pick(6) === 0) restart.start()
    }

    let changes = 0
    client.onState(() => {
        changes++
    })
    for (let round = 0; round < rounds; ++round) {
        const startMs = ds.millis()
        while (ds.millis() < startMs + 45000) {
            if (asking < MAX_ASKING) call()
            await ds.sleep(1 + pick(pick(10) ? 200 : 2000))
        }
        client.start()
        while (held.length) await unsubscribe()
        for (const filter of FILTERS) await client.unsubscribe(filter)
        while (asking > 0 || client.state() !== "connected") await ds.sleep(100)
        await ds.sleep(2000)
        say({ calm: round, calls, got, changes, counters: client.counters })
        while (ds.millis() < startMs + 75000) {
            Buffer.alloc(400)
            await ds.sleep(20)
        }
        say({ calmOver: round })
    }
    await ds.sleep(60000)
}
