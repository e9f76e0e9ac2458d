// The firmware end to end on the real clock, against aedes in this process and against mosquitto.
import assert from "node:assert/strict"
import { createServer, type Server, type Socket } from "node:net"
import { describe, test } from "node:test"
import { Aedes } from "aedes"
import mqtt from "mqtt"
import { freePort, Mosquitto, noMosquitto } from "../mosquitto"
import { RealDevice } from "../real-device"

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

/** @param spoken the version that both come to, as the `connected` line has it */
function scenario(
    makeBroker: (port: number) => Broker,
    version: string,
    spoken: number | undefined,
) {
    return async () => {
        const port = await freePort()
        const broker = makeBroker(port)
        const device = await RealDevice.make({
            id: ID,
            settings: {
                ...SETTINGS,
                MQTT_PORT: `${port}`,
                MQTT_VERSION: JSON.stringify(version),
            },
        })
        const count = (ev: "connected" | "lost" | "retry") =>
            device.said(ev).length
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
            await device.until("connected", () => count("connected") === 1)
            await device.until(
                "online and telemetry",
                () =>
                    heard[`herdless/${ID}/status`] === "online" &&
                    JSON.parse(heard[`herdless/${ID}/telemetry`] ?? "{}")
                        .reconnects === 0,
            )
            await new Promise(done => setTimeout(done, 600))

            watcher.end(true)
            await broker.stop()
            await device.until("lost", () => count("lost") === 1)
            await device.until(
                "three refused attempts",
                () => count("retry") >= 4,
            )

            await broker.start()
            await device.until(
                "connected again",
                () => count("connected") === 2,
            )
            watcher = mqtt.connect({ port, host: "127.0.0.1" })
            watch()
            await device.until(
                "telemetry counts the reconnect",
                () =>
                    JSON.parse(heard[`herdless/${ID}/telemetry`] ?? "{}")
                        .reconnects === 1,
            )

            device.powerOff()
            await device.until(
                "the will says offline",
                () => heard[`herdless/${ID}/status`] === "offline",
            )
            assert.deepEqual(device.panics, [])
            for (const line of device.said("connected"))
                assert.equal(line.mqtt, spoken)
            for (const { delayMs } of device.said("retry"))
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
        "aedes, which has no MQTT 5",
        scenario(port => new AedesBroker(port), "auto", undefined),
    )
    test(
        "mosquitto, in MQTT 5",
        { skip: noMosquitto },
        scenario(port => new Mosquitto(port), "auto", 5),
    )
    test(
        "mosquitto, in MQTT 3.1.1",
        { skip: noMosquitto },
        scenario(port => new Mosquitto(port), "3", undefined),
    )
})
