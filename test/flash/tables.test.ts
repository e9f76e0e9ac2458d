// `flash`, `bundle` and `deploy`: ports, fleets, boards and esptool's words as tables; no process, no file.
import assert from "node:assert/strict"
import {
    chmodSync,
    mkdtempSync,
    rmSync,
    statSync,
    writeFileSync,
} from "node:fs"
import { spawnSync } from "node:child_process"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { describe, test } from "node:test"
import { parseBoards } from "../../host/flash/boards"
import { chipFound, findEsptool, whyFailed } from "../../host/flash/esptool"
import {
    bridgeCommand,
    bridgeCommandOf,
    encodeFrame,
    FrameDecoder,
} from "../../host/flash/jdusb"
import { readOptions } from "../../host/flash/options"
import { choosePort, listPorts, type Port } from "../../host/flash/ports"
import { deviceSettings, parseFleet } from "../../host/flash/settings"
import { PROJECT } from "../../host/vm/program"

const COM: Port = { path: "/dev/ttyS0" }
const CP2102: Port = {
    path: "/dev/ttyUSB0",
    vendorId: "10c4",
    productId: "ea60",
}
const C3: Port = { path: "/dev/ttyACM0", vendorId: "303A", productId: "1001" }

/** A mouse, a printer: USB, and nothing that sits on a board. */
const OTHER: Port = {
    path: "/dev/ttyACM1",
    vendorId: "046d",
    productId: "c077",
    manufacturer: "Mouse\x1b[2J Works",
}

