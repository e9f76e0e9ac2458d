// The serial port a board is on: found by the USB vendors whose chips sit on ESP32 boards, and
// checked to be one that this user may open. What goes wrong here is said with its cure.
import { accessSync, constants, readFileSync, statSync } from "node:fs"
import { userInfo } from "node:os"
import { SerialPort } from "serialport"
import { plain } from "../show"
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
        throw new Trouble(`no port ${asked}. ${whatThereIs(ports)}`)
    }
    const boards = ports.filter(port => vendorOf(port))
    if (boards.length === 1) return boards[0]
    if (boards.length > 1)
        throw new Trouble(
            `${boards.length} boards: say which with --port\n${inWords(boards, FLAG)}`,
        )
    throw new Trouble(
        "no board found: plug it in with a cable that carries data; if it still doesn't show, " +
            `hold BOOT while you plug it in. ${whatThereIs(ports)}`,
    )
}

/** Whose chip is on the other end, when it is one that sits on ESP32 boards. */
export function vendorOf(port: Port) {
    return VENDORS[(port.vendorId ?? "").toLowerCase().padStart(4, "0")]
}

/** What a person can copy from a message. */
const FLAG = "  --port "

/** A desktop may list 32 ports that have no socket. */
const MAX_SHOWN = 8

/** USB first. */
function whatThereIs(ports: Port[]) {
    if (!ports.length) return inWords(ports)
    const isUsb = (port: Port) => !!port.vendorId
    const sorted = [...ports.filter(isUsb), ...ports.filter(p => !isUsb(p))]
    const more = ports.length - MAX_SHOWN
    return (
        `Serial ports:\n${inWords(sorted.slice(0, MAX_SHOWN), FLAG)}` +
        (more > 0 ? `\nand ${more} more: npm run monitor -- --list` : "")
    )
}

/** The serial ports of this computer, for people, one a line; `prefix` goes before each. */
export function inWords(ports: Port[], prefix = ""): string {
    if (!ports.length) return "This computer has no serial port now."
    return ports.map(port => prefix + describePort(port)).join("\n")
}

/** Path, USB ids, whose chip or what the device says of itself. */
function describePort(port: Port): string {
    const ids = port.vendorId ? `${port.vendorId}:${port.productId}` : "no USB"
    const about = [vendorOf(port) ?? port.manufacturer, port.serialNumber]
    // Anything can be plugged in, and say anything.
    return plain([port.path, ids, ...about].filter(Boolean).join("  "))
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
        throw new Trouble(`no permission on ${path}: ${whoMay(path, groups)}`)
    }
}

const GROUP_RW = 0o060

/** Who may open a port that this user may not, and how to become one of them. */
function whoMay(path: string, groups: string): string {
    const { gid, mode } = statSync(path)
    if ((mode & GROUP_RW) !== GROUP_RW)
        return (
            "only its owner may use it. udev gives ports to a group (dialout, uucp); " +
            `without udev run: sudo chmod a+rw ${path}`
        )
    const user = userName()
    const { name, members } = groupOf(gid, groups)
    if (members.includes(user))
        return `it belongs to group ${name}. You were put into it after you logged in: log out and in again.`
    return (
        `it belongs to group ${name}, and you are not in it.\n` +
        `Run: sudo usermod -aG ${name} ${user}\nthen log out and in again.`
    )
}

/** Not every user has a name: in a container, for one. */
function userName(): string {
    try {
        return userInfo().username
    } catch {
        return "$USER"
    }
}

function groupFile(): string {
    try {
        return readFileSync("/etc/group", "utf8")
    } catch {
        return ""
    }
}

function groupOf(gid: number, groups: string) {
    for (const entry of groups.split("\n")) {
        const [name, , id, members = ""] = entry.split(":")
        if (Number(id) === gid && id)
            return { name, members: members.split(",") }
    }
    return { name: `${gid}`, members: [] }
}
