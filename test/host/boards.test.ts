// The boards in boards/: the files against their documentation, against `devs`, and in the image a board gets.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { after, describe, test } from "node:test"
import { findBoard } from "../../host/flash/boards"
import { runDevsSync } from "../../host/flash/devs"
import { runtimeImage } from "../../host/flash/runtime"
import { loadProgram, PROJECT } from "../../host/vm/program"
import { FlashBench } from "../flash/bench"
import { madeUpRuntime } from "../flash/runtime"

interface BoardFile {
    devName: string
    productId: string
    archId: string
    led: { pin: number; type?: number; isMono?: boolean }
    log: { pinTX: number | string }
    pins: Record<string, number>
    services: { service: string; pin: number }[]
}

const FOLDER = join(PROJECT, "boards")
const ids = readdirSync(FOLDER)
    .filter(name => name.endsWith(".board.json"))
    .map(name => name.replace(".board.json", ""))

function read(id: string): BoardFile {
    return JSON.parse(readFileSync(join(FOLDER, `${id}.board.json`), "utf8"))
}

describe("the boards", () => {
    const bench = new FlashBench()
    after(() => bench.remove())

    test("each is in the table of boards/README.md with its pins, and says where they are from", () => {
        const text = readFileSync(join(FOLDER, "README.md"), "utf8")
        const rows = [
            ...text.matchAll(
                /^\| `(\w+)` \| (\d+), ([^|]+) \| (\d+) \| (\d+) \| ((?:\[\d+\] ?)+)\|$/gm,
            ),
        ]
        assert.deepEqual(rows.map(row => row[1]).sort(), [...ids].sort())
        for (const [, id, led, kind, button, tx, sources] of rows) {
            const board = read(id)
            const { pinTX } = board.log
            assert.deepEqual(
                [
                    board.led.pin,
                    board.services[0].pin,
                    typeof pinTX === "string" ? board.pins[pinTX] : pinTX,
                ],
                [Number(led), Number(button), Number(tx)],
                id,
            )
            assert.equal(board.led.type === 1, kind === "WS2812", id)
            for (const [source] of sources.matchAll(/\[\d+\]/g))
                assert.ok(
                    text.includes(`\n- ${source} `),
                    `${id}: ${source} is nowhere`,
                )
        }
    })

    test("no two share a product id; the runtime starts every button by itself", () => {
        assert.equal(
            new Set(ids.map(id => read(id).productId)).size,
            ids.length,
        )
        for (const id of ids)
            assert.deepEqual(
                read(id).services.map(s => s.service),
                ["button"],
                id,
            )
    })

    test("devs takes them all: a program that names every one compiles", () => {
        const source = readFileSync(
            join(PROJECT, "test/bytecode/boards.ts"),
            "utf8",
        )
        for (const id of ids)
            assert.ok(source.includes(`"@dsboard/${id}"`), `${id} is missing`)
        assert.ok(loadProgram("test/bytecode/boards.ts").bytecode.length > 0)
    })

    test("one of them, for a project that does not have its file: where it is", async () => {
        await assert.rejects(findBoard("lolin_c3_mini", bench.project), {
            message:
                /^no board lolin_c3_mini in \S+project\. Herdless has its file; run there:\n {2}mkdir -p boards && cp \S+\/boards\/lolin_c3_mini\.board\.json boards\/$/,
        })
    })

    test("light, button and log pin are in the image the board gets", async () => {
        bench.linkBoards()
        const name = "devicescript-esp32s3-esp32s3_bare"
        const { bytes } = await runtimeImage(
            { id: "seeed_xiao_esp32s3", name: "XIAO", chip: "esp32s3" },
            {
                cwd: bench.project,
                signal: new AbortController().signal,
                file: bench.runtimeFile("esp32s3", name),
                say: () => {},
            },
        )
        assert.deepEqual(
            bytes.subarray(0x10000),
            madeUpRuntime("esp32s3").subarray(0x10000),
        )
        // The board's configuration: partition dcfg.
        bench.write("dcfg.bin", Buffer.from(bytes.subarray(0x9000, 0xb000)))
        const { output } = runDevsSync(["dcfg", "dcfg.bin"], bench.project)
        for (const entry of [
            "'led.pin': 21,",
            "'log.pinTX': 'TX_D6',",
            "'pins.TX_D6': 43,",
            "'\\x80service': 'button',",
            "'\\x80pin': 0,",
        ])
            assert.ok(output.includes(entry), `no ${entry} in ${output}`)
    })
})
