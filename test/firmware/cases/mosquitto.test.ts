// A real broker takes everything we send: a long session with mosquitto on the real clock, random
// topics, payloads, subscriptions and reconnects, and a client that looks at every message.
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import mqtt from "mqtt"
import { payloadOf, topicOf } from "../../bytecode/api-message"
import { freePort, Mosquitto, noMosquitto } from "../../mosquitto"
import { RealDevice } from "../../real-device"

const SECONDS = 10
const SEED = randomBytes(2).readUInt16LE()

/** Times another client takes the device's id: what was on its way then may be lost. */
const TAKEOVERS = 2
const LOST_AT_TAKEOVER = 5

/** Messages the device is sent, to send back. */
const ECHOES = 80

const sleep = (ms: number) => new Promise(done => setTimeout(done, ms))

test(
    `mosquitto takes ${SECONDS} s of random packets, and every message arrives as it was sent (seed ${SEED})`,
    { skip: noMosquitto },
    async t => {
        const port = await freePort()
        const folder = mkdtempSync(join(tmpdir(), "herdless-log-"))
        const logFile = join(folder, "mosquitto.log")
        const mosquitto = new Mosquitto(port, [
            `log_dest file ${logFile}`,
            "log_type all",
        ])
        await mosquitto.start()
        const options = {
            host: "127.0.0.1",
            port,
            clientId: "device",
            keepAliveSeconds: 2,
            policy: { minMs: 30, capMs: 100, overloadCapMs: 200 },
        }
        const device = await RealDevice.make({
            id: "b827eb0123456789",
            program: "test/bytecode/api-app.ts",
            settings: {
                SCENE: JSON.stringify(["long", SEED, SECONDS * 1000]),
                OPTIONS: JSON.stringify(options),
            },
        })
        const untilPrint = async (key: string, limitMs: number) => {
            await device.until(
                key,
                () => device.prints(key).length > 0,
                limitMs,
            )
            return device.prints(key)[0]
        }

        const watcher = mqtt.connect({ port, host: "127.0.0.1" })
        const numbers: number[] = []
        const echoes = new Map<number, string>()
        const wrong: string[] = []
        watcher.on("message", (topic, payload) => {
            if (topic.startsWith("echo/out/")) {
                echoes.set(Number(topic.slice(9)), payload.toString("hex"))
                return
            }
            const i = payload.readUInt32LE()
            numbers.push(i)
            if (topic !== topicOf(SEED, i)) wrong.push(`${i}: topic ${topic}`)
            if (!payload.equals(payloadOf(SEED, i)))
                wrong.push(`${i}: ${payload.toString("hex")}`)
        })
        try {
            await watcher.subscribeAsync(["long/#", "echo/out/+"])
            device.powerOn()
            await untilPrint("ready", 10_000)
            const sent = new Map<number, string>()
            for (let n = 0; n < ECHOES; ++n) {
                const payload = randomBytes(n % 10 ? n % 100 : 5 * n)
                sent.set(n, payload.toString("hex"))
                watcher.publish(`echo/in/${n}`, payload, {
                    qos: (n & 1) as 0 | 1,
                })
                await sleep((SECONDS * 800) / ECHOES)
                if (n % (ECHOES / TAKEOVERS) === 20)
                    (
                        await mqtt.connectAsync({
                            port,
                            host: "127.0.0.1",
                            clientId: "device",
                            reconnectPeriod: 0,
                        })
                    ).end(true)
            }
            const { made, answers, counters, got } = await untilPrint(
                "made",
                SECONDS * 1000 + 20_000,
            )
            t.diagnostic(JSON.stringify({ made, got, answers, counters }))
            await sleep(300)
            assert.deepEqual(wrong, [])
            assert.deepEqual(device.panics, [])
            for (const [n, payload] of echoes)
                assert.equal(payload, sent.get(n), `echo ${n}`)
            assert.ok(echoes.size > 0.8 * ECHOES, `${echoes.size} echoes`)
            assert.equal(new Set(numbers).size, numbers.length, "duplicates")
            for (let at = 1; at < numbers.length; ++at)
                assert.ok(numbers[at] > numbers[at - 1], "order")
            const missing = made - numbers.length
            const mayMiss = counters.dropped + TAKEOVERS * LOST_AT_TAKEOVER
            assert.ok(missing <= mayMiss, `${missing} of ${made} missing`)
            assert.ok(made > SECONDS * 12, `only ${made} messages`)
            assert.ok(counters.losses <= TAKEOVERS, `${counters.losses} losses`)
            assert.ok(counters.connects > TAKEOVERS)
            // What mosquitto thinks of it.
            const log = readFileSync(logFile, "utf8")
            assert.match(log, /Received SUBSCRIBE from device/)
            assert.match(log, /Received UNSUBSCRIBE from device/)
            assert.doesNotMatch(log, /error|malformed|invalid|exceeded/i)
        } finally {
            device.powerOff()
            await watcher.endAsync(true)
            await mosquitto.dispose()
            rmSync(folder, { recursive: true, force: true })
        }
    },
)
