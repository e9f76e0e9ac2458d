// `npm run bundle`: what is in the images, seen by a VM that boots from them.
import assert from "node:assert/strict"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { after, describe, test } from "node:test"
import { bundleImage } from "../../host/flash/bundle"
import { storeRegion, withStore } from "../../host/flash/image"
import { runtimeImage } from "../../host/flash/runtime"
import { loadProgram } from "../../host/vm/program"
import { FlashBench, SECRET, WIFI_SECRET } from "./bench"
import { bootStore } from "./boot"
import { bootOffset, madeUpRuntime } from "./runtime"

function imageOf(chip: string) {
    const flashOffset = bootOffset(chip)
    return { name: chip, bytes: madeUpRuntime(chip), flashOffset }
}

/** The flash store in a bundled image. */
function storeOf(image: Uint8Array, flashOffset: number) {
    const { offset, bytes } = storeRegion({
        name: "x",
        bytes: image,
        flashOffset,
    })
    return image.slice(offset - flashOffset, offset - flashOffset + bytes)
}

describe("npm run bundle", { concurrency: 2 }, () => {
    const bench = new FlashBench()
    after(() => bench.remove())

    test("the firmware starts from the image's store and knows its settings", async () => {
        const runtime = imageOf("esp32s3")
        const whole = await bundleImage(
            runtime,
            loadProgram("src/main.ts").bytecode,
            {
                settings: { MQTT_HOST: '"broker.lan"', RETRY_MIN: "5000" },
                wifi: { ssid: "lab", password: WIFI_SECRET },
            },
        )
        assert.deepEqual(
            whole.slice(0, runtime.bytes.length),
            new Uint8Array(runtime.bytes),
            "the runtime is as it was",
        )
        const booted = await bootStore(storeOf(whole, 0), [
            "MQTT_HOST",
            "wifi_ssid",
            "wifi_psk",
        ])
        assert.deepEqual(booted.values, {
            MQTT_HOST: '"broker.lan"',
            wifi_ssid: "lab",
            wifi_psk: WIFI_SECRET,
        })
        assert.match(booted.console.join("\n"), /"ev":"boot"/)
        assert.match(booted.console.join("\n"), /"ceilingMs":[5-9]\d{3},/)
    })

    test("the command: an image for each row of a CSV, the row over the common settings; no secret is printed", async () => {
        bench.write(
            "devices.csv",
            'id,MQTT_PWD,WIFI_SSID\nlamp-1,0123,\nlamp-2,,"hall, 2nd"\n',
        )
        const out = join(bench.folder, "line-1")
        const ended = await bench.run("bundle", [
            ...["--board", "esp32_bare", "--file", bench.runtimeFile("esp32")],
            ...["--fleet", join(bench.project, "devices.csv")],
            ...["--out", out, "--json"],
        ])
        assert.equal(ended.code, 0, ended.err)
        const { images, chip, address } = JSON.parse(ended.out)
        assert.deepEqual([chip, address], ["esp32", "0x1000"])
        assert.deepEqual(images, [
            join(out, "bundle-esp32_bare-lamp-1-0x1000.bin"),
            join(out, "bundle-esp32_bare-lamp-2-0x1000.bin"),
        ])
        const booted = await Promise.all(
            images.map((path: string) =>
                bootStore(storeOf(readFileSync(path), 0x1000), [
                    ...["MQTT_PWD", "wifi_ssid", "wifi_psk", "WIFI_PWD"],
                ]),
            ),
        )
        for (const { console } of booted)
            assert.match(console.join("\n"), /> host is broker\.lan/)
        assert.deepEqual(
            booted.map(({ values }) => Object.values(values)),
            [
                ['"0123"', "lab", WIFI_SECRET, undefined],
                [`"${SECRET}"`, "hall, 2nd", WIFI_SECRET, undefined],
            ],
        )
        assert.equal(statSync(images[0]).mode & 0o777, 0o600)
        assert.ok(!(ended.out + ended.err).includes(SECRET))
        assert.ok(!(ended.out + ended.err).includes(WIFI_SECRET))
    })

    test("an image without a store, or with one already, is refused", () => {
        const runtime = imageOf("esp32")
        const { bytes } = storeRegion(runtime)
        const full = withStore(runtime, new Uint8Array(bytes).fill(7))
        assert.throws(
            () => withStore({ ...runtime, bytes: full }, new Uint8Array(bytes)),
            /has a program or settings in it already/,
        )
        assert.throws(
            () => storeRegion({ ...runtime, flashOffset: 0 }),
            /no partition table with a flash store/,
        )
        assert.throws(
            () => withStore(runtime, new Uint8Array(8192)),
            /8192 bytes; .* exactly 262144/,
        )
    })
})

describe("the runtime image", { concurrency: 2 }, () => {
    const bench = new FlashBench()
    after(() => bench.remove())
    const said: string[] = []

    function get(id: string, chip: string, file?: string) {
        return runtimeImage(
            { id, name: id, chip },
            {
                cwd: bench.project,
                signal: new AbortController().signal,
                file,
                say: line => said.push(line),
            },
        )
    }

    test("wrong chip: an image for another one than the board's", async () => {
        await assert.rejects(
            get("esp32c3_bare", "esp32c3", bench.runtimeFile("esp32")),
            /^Error: wrong chip: board esp32c3_bare has an esp32c3, runtime-esp32-0x1000.bin is for esp32$/,
        )
    })

    test("a name that doesn't say where it belongs in flash", async () => {
        bench.write("runtime.bin", "")
        await assert.rejects(
            get("esp32_bare", "esp32", join(bench.project, "runtime.bin")),
            /--file runtime.bin: its name must end in the flash address/,
        )
    })

    test("no network and no image from before: what to download, and how to give it", async () => {
        await assert.rejects(get("esp32c3_supermini", "esp32c3"), {
            message:
                /no runtime image for esp32c3_supermini: no network,[^]*--file devicescript-esp32c3-esp32c3_supermini-0x0\.bin$/,
        })
    })

    test("no network, but an image from before: it is used", async () => {
        const name = "devicescript-esp32s2-esp32s2_bare-0x1000.bin"
        bench.cache(name, madeUpRuntime("esp32s2"))
        const image = await get("esp32s2_bare", "esp32s2")
        assert.equal(image.name, name)
        assert.ok(
            said.includes(
                "no network: the copy of an earlier download is used",
            ),
        )
    })
})
