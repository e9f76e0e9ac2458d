// So many real VMs with one program, on the real clock, all of whose connections go to one port of 127.0.0.1:
// `herd-vm.ts PORT DEVICES SEED PROGRAM SETTINGS`. Ends when its standard input does.
import { VmFleet } from "../fleet/vm-fleet"
import { RealClock } from "../vm/clock"
import { toJson } from "../vm/env"
import { makeFlash } from "../vm/flash-image"
import { loadProgram } from "../vm/program"
import { RealNetwork } from "../vm/real-network"

const [port, devices, seed, program, settings] = process.argv.slice(2)
const given = JSON.parse(settings) as Record<string, string>

async function main() {
    const json = Object.fromEntries(
        Object.entries(given).map(([key, value]) => [key, toJson(value)]),
    )
    const network = new RealNetwork()
    const fleet = new VmFleet({
        devices: Number(devices),
        seed: Number(seed),
        image: await makeFlash(loadProgram(program).bytecode, json),
        clock: new RealClock(),
        lazyTurns: true,
        network: () => ({
            isUp: () => true,
            open: (_host, _port, tls, events) =>
                network.open("127.0.0.1", Number(port), tls, events),
        }),
        connected() {},
        lost() {},
    })
    fleet.powerOn()
}

process.stdin.on("end", () => process.exit())
process.stdin.resume()
void main()
