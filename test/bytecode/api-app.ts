// An application of the library that plays one scene, for the tests of test/firmware/cases: setting
// SCENE is `["name", argument]`, OPTIONS what startMqtt gets besides the host. What it
// sees and is told it prints, one JSON object a line.
import * as ds from "@devicescript/core"
import { readRaw } from "../../src/device/settings"
import {
    defaultPolicy,
    dropNewest,
    dropOldest,
    latestPerTopic,
    messageText,
    mqtt5,
    qos1,
    startMqtt,
    type Client,
    type LinkHandler,
    type Message,
} from "../../src/index"
import { badArguments } from "./api-bad"
import { badQos, publishAll } from "./api-qos1"
import { requests } from "./api-request"
import { longSession } from "./api-long"
import { optionRows } from "./api-options"
import { randomApp } from "./api-random"

function say(what: any) {
    console.data(JSON.stringify(what) as any)
}

async function setting(key: string): Promise<any> {
    const text = await readRaw(key)
    return text ? JSON.parse(text) : undefined
}

async function settled(name: string) {
    while (client.state() !== name) await ds.sleep(1)
}

/** A handler that prints what it gets. */
function printer(filter: string, index = 0) {
    return (m: Message) => {
        const text = messageText(m)
        say({
            got: filter,
            index,
            topic: m.topic.slice(0, 40),
            bytes: m.payload.length,
            text: text ? text.slice(0, 20) : "",
        })
    }
}

/** Subscribes to each filter from a fiber of its own, so that they are asked for at once. */
function listen(filters: string[], qos: 0 | 1) {
    const ask = async (i: number) => {
        const filter = filters[i]
        const is = await client.subscribe(filter, printer(filter, i), qos)
        say({ sub: filter, is })
    }
    for (let i = 0; i < filters.length; ++i) ask.start(i)
}

/** Once connected, listens to some filters after the other, each time with the last identifier set to a number. */
async function listenFrom(steps: [lastId: number, filters: string[]][]) {
    await settled("connected")
    for (const step of steps) {
        ;(client.session as any).lastPacketId = step[0]
        listen(step[1], 0)
        await ds.sleep(500)
    }
}

/** Counts outcomes by their first word. */
class Tally {
    readonly counts: any = {}
    total = 0
    add(outcome: string) {
        const colon = outcome.indexOf(":")
        const word = colon < 0 ? outcome : outcome.slice(0, colon)
        this.counts[word] = (this.counts[word] ? this.counts[word] : 0) + 1
        this.total++
    }
    print() {
        say({ tally: this.counts, counters: client.counters })
    }
}

/** Publishes `count` numbered messages, each as soon as the last is answered. */
async function loop(count: number) {
    const tally = new Tally()
    for (let i = 0; i < count; ++i)
        tally.add(await client.publish("loop", `${i}`))
    tally.print()
}

/**
 * Publishes `count` numbered messages without waiting for any answer, a hundred at a time: five hundred
 * fibers that are only started fill three quarters of the heap by themselves.
 */
async function burst(count: number) {
    const tally = new Tally()
    const one = async (i: number) => {
        tally.add(await client.publish("burst", `${i}`))
    }
    for (let i = 0; i < count; ++i) {
        one.start(i)
        if (i - Math.idiv(i, 100) * 100 === 99) await ds.sleep(1)
    }
    while (tally.total < count) await ds.sleep(10)
    tally.print()
}

/** Publishes a numbered message every `everyMs`, for `forMs`. */
async function flood(everyMs: number, forMs: number, bytes: number) {
    const tally = new Tally()
    const rest = Buffer.alloc(bytes).toString("hex").slice(0, bytes)
    const endMs = ds.millis() + forMs
    for (let i = 0; ds.millis() < endMs; ++i) {
        tally.add(await client.publish("flood", `${i} ${rest}`))
        await ds.sleep(everyMs)
    }
    tally.print()
}

/** Handlers that do something: what comes on `do/<what>`. */
async function puppet() {
    const own = printer("own")
    await client.subscribe("do/echo", async m => {
        say({ echo: await client.publish("echo", m.payload) })
    })
    await client.subscribe("do/sub", async m => {
        say({ is: await client.subscribe(messageText(m), own) })
    })
    await client.subscribe("do/unsub", async m => {
        say({ is: await client.unsubscribe(messageText(m), own) })
    })
    await client.subscribe("do/throw", () => {
        throw new Error("a handler's fault")
    })
    await client.subscribe("do/dereference", m => {
        say((m as any).missing.field)
    })
    await client.subscribe("do/block", async () => {
        say({ blocked: true })
        await ds.suspend()
    })
    await client.subscribe("do/slow", async m => {
        await ds.sleep(1000)
        say({ slow: messageText(m).slice(0, 20) })
    })
    await client.subscribe("do/nap", async m => {
        await ds.sleep(parseInt(messageText(m)))
    })
    await client.subscribe("do/bug", () => {
        client.wire = () => {
            client.wire = undefined
            throw new Error("a bug of the client")
        }
    })
    await client.subscribe("do/stop", async () => {
        client.stop()
        await settled("halted")
        client.start()
        say({ restarted: true })
    })
    await client.subscribe("do/count", () => {
        say({ counters: client.counters, fibers: client.state() })
    })
    say({ ready: true })
}

