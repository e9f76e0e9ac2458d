// The serial port a board is on: found by the USB vendors whose chips sit on ESP32 boards, and
// checked to be one that this user may open. What goes wrong here is said with its cure.
import { accessSync, constants, readFileSync, statSync } from "node:fs"
import { userInfo } from "node:os"
import { SerialPort } from "serialport"
import { Trouble } from "./trouble"

/** A port as `serialport` lists it. */
export interface Port {
    path: string
    manufacturer?: string
    serialNumber?: string
    /** Four hexadecimal digits. */
    vendorId?: string
    productId?: string
}

/** The vendors that `devs flash` looks for too. */
const VENDORS: Record<string, string> = {
    "10c4": "Silicon Labs CP210x",
    "303a": "Espressif USB",
    "1a86": "WCH CH340/CH910x",
    "0403": "FTDI",
}

/** Every serial port of this computer. */
export async function listPorts(
    list: () => Promise<Port[]> = () => SerialPort.list(),
): Promise<Port[]> {
    try {
        return await list()
    } catch (e) {
        if (/udevadm/.test((e as Error).message))
            throw new Trouble(
                "can't list serial ports: udevadm is missing; install it (Debian, Ubuntu: apt install udev)",
            )
        throw new Trouble(`can't list serial ports: ${(e as Error).message}`)
    }
}

/**
 * The port meant: the one asked for, or the only one with a board on it.
 * @throws Trouble when there is none, or more than one
 */
export function choosePort(ports: Port[], asked?: string): Port {
    if (asked !== undefined) {
        const found = ports.find(port => port.path === asked)
        if (found) return found
        throw new Trouble(`no port ${asked}. ${inWords(ports)}`)
    }
    const boards = ports.filter(port => vendorOf(port))
    if (boards.length === 1) return boards[0]
    if (boards.length > 1)
        throw new Trouble(
            `${boards.length} boards: say which with --port\n${boards.map(line).join("\n")}`,
        )
    throw new Trouble(
        "no board found: plug it in with a cable that carries data; if it still doesn't show, " +
            `hold BOOT while you plug it in. ${inWords(ports)}`,
    )
}

/** Whose chip is on the other end, when it is one that sits on ESP32 boards. */
export function vendorOf(port: Port) {
    return VENDORS[(port.vendorId ?? "").toLowerCase().padStart(4, "0")]
}

function inWords(ports: Port[]) {
    if (!ports.length) return "This computer has no serial port now."
    return `Serial ports:\n${ports.map(line).join("\n")}`
}

function line(port: Port) {
    const ids = port.vendorId ? `${port.vendorId}:${port.productId}` : "no USB"
    const about = [vendorOf(port) ?? port.manufacturer, port.serialNumber]
    return `  --port ${port.path}  ${[ids, ...about].filter(Boolean).join("  ")}`
}

/**
 * Checks that this user may read and write the port.
 * @param groups text of /etc/group
 * @throws Trouble that names the group which may
 */
export function checkAccess(path: string, groups = groupFile()) {
    try {
        accessSync(path, constants.R_OK | constants.W_OK)
    } catch (e) {
        const { code, message } = e as NodeJS.ErrnoException
        if (code !== "EACCES") throw new Trouble(`${path}: ${message}`)
        const group = groupName(statSync(path).gid, groups)
        throw new Trouble(
            `no permission on ${path}: it belongs to group ${group}, and you are not in it.\n` +
                `Run: sudo usermod -aG ${group} ${userInfo().username}\nthen log out and in again.`,
        )
    }
}

function groupFile(): string {
    try {
        return readFileSync("/etc/group", "utf8")
    } catch {
        return ""
    }
}

function groupName(gid: number, groups: string): string {
    for (const entry of groups.split("\n")) {
        const [name, , id] = entry.split(":")
        if (Number(id) === gid && id) return name
    }
    return `${gid}`
}
