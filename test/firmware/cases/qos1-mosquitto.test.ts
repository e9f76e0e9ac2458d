// QoS 1 against a real mosquitto on the real clock: the device is thrown out again and again, with its session kept and lost;
// every message accepted arrives, in order, again only as the same message.
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { test } from "node:test"
import mqtt from "mqtt"
import { RealClock } from "../../../host/vm/clock"
import { DeviceVm } from "../../../host/vm/device"
import { MemoryFlash } from "../../../host/vm/flash"
import { makeFlash } from "../../../host/vm/flash-image"
import { loadProgram } from "../../../host/vm/program"
import { RealNetwork } from "../../../host/vm/real-network"
import { freePort, Mosquitto, noMosquitto } from "../../mosquitto"

const MESSAGES = 200
const EVERY_MS = 20
const TAKEOVERS = 6

const sleep = (ms: number) => new Promise(done => setTimeout(done, ms))

test(
    `mosquitto: ${MESSAGES} messages of QoS 1, ${TAKEOVERS} take-overs, none lost`,
    { skip: noMosquitto },
    async t => {
        const port = await freePort()
        const host = "127.0.0.1"
        const mosquitto = new Mosquitto(port)
        await mosquitto.start()
        const console: string[] = []
        const options = {
            host,
            port,
            clientId: "device",
            qos1: { entries: 100, overflow: "newest" },
            policy: { minMs: 30, capMs: 100, overloadCapMs: 200 },
        }
        const topics = ["once/a", "once/b"]
        const image = await makeFlash(
            loadProgram("test/bytecode/api-app.ts").bytecode,
            {
                SCENE: JSON.stringify([
                    "publishAll",
                    topics,
                    MESSAGES,
                    "connected",
                    EVERY_MS,
                ]),
                OPTIONS: JSON.stringify(options),
            },
        )
        const device = new DeviceVm({
            deviceId: "b827eb0123456789",
            clock: new RealClock(),
            network: new RealNetwork(),
            flash: new MemoryFlash(image),
            entropy: randomBytes,
            onConsole: text => console.push(text),
        })
        const watcher = mqtt.connect({ port, host })
        const got: { topic: string; number: number }[] = []
        watcher.on("message", (topic, payload) => {
            got.push({ topic, number: Number(payload.toString()) })
        })
        const settled = () => console.filter(l => l.includes('{"settled":'))
        try {
            await watcher.subscribeAsync("once/+", { qos: 1 })
            device.powerOn()
            for (let i = 0; i < TAKEOVERS; ++i) {
                await sleep(1200)
                // Another client with our identifier; it ends our session, or leaves it.
                const other = await mqtt.connectAsync({
                    port,
                    host,
                    clientId: "device",
                    clean: i % 2 === 0,
                    reconnectPeriod: 0,
                })
                other.end(true)
            }
            const giveUpMs = Date.now() + 60_000
            while (settled().length < MESSAGES && Date.now() < giveUpMs)
                await sleep(20)
            assert.equal(
                settled().filter(l => l.includes('"acknowledged"')).length,
                MESSAGES,
                console.slice(-20).join("\n"),
            )
            await sleep(200)
            const sessions = console.filter(l => l.includes('"ev":"connected"'))
            assert.ok(
                sessions.some(l => l.includes('"session":true')),
                sessions.join("\n"),
            )
            assert.ok(
                sessions.length > TAKEOVERS / 2,
                `${sessions.length} sessions`,
            )
            for (const topic of topics) {
                const numbers = got
                    .filter(g => g.topic === topic)
                    .map(g => g.number)
                const firsts = [...new Set(numbers)]
                assert.equal(firsts.length, MESSAGES / 2, topic)
                assert.deepEqual(
                    firsts,
                    [...firsts].sort((a, b) => a - b),
                )
            }
            t.diagnostic(`${got.length - MESSAGES} came twice`)
            assert.ok(got.length - MESSAGES <= 4 * TAKEOVERS)
        } finally {
            device.powerOff()
            await watcher.endAsync(true)
            await mosquitto.dispose()
        }
    },
)