/** Stops `afterMs` into a state, and starts again after `pauseMs`. */
async function stopIn(name: string, pauseMs: number, afterMs: number) {
    if (name === "disconnecting" || name === "halted") {
        await settled("connected")
        client.stop()
    }
    if (name === "noLink") changeLink("down")
    await settled(name)
    if (afterMs) await ds.sleep(afterMs)
    say({ stopIn: client.state() })
    client.stop()
    if (name === "noLink") {
        await ds.sleep(1000)
        changeLink("up")
    }
    await ds.sleep(pauseMs)
    say({ then: client.state() })
    client.start()
    await settled("connected")
    say({ back: true })
}

/** Publishes before, while and after it is stopped. */
async function stopped() {
    const outcomes: string[] = []
    await settled("connected")
    outcomes.push(await client.publish("t", "1"))
    client.stop()
    await settled("halted")
    outcomes.push(await client.publish("t", "2"))
    client.start()
    outcomes.push(await client.publish("t", "3"))
    await settled("connected")
    await ds.sleep(1000)
    outcomes.push(await client.publish("t", "4"))
    say({ outcomes })
}

/** Many subscriptions, of which every third is dropped. */
async function many(count: number) {
    const own = printer("many")
    const tally = new Tally()
    const ask = async (i: number) => {
        tally.add(await client.subscribe(`many/${i}`, own))
    }
    for (let i = 0; i < count; ++i) ask.start(i)
    while (tally.total < count) await ds.sleep(10)
    for (let i = 0; i < count; i += 3)
        tally.add(await client.unsubscribe(`many/${i}`, own))
    tally.print()
}

/** Tries every row of the table for some options, and prints the error of each. */
async function tryOptions(names: string[]) {
    for (const name of names) {
        let row = 0
        for (const one of optionRows(name)) {
            const given = one.options
            const all: any = { host: "nowhere" }
            for (const key of Object.keys(given)) all[key] = given[key]
            let threw = ""
            try {
                startMqtt(all).stop()
            } catch (e) {
                const { name: kind, message } = e as Error
                threw = `${kind}: ${message}`
            }
            say({ option: name, row: row++, threw, expected: one.error })
            await ds.sleep(1)
        }
    }
}

let changeLink: LinkHandler = () => {}
const scene = await setting("SCENE")
const options: any = (await setting("OPTIONS")) ?? {}
if (!options.host) options.host = "broker"
if (options.policy) {
    const policy: any = defaultPolicy()
    for (const key of Object.keys(options.policy))
        policy[key] = options.policy[key]
    options.policy = policy
}
if (scene[1] === "noLink")
    options.link = (changed: LinkHandler) => {
        changeLink = changed
    }
/** What goes when an outbox is full, by name. */
function overflowOf(name: string) {
    switch (name) {
        case "newest":
            return dropNewest
        case "latest":
            return latestPerTopic
        default:
            return dropOldest
    }
}

if (options.overflow) options.overflow = overflowOf(options.overflow)
if (options.qos1) {
    const { overflow } = options.qos1
    if (overflow) options.qos1.overflow = overflowOf(overflow)
    options.qos1 = qos1(options.qos1)
}
if (options.codec === "mqtt5") options.codec = mqtt5()
const client: Client = startMqtt(options)
const [name, a, b, c, d] = scene
switch (name) {
    case "listen":
        await settled("connected")
        listen(a, b ? b : 0)
        break
    case "listenNow":
        listen(a, 0)
        break
    case "listenFrom":
        await listenFrom(a)
        break
    case "loop":
        if (b) await settled(b)
        await loop(a)
        break
    case "burst":
        if (b) await settled(b)
        await burst(a)
        break
    case "flood":
        await flood(a, b, c ? c : 0)
        break
    case "puppet":
        await settled("connected")
        await puppet()
        break
    case "stopIn":
        await stopIn(a, b, c ? c : 0)
        break
    case "long":
        await longSession(client, a, b, say)
        break
    case "stopped":
        await stopped()
        break
    case "many":
        await settled("connected")
        await many(a)
        break
    case "options":
        client.stop()
        await tryOptions(a)
        break
    case "bad":
        await badArguments(client, say)
        break
    case "publishAll":
        if (c) await settled(c)
        await publishAll(client, a, b, d ? d : 0, say)
        break
    case "requests":
        await requests(client, a, b, say)
        break
    case "badQos":
        await badQos(client, say)
        break
    case "random":
        await randomApp(client, a, b, say)
        break
}
say({ played: name })
