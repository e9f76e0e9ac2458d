// The firmware end to end on the real clock, against aedes in this process and against mosquitto.
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { createServer, type Server, type Socket } from "node:net"
import { describe, test } from "node:test"
import { Aedes } from "aedes"
import mqtt from "mqtt"
import { RealClock } from "../../host/vm/clock"
import { DeviceVm } from "../../host/vm/device"
import { MemoryFlash } from "../../host/vm/flash"
import { makeFlash } from "../../host/vm/flash-image"
import { loadProgram } from "../../host/vm/program"
import { RealNetwork } from "../../host/vm/real-network"
import { parseLine, type Line } from "../../src/core/line"
import { freePort, Mosquitto, noMosquitto } from "../mosquitto"

/** A broker that can be taken away and brought back. */
interface Broker {
    port: number
    start(): Promise<void>
    stop(): Promise<void>
}

class AedesBroker implements Broker {
    private readonly sockets = new Set<Socket>()
    private server: Server | undefined
    private aedes: Aedes | undefined

    constructor(readonly port: number) {}

    async start() {
        const aedes = await Aedes.createBroker()
        this.aedes = aedes
        const server = createServer(socket => {
            this.sockets.add(socket)
            socket.once("close", () => this.sockets.delete(socket))
            aedes.handle(socket)
        })
        this.server = server
        await new Promise<void>(done =>
            server.listen(this.port, "127.0.0.1", done),
        )
    }

    async stop() {
        const closed = new Promise(done => this.server?.close(done))
        for (const socket of this.sockets) socket.destroy()
        await closed
        await new Promise<void>(done => this.aedes?.close(done))
    }
}

const ID = "b827eb0123456789"
const SETTINGS = {
    MQTT_HOST: '"127.0.0.1"',
    RETRY_MIN: "100",
    RETRY_CAP: "1000",
    TELEMETRY: "1",
    STABLE: "500",
}

/** Waits for something to come true; the limit only bounds a failing test. */
async function until(what: string, holds: () => boolean, limitMs = 10_000) {
    const giveUp = Date.now() + limitMs
    while (!holds()) {
        if (Date.now() > giveUp) assert.fail(`waited in vain: ${what}`)
        await new Promise(done => setTimeout(done, 10))
    }
}

function scenario(makeBroker: (port: number) => Broker) {
    return async () => {
        const port = await freePort()
        const broker = makeBroker(port)
        const image = await makeFlash(loadProgram("src/main.ts").bytecode, {
            ...SETTINGS,
            MQTT_PORT: `${port}`,
        })
        const lines: Line[] = []
        const device = new DeviceVm({
            deviceId: ID,
            clock: new RealClock(),
            network: new RealNetwork(),
            flash: new MemoryFlash(image),
            entropy: randomBytes,
            onConsole: text => {
                const timed = parseLine(text)
                if (timed) lines.push(timed.line)
            },
        })
        const count = (ev: string) => lines.filter(l => l.ev === ev).length
        const heard: Record<string, string> = {}
        await broker.start()
        let watcher = mqtt.connect({ port, host: "127.0.0.1" })
        const watch = () => {
            watcher.on("message", (topic, payload) => {
                heard[topic] = payload.toString()
            })
            watcher.subscribe("herdless/#")
        }
        watch()
        try {
            device.powerOn()
            await until("connected", () => count("connected") === 1)
            await until(
                "online and telemetry",
                () =>
                    heard[`herdless/${ID}/status`] === "online" &&
                    JSON.parse(heard[`herdless/${ID}/telemetry`] ?? "{}")
                        .reconnects === 0,
            )
            await new Promise(done => setTimeout(done, 600))

            watcher.end(true)
            await broker.stop()
            await until("lost", () => count("lost") === 1)
            await until("three refused attempts", () => count("retry") >= 4)

            await broker.start()
            await until("connected again", () => count("connected") === 2)
            watcher = mqtt.connect({ port, host: "127.0.0.1" })
            watch()
            await until(
                "telemetry counts the reconnect",
                () =>
                    JSON.parse(heard[`herdless/${ID}/telemetry`] ?? "{}")
                        .reconnects === 1,
            )

            device.powerOff()
            await until(
                "the will says offline",
                () => heard[`herdless/${ID}/status`] === "offline",
            )
            assert.deepEqual(device.panics, [])
            const delays = lines.flatMap(l => (l.ev === "retry" ? [l] : []))
            for (const { delayMs } of delays)
                assert.ok(delayMs >= 90 && delayMs <= 1000, `${delayMs} ms`)
        } finally {
            device.powerOff()
            watcher.end(true)
            await broker.stop()
            if (broker instanceof Mosquitto) await broker.dispose()
        }
    }
}

describe("an outage, from first telemetry to the will", () => {
    test(
        "aedes",
        scenario(port => new AedesBroker(port)),
    )
    test(
        "mosquitto",
        { skip: noMosquitto },
        scenario(port => new Mosquitto(port)),
    )
})
