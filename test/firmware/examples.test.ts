// The programs in devs/ that a user copies, each run in the VM; and what a board's light and button do in the firmware.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import {
    AnalogSensorServer,
    CHANGE,
    ControlCmd,
    JDServiceServer,
    PACKET_PROCESS,
    RelayReg,
    SRV_RELAY,
    SRV_TEMPERATURE,
    type Packet,
} from "jacdac-ts"
import type { LabDevice } from "../../host/lab/device"
import { World, type DeviceSpec } from "../../host/lab/world"

const SENSOR_ID = "5e45000000000001"
const RELAY_ID = "5e45000000000002"
const MINUTE_MS = 60_000

/** A world with one device that has joined Wi-Fi, and what its status light is told, as hex RGB. */
async function inWorld(
    spec: DeviceSpec,
    run: (world: World, device: LabDevice, light: string[]) => Promise<void>,
) {
    const world = new World()
    const device = await world.device({ wifi: true, ...spec })
    const light: string[] = []
    device.bus!.jacdac.on(PACKET_PROCESS, (packet: Packet) => {
        if (
            packet.isCommand &&
            packet.serviceIndex === 0 &&
            packet.serviceCommand === ControlCmd.SetStatusLight
        )
            light.push(Buffer.from(packet.data.subarray(0, 3)).toString("hex"))
    })
    try {
        await run(world, device, light)
        assert.deepEqual(device.panics, [])
    } catch (e) {
        ;(e as Error).message += `\n--- the log's end:\n${world.tail(40)}`
        throw e
    } finally {
        await world.close()
    }
}

/** Without those that only repeat the one before. */
const changes = (of: string[]) => of.filter((x, i) => x !== of[i - 1])

describe("examples", () => {
    test("blink-on-state: yellow while it tries, green once connected", () =>
        inWorld(
            { program: "devs/blink-on-state.ts" },
            async (world, device, light) => {
                const broker = world.broker("broker.example:1883")
                device.powerOn()
                device.joinWifi()
                await world.until("connected", MINUTE_MS)
                await world.run(100)
                assert.deepEqual(changes(light), ["1e1400", "002800"])

                broker.crash()
                await world.until(() => light.at(-1) === "1e1400", 1000)
                broker.start()
                await world.until(() => light.at(-1) === "002800", MINUTE_MS)
            },
        ))

    test("flash outbox: an alarm while there is no network, then a power cut: it arrives, once", () => {
        const spec = { program: "devs/flash-outbox.ts", button: true }
        return inWorld(spec, async (world, device) => {
            const broker = world.broker("broker.example:1883")
            device.powerOn()
            await world.run(3000)
            device.button!.press(100)
            await world.run(1000)
            const texts = () => device.console.map(c => c.text)
            assert.ok(texts().includes("> accepted"))
            assert.equal(device.flashWrites, 0)
            await world.run(10_000)
            assert.equal(device.flashWrites, 1)
            device.powerCycle()
            device.joinWifi()
            for (let starts = 0; starts < 2; ++starts) {
                await world.until("connected", MINUTE_MS)
                await world.run(1000)
                device.powerCycle()
                await world.run(3000)
            }
            const [alarm, ...more] = broker.messages
            assert.match(`${alarm.payload}`, /^[-0-9a-f]{35} pressed$/)
            assert.deepEqual([alarm.topic, alarm.qos, more], ["alarm", 1, []])
        })
    })

    test("thermometer: a change of half a degree is reported, less is not; retained, and gone with the device", () =>
        inWorld({ program: "devs/thermometer.ts" }, async (world, device) => {
            const broker = world.broker("broker.example:1883")
            const sensor = new AnalogSensorServer(SRV_TEMPERATURE, {
                readingValues: [20],
            })
            device.bus!.add(sensor, SENSOR_ID)
            device.powerOn()
            device.joinWifi()
            await world.until("connected", MINUTE_MS)
            for (const degrees of [21, 21.3, 21.4, 22.1]) {
                sensor.reading.setValues([degrees])
                void sensor.reading.sendGetAsync()
                await world.run(500)
            }
            const topic = `home/${device.id}/temperature`
            assert.deepEqual(
                broker.messages.map(m => `${m.topic} ${m.payload} ${m.retain}`),
                [`${topic} 21 true`, `${topic} 22.1 true`],
            )
            device.powerOff()
            await world.until(() => !broker.retained.has(topic), 2 * MINUTE_MS)
        }))

    test("relay: switched once by a request that comes twice, answered both times; nonsense is told so", () =>
        inWorld({ program: "devs/relay.ts" }, async (world, device) => {
            const broker = world.broker("broker.example:1883")
            const relay = new JDServiceServer(SRV_RELAY)
            const enabled = relay.addRegister(RelayReg.Active, [false])
            device.bus!.add(relay, RELAY_ID)
            let switched = 0
            enabled.on(CHANGE, () => switched++)
            device.powerOn()
            device.joinWifi()
            await world.until("connected", MINUTE_MS)
            await world.run(1000)
            const asked: [string, string][] = [
                ["relay/wall/k1", "on"],
                ["relay/wall/k1", "on"],
                ["relay/wall/k2", "off"],
                ["relay/wall/k1", "on"],
                ["relay/wall/k3", "half"],
            ]
            for (const [topic, payload] of asked) {
                broker.publish(topic, payload)
                await world.run(1000)
            }
            assert.deepEqual(
                broker.messages.map(m => `${m.topic} ${m.payload}`),
                [
                    "relay/wall/k1/200 on",
                    "relay/wall/k1/200 on",
                    "relay/wall/k2/200 off",
                    "relay/wall/k1/200 on",
                    "relay/wall/k3/400 on or off",
                ],
            )
            assert.equal(switched, 2)
            assert.deepEqual(enabled.values(), [0])
        }))

    test("tls-credentials: TLS, with user and password from settings", () =>
        inWorld(
            {
                program: "devs/tls-credentials.ts",
                settings: {
                    MQTT_HOST: "broker.example",
                    MQTT_USER: "lamp",
                    MQTT_PWD: '"0123"',
                },
            },
            async (world, device) => {
                const broker = world.scripted("broker.example:8883")
                device.powerOn()
                device.joinWifi()
                await world.until("connected", MINUTE_MS)
                assert.equal(device.last("attempt").proto, "tls")
                const { packet } = broker.sent("connect")[0]
                assert.equal(packet.username, "lamp")
                assert.equal(`${packet.password}`, "0123")
            },
        ))
})

