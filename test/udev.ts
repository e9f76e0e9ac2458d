// A computer whose serial ports are given: `udevadm`, from which they are listed, is a script in a folder that goes first on the PATH.
import { chmodSync, renameSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { Port } from "../host/flash/ports"

/** What udev calls the things that a port may say of itself. */
const KEYS: [string, keyof Port][] = [
    ["DEVNAME", "path"],
    ["ID_VENDOR_ID", "vendorId"],
    ["ID_MODEL_ID", "productId"],
    ["ID_SERIAL_SHORT", "serialNumber"],
    ["ID_VENDOR_ENC", "manufacturer"],
]

/** Makes `udevadm info -e` name these ports from now on, for whoever has `pathWith(folder)`. */
export function givePorts(folder: string, ports: Port[]) {
    const text = ports.map(port => {
        const known = KEYS.filter(([, key]) => port[key] !== undefined)
        const facts = known.map(([name, key]) => `E: ${name}=${port[key]}\n`)
        return `P: /devices/x\nN: ${port.path}\n${facts.join("")}\n`
    })
    // Somebody may be reading the old one.
    writeFileSync(join(folder, "ports.new"), text.join(""))
    renameSync(join(folder, "ports.new"), join(folder, "ports"))
    const script = join(folder, "udevadm")
    writeFileSync(script, `#!/bin/sh\ncat ${folder}/ports\n`)
    chmodSync(script, 0o755)
}

export function pathWith(folder: string): string {
    return [folder, process.env.PATH].join(delimiter)
}
