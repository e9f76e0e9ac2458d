// `npm run flash` up to the hardware: the real devs and the real esptool write to a chip in download mode on a
// pseudo-terminal, and a VM boots from what it then holds. `npm run deploy` to a VM on such a line.
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { after, describe, test, type TestContext } from "node:test"
import { BoardBus } from "../../host/flash/board-bus"
import type { Board } from "../../host/flash/boards"
import { findEsptool } from "../../host/flash/esptool"
import { sendParcel } from "../../host/flash/send"
import { writeImage } from "../../host/flash/write"
import { loadProgram, PROJECT } from "../../host/vm/program"
import { FlashBench, SECRET, WIFI_SECRET } from "./bench"
import { bootStore } from "./boot"
import { ChipInDownloadMode } from "./chip"
import { hasPty, openPty } from "./pty"
import { madeUpRuntime } from "./runtime"
import { SerialBoard } from "./serial-board"

function esptool(): string | undefined {
    try {
        return findEsptool(undefined)
    } catch {
        return undefined
    }
}

const STORE = { start: 0x1c0000, end: 0x200000 }
const USB = { vendorId: "303a", productId: "1001" }

/** This project, whose program need not be compiled again: for tests that end before it is sent. */
const COMPILED = ["--project", PROJECT]

/** A pseudo-terminal for the length of a test. */
async function port(path: string, t: TestContext) {
    const pty = await openPty(path)
    t.after(() => pty.close())
    return pty
}

/** How many programs that were given this port are running, socat not counted. */
function running(path: string): number {
    const { stdout } = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" })
    const lines = stdout.split("\n").filter(line => line.includes(path))
    return lines.filter(line => !line.startsWith("socat")).length
}

const skip = !hasPty
    ? "socat is not installed"
    : esptool()
      ? false
      : "esptool is not installed"

describe("npm run flash", { skip, concurrency: 3 }, () => {
    const bench = new FlashBench()
    after(() => bench.remove())
    const ports = [0, 1, 2, 3].map(n => bench.portPath(n))
    bench.givePorts(ports.map(path => ({ path, ...USB })))

    test("a blank board gets runtime, program, settings and Wi-Fi, and starts", async t => {
        const pty = await port(ports[0], t)
        const chip = new ChipInDownloadMode("esp32c3", pty.board)
        const file = bench.runtimeFile("esp32c3")
        const { code, out, err } = await bench.run("flash", [
            ...["--board", "esp32c3_supermini", "--file", file],
            ...["--port", ports[0], "--baud", "921600"],
        ])
        assert.equal(code, 0, out + err)
        assert.match(
            out,
            /run: \S+ --port \S+ttyUSB0 --baud 921600 write_flash 0x0 \S+-0x0\.bin/,
        )
        assert.match(out, /Hash of data verified/)
        const runtime = madeUpRuntime("esp32c3")
        assert.deepEqual(chip.flash.subarray(0, runtime.length), runtime)
        const store = chip.flash.subarray(STORE.start, STORE.end)
        const booted = await bootStore(store, ["MQTT_PWD", "wifi_psk"])
        assert.match(booted.console.join("\n"), /> host is broker\.lan/)
        assert.deepEqual(booted.values, {
            MQTT_PWD: `"${SECRET}"`,
            wifi_psk: WIFI_SECRET,
        })
        assert.ok(!(out + err).includes(SECRET))
        assert.ok(!(out + err).includes(WIFI_SECRET))
    })

    /** The step that touches the board, alone. */
    async function write(board: Board, file: string, port: string) {
        const all = [
            board,
            { id: "esp32c3_supermini", name: "SuperMini", chip: "esp32c3" },
        ]
        const target = { board, all, port, esptool: esptool()!, baud: 115200 }
        await writeImage(target, file, {
            cwd: bench.project,
            env: bench.env(),
        })
    }

    test("wrong chip: which it is, and the boards that have it; nothing is written", async t => {
        const pty = await port(ports[1], t)
        const chip = new ChipInDownloadMode("esp32c3", pty.board)
        const board = { id: "esp32_bare", name: "bare", chip: "esp32" }
        await assert.rejects(
            write(board, bench.runtimeFile("esp32"), ports[1]),
            /wrong chip: the board on \S+ is an esp32c3, esp32_bare has an esp32\. Nothing was written[^]*esp32c3_supermini/,
        )
        assert.ok(chip.flash.every(byte => byte === 0xff))
    })

    test("a board that isn't in download mode: how to bring it there", async t => {
        await port(ports[2], t)
        const board = { id: "esp32_bare", name: "bare", chip: "esp32" }
        const file = join(bench.folder, "small-0x1000.bin")
        writeFileSync(file, madeUpRuntime("esp32").subarray(0, 4096))
        await assert.rejects(
            write(board, file, ports[2]),
            /the chip on \S+ does not answer: hold BOOT/,
        )
    })

    test("Ctrl-C while it writes: nothing of it goes on", async t => {
        await port(ports[3], t)
        const { child, ended, done } = bench.start(
            "flash",
            [
                ...["--board", "esp32c3_bare", "--port", ports[3]],
                ...["--file", bench.runtimeFile("esp32c3"), ...COMPILED],
            ],
            { ESPTOOL_CONNECT_ATTEMPTS: "0" },
        )
        while (!ended.out.includes("Connecting") && child.exitCode === null)
            await new Promise(wait => setTimeout(wait, 20))
        assert.ok(running(ports[3]) > 0, ended.out + ended.err)
        child.kill("SIGINT")
        assert.equal((await done).code, 130)
        assert.match((await done).err, /interrupted/)
        assert.equal(running(ports[3]), 0)
    })

    test("several boards: said before anything takes long", async () => {
        const env = { PATH: bench.barePath }
        const several = await bench.run(
            "flash",
            ["--board", "esp32_bare", "--esptool", "x"],
            env,
        )
        assert.equal(several.code, 1)
        assert.match(several.err, /^npm run flash: 4 boards: say which/)
    })
})