test("fleet-policy: what the broker keeps for all is what this one waits, after a power cut too", () =>
    inWorld({ program: "devs/fleet-policy.ts" }, async (world, device) => {
        const broker = world.broker("broker.example:1883")
        const policy = {
            issue: 1,
            minMs: 20_000,
            capMs: 120_000,
            spreadMs: 0,
            overloadCapMs: 3_600_000,
            jitter: "proportional",
        }
        broker.publish("lamps/policy", JSON.stringify(policy), { retain: true })
        device.powerOn()
        device.joinWifi()
        await world.until("connected", MINUTE_MS)
        assert.ok(device.last("retry").delayMs < 3000, "its own, at first")
        // It is stored once it has proved good.
        await world.run(30 * MINUTE_MS)
        broker.crash()
        await world.run(1000)
        assert.ok(device.last("retry").ceilingMs >= 20_000)

        broker.start()
        device.powerCycle()
        device.joinWifi()
        await world.until(() => device.said("retry").length > 0, MINUTE_MS)
        await world.run(10_000)
        assert.ok(device.last("retry").ceilingMs >= 20_000, "from flash")
    }))

describe("the firmware on a board", () => {
    test("held, it blinks red; its button, held down for 3 s, ends the hold", () =>
        inWorld(
            { button: true, settings: { MQTT_HOST: "broker", RST_BURST: 1 } },
            async (world, device, light) => {
                world.broker("broker:1883")
                device.powerOn()
                device.joinWifi()
                await world.until("connected", MINUTE_MS)
                assert.deepEqual(light, [], "dark while all is well")

                for (let crash = 0; crash < 2; crash++) {
                    device.crash()
                    const { length } = device.said("boot")
                    await world.until(
                        () => device.said("boot").length > length,
                        MINUTE_MS,
                    )
                }
                device.panics.length = 0
                await world.until(
                    () => device.said("held").length > 0,
                    MINUTE_MS,
                )
                await world.run(2500)
                assert.deepEqual(light.slice(0, 3), [
                    "ff0000",
                    "000000",
                    "ff0000",
                ])

                device.button!.press(1000)
                await world.run(3000)
                assert.ok(device.last("held").leftMs > 0, "1 s is too short")

                device.button!.press(4000)
                await world.until(
                    () => device.last("held").leftMs === 0,
                    MINUTE_MS,
                )
                assert.equal(
                    device.last("held").reason,
                    "cleared by the button",
                )
                await world.until("connected", MINUTE_MS)
            },
        ))
})