describe("which port", () => {
    const none = "This computer has no serial port now."
    const table: [string, Port[], string | undefined, Port | RegExp][] = [
        ["the only board", [COM, CP2102, OTHER], undefined, CP2102],
        ["ids in capitals are the same ids", [C3], undefined, C3],
        ["the one asked for", [COM, CP2102, C3], "/dev/ttyACM0", C3],
        ["asked for, whatever is on it", [COM, CP2102], "/dev/ttyS0", COM],
        [
            "no port at all: what to try",
            [],
            undefined,
            new RegExp(`^no board found: .* cable .* hold BOOT .* ${none}$`),
        ],
        [
            "no board, but ports: what there is",
            [COM, OTHER],
            undefined,
            /^no board found: [^]*Serial ports:\n {2}--port \/dev\/ttyACM1 {2}046d:c077 {2}Mouse\[2J Works\n {2}--port \/dev\/ttyS0 {2}no USB$/,
        ],
        [
            "a desktop's many ports: USB first, eight at most",
            [...new Array<Port>(32).fill(COM), OTHER],
            undefined,
            /ports:\n {2}--port \/dev\/ttyACM1 .*(\n {2}--port \/dev\/ttyS0 .*){7}\nand 25 more: npm run monitor -- --list$/,
        ],
        [
            "several boards: say which; the others are left out",
            [CP2102, OTHER, C3],
            undefined,
            /^2 boards: say which with --port\n {2}--port \/dev\/ttyUSB0 {2}10c4:ea60 {2}Silicon Labs CP210x\n {2}--port \/dev\/ttyACM0 {2}303A:1001 {2}Espressif USB$/,
        ],
        [
            "asked for one that isn't there",
            [CP2102],
            "/dev/x",
            /^no port \/dev\/x\. Serial ports:\n {2}--port \/dev\/ttyUSB0 /,
        ],
        [
            "asked for one, and there is none",
            [],
            "/dev/x",
            new RegExp(`^no port /dev/x\\. ${none}$`),
        ],
    ]
    for (const [name, ports, asked, result] of table)
        test(name, () => {
            if (!(result instanceof RegExp))
                return assert.equal(choosePort(ports, asked), result)
            assert.throws(
                () => choosePort(ports, asked),
                (e: Error) => {
                    assert.match(e.message, result)
                    return true
                },
            )
        })

    test("a computer that can't list its ports", async () => {
        await assert.rejects(
            listPorts(() => Promise.reject(new Error("spawn udevadm ENOENT"))),
            /udevadm is missing; install it .*apt install udev/,
        )
        await assert.rejects(
            listPorts(() => Promise.reject(new Error("no such driver"))),
            /^Error: can't list serial ports: no such driver$/,
        )
    })

    test("no permission: which group, and how to join it", () => {
        const folder = mkdtempSync(join(tmpdir(), "herdless-"))
        chmodSync(folder, 0o755)
        const port = (name: string, mode: number) => {
            const path = join(folder, name)
            writeFileSync(path, "")
            chmodSync(path, mode)
            return path
        }
        const group = port("ttyUSB0", 0o060)
        const owner = port("ttyUSB1", 0)
        const { gid } = statSync(group)
        // Root may open anything: another user asks.
        const isRoot = process.getuid?.() === 0
        const other = isRoot ? { uid: 65534, gid: 65534 } : {}
        const username = isRoot ? "nobody" : userInfo().username
        const ask = (path: string, groups: string) =>
            `try { checkAccess(${JSON.stringify(path)}, ${JSON.stringify(groups)}) } catch (e) { console.log(e.message + "\\n--") };`
        const dialout = `audio:x:29:\ndialout:x:${gid}:`
        const script =
            `const { checkAccess } = require(${JSON.stringify(join(PROJECT, "host/flash/ports.ts"))});` +
            ask(group, dialout) +
            ask(group, `${dialout}root,${username}\n`) +
            ask(owner, dialout)
        const run = spawnSync(
            process.execPath,
            ["--import", "tsx", "--eval", script],
            { cwd: PROJECT, encoding: "utf8", ...other },
        )
        rmSync(folder, { recursive: true })
        assert.equal(run.stderr, "")
        assert.deepEqual(run.stdout.split("\n--\n"), [
            `no permission on ${group}: it belongs to group dialout, and you are not in it.\n` +
                `Run: sudo usermod -aG dialout ${username}\nthen log out and in again.`,
            `no permission on ${group}: it belongs to group dialout. ` +
                "You were put into it after you logged in: log out and in again.",
            `no permission on ${owner}: only its owner may use it. udev gives ports to a group ` +
                `(dialout, uucp); without udev run: sudo chmod a+rw ${owner}`,
            "",
        ])
    })
})

describe("esptool", () => {
    const board = { id: "esp32_bare", name: "bare", chip: "esp32" }
    const all = [board, { id: "c3", name: "A C3", chip: "esp32c3" }]

    test("missing: how to install it", () => {
        assert.throws(
            () => findEsptool(undefined, "/nowhere"),
            /esptool is missing[^]*pip install esptool[^]*apt install esptool[^]*--esptool PATH/,
        )
    })
    test("the chip it found, in the words of version 4 and 5", () => {
        const table: [string, string | undefined][] = [
            ["Chip is ESP32-D0WD-V3 (revision v3.0)", "esp32"],
            ["Chip is ESP32-C3 (QFN32) (revision v0.3)", "esp32c3"],
            ["Chip type:          ESP32-S3 (QFN56) (revision v0.2)", "esp32s3"],
            ["Chip is ESP32-PICO-D4 (revision v1.1)", "esp32"],
            ["Connecting......", undefined],
        ]
        for (const [text, chip] of table) assert.equal(chipFound(text), chip)
    })
    test("why it failed", () => {
        const table: [string, RegExp][] = [
            [
                "Chip is ESP32-C3 (QFN32)\nUnexpected chip id",
                /wrong chip: .* Nothing was written[^]* c3 +A C3$/,
            ],
            ["detected esptool.py v3.0; please update your esptool", /too old/],
            ["[Errno 13] Permission denied: '/dev/ttyUSB0'", /no permission/],
            ["port is busy or doesn't exist", /is in use/],
            [
                "Failed to connect to ESP32: No serial data received.",
                /hold BOOT/,
            ],
            ["what?", /its last lines are above/],
        ]
        for (const [text, words] of table)
            assert.match(whyFailed(text, board, all, "/dev/ttyUSB0"), words)
    })
})

test("boards, as devs lists them", () => {
    const listing = [
        "Please select board, available options:",
        "  ESP32:",
        "    --board esp32_bare                 Espressif ESP32 (bare)",
        "  ESP32-C3:",
        "    --board esp32c3_supermini          ESP32-C3 SuperMini",
        "",
        "fatal error: missing --board",
    ].join("\n")
    assert.deepEqual(parseBoards(listing), [
        { id: "esp32_bare", name: "Espressif ESP32 (bare)", chip: "esp32" },
        {
            id: "esp32c3_supermini",
            name: "ESP32-C3 SuperMini",
            chip: "esp32c3",
        },
    ])
})

describe("a fleet's CSV", () => {
    test("columns are keys, an empty cell is none, everything is text", () => {
        const text =
            '\ufeffid,MQTT_USER,SPREAD\r\na1,"a,""b""",\r\n\r\nb2,,5000\r\n'
        assert.deepEqual(parseFleet(text, "devices.csv"), [
            { id: "a1", settings: { MQTT_USER: '"a,\\"b\\""' } },
            { id: "b2", settings: { SPREAD: '"5000"' } },
        ])
    })

    const long = "x".repeat(200)
    const table: [string, string, RegExp][] = [
        [
            "two devices with one id",
            "id,K\nlamp,1\nb,2\nLAMP,3\n",
            /two devices have the id LAMP: lines 2 and 4/,
        ],
        ["no id column", "name\nx\n", /first line needs a column id/],
        ["an empty file", "", /no devices in it/],
        ["only a header", "id,K\n", /no devices in it/],
        [
            "a row too long",
            "id,K\na,1,secret\n",
            /no CSV at line 2: CSV_RECORD_INCONSISTENT_COLUMNS/,
        ],
        [
            "an open quote",
            'id,K\na,"secret\n',
            /no CSV at line \d: CSV_QUOTE_NOT_CLOSED/,
        ],
        [
            "a key too long",
            "id,MUCH_TOO_LONG_A_KEY\na,1\n",
            /column 2 .* at most 13 letters/,
        ],
        ["a key twice", "id,K,K\na,1,2\n", /column K is there twice/],
        ["an id that is no file name", "id\n../x\n", /line 2: allowed as id/],
        [
            "a value too long",
            `id,K\na,${long}\n`,
            /line 2, K: allowed are at most 200 bytes/,
        ],
    ]
    for (const [name, text, words] of table)
        test(name, () => {
            assert.throws(
                () => parseFleet(text, "devices.csv"),
                (e: Error) => {
                    assert.match(e.message, words)
                    assert.ok(
                        !e.message.includes("secret"),
                        "no value is printed",
                    )
                    return true
                },
            )
        })
})

describe("settings of the .env files", () => {
    const empty = mkdtempSync(join(tmpdir(), "herdless-"))
    const device = (settings: Record<string, string>) =>
        deviceSettings(empty, { id: "x", settings })

    test("Wi-Fi is no setting of the program; a number is taken as written", () => {
        assert.deepEqual(
            device({ K: "1", WIFI_SSID: '"lab"', WIFI_PWD: "12345678" }),
            {
                settings: { K: "1" },
                wifi: { ssid: "lab", password: "12345678" },
            },
        )
        assert.equal(device({ WIFI_PWD: '"x"' }).wifi, undefined)
    })
    test("what is too long for the radio", () => {
        const ssid = JSON.stringify("ä".repeat(17))
        assert.throws(() => device({ WIFI_SSID: ssid }), /1 to 32 bytes/)
        const WIFI_PWD = JSON.stringify("x".repeat(65))
        assert.throws(
            () => device({ WIFI_SSID: '"lab"', WIFI_PWD }),
            /at most 64 bytes/,
        )
        rmSync(empty, { recursive: true })
    })
})

describe("frames on a serial line", () => {
    function decoded(bytes: Uint8Array): Uint8Array[] {
        const frames: Uint8Array[] = []
        const decoder = new FrameDecoder(frame => frames.push(frame))
        for (const byte of bytes) decoder.push(Uint8Array.of(byte))
        return frames
    }
    const frame = bridgeCommand(0x81)

    test("a frame between text and noise", () => {
        const line = Buffer.concat([
            Buffer.from("# 12 hello\r\n\xfe\xfe", "latin1"),
            encodeFrame(frame),
            Buffer.from([0xff, 0xfe, 0xfd, 0xfe]),
            encodeFrame(frame),
        ])
        const frames = decoded(line)
        assert.deepEqual(frames, [frame, frame])
        assert.equal(bridgeCommandOf(frames[0]), 0x81)
    })
    test("a frame that is torn, changed, or without end is none", () => {
        const wire = encodeFrame(frame)
        const changed = wire.slice()
        changed[6] ^= 1
        const endless = new Uint8Array(100_000).fill(0x55)
        endless.set([0xfe, 0xfc])
        const line = Buffer.concat([wire.slice(0, 9), wire, changed, endless])
        assert.deepEqual(decoded(line), [frame])
    })
})

describe("flags", () => {
    function read(name: "flash" | "bundle" | "deploy", ...args: string[]) {
        let text = ""
        const result = readOptions(name, args, t => (text += t))
        return { result, text }
    }
    test("help says what a command erases", () => {
        assert.match(
            read("flash", "--help").text,
            /erases what was in the board's flash/,
        )
        assert.match(read("bundle", "--help").text, /touches no board/)
        assert.match(read("deploy", "--help").text, /Other settings stay/)
    })
    test("a flag that can't be used", () => {
        assert.equal(read("flash", "--baud", "1").result, 2)
        assert.match(
            read("flash", "--baud", "1").text,
            /Allowed: 9600 to 4000000/,
        )
        assert.match(
            read("flash", "--device", "x").text,
            /--device needs --fleet/,
        )
        assert.equal(read("deploy", "--board", "x").result, 2)
    })
})