describe(
    "npm run deploy",
    { skip: !hasPty && "socat is not installed" },
    () => {
        const bench = new FlashBench()
        after(() => bench.remove())

        test("program, settings, Wi-Fi and the end of a hold arrive, and the program starts", async t => {
            const pty = await port(bench.portPath(), t)
            const board = new SerialBoard(pty.board)
            board.powerOn()
            t.after(() => board.powerOff())
            const parcel = {
                settings: { MQTT_HOST: '"broker.lan"', MQTT_PWD: '"\xfe\xfe"' },
                wifi: { ssid: "lab", password: WIFI_SECRET },
                bytecode: loadProgram("src/main.ts").bytecode,
            }
            const stop = new AbortController()
            for (const isNew of [true, false]) {
                const bus = await BoardBus.open(bench.portPath(), stop.signal)
                try {
                    assert.equal(await sendParcel(bus, parcel, () => {}), isNew)
                } finally {
                    await bus.close()
                }
                // It names no user: then there is no password in MQTT.
                await board.until(() =>
                    board.said(/"key":"MQTT_PWD","value":"\(secret\)"/),
                )
                board.console.length = 0
            }
            assert.ok(
                board.received.some(f => f.includes(`lab\0${WIFI_SECRET}`)),
            )
            const { values } = await bootStore(board.flash.image, [
                "MQTT_PWD",
                "CLEAR_HOLD",
            ])
            assert.deepEqual(values, {
                MQTT_PWD: '"\xfe\xfe"',
                // The firmware has taken it: there is no hold any more.
                CLEAR_HOLD: undefined,
            })
        })

        test("a port in use, and one that is unplugged in the middle", async t => {
            const path = bench.portPath(2)
            const pty = await port(path, t)
            const board = new SerialBoard(pty.board)
            board.powerOn()
            t.after(() => board.powerOff())
            const { signal } = new AbortController()
            const bus = await BoardBus.open(path, signal)
            t.after(() => bus.close())
            await assert.rejects(BoardBus.open(path, signal), {
                message: `${path} is in use: end the monitor, or whatever else has it open`,
            })
            const { bytecode } = loadProgram("src/main.ts")
            const parcel = { settings: {}, wifi: undefined, bytecode }
            let part = 0
            const sending = sendParcel(bus, parcel, sent => {
                part = sent
                if (part > 0.3) void pty.close()
            })
            await assert.rejects(sending, {
                message: `${path} is gone: was it unplugged?`,
            })
            assert.ok(part > 0.3 && part < 1, `${part} of it was sent`)
        })

        test("a port on which no runtime answers", async t => {
            await port(bench.portPath(1), t)
            bench.givePorts([{ path: bench.portPath(1), ...USB }])
            const { code, err } = await bench.run("deploy", COMPILED)
            assert.equal(code, 1)
            assert.match(err, /no DeviceScript runtime answers on \S+ttyUSB1/)
        })
    },
)
