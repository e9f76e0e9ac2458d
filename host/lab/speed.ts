// How fast a world runs: `npx tsx host/lab/speed.ts`. Device-seconds for each second of CPU time, with
// the firmware connected and idle.
import { World } from "./world"

const CASES = [
    { devices: 1, wifi: false, lazyTurns: true, seconds: 86_400 },
    { devices: 100, wifi: false, lazyTurns: true, seconds: 1000 },
    { devices: 100, wifi: false, lazyTurns: false, seconds: 300 },
    { devices: 100, wifi: true, lazyTurns: true, seconds: 100 },
    { devices: 100, wifi: true, lazyTurns: false, seconds: 60 },
]

async function measure({
    devices,
    wifi,
    lazyTurns,
    seconds,
}: (typeof CASES)[0]) {
    const world = new World({ lazyTurns })
    world.scripted()
    for (let i = 0; i < devices; ++i) {
        const device = await world.device({
            settings: { MQTT_HOST: "broker" },
            wifi,
        })
        device.powerOn()
        if (wifi) device.joinWifi()
    }
    await world.until("connected", 60_000)
    await world.run(10_000)
    const before = process.cpuUsage()
    await world.run(seconds * 1000)
    const { user, system } = process.cpuUsage(before)
    await world.close()
    const rate = Math.round((devices * seconds) / ((user + system) / 1e6))
    console.log(
        `${devices} devices, ${wifi ? "Wi-Fi on a bus" : "no bus"}, ` +
            `${lazyTurns ? "lazy" : "eager"}: ${rate} device-seconds a second`,
    )
}

async function main() {
    for (const one of CASES) await measure(one)
    process.exit()
}

void main()
