// The bench with an application of the library on the device (test/bytecode/api-app.ts): which scene
// it plays is a setting, and what it prints are JSON objects.
import type { LabDevice } from "../../../host/lab/device"
import { onBench, type Bench, type BenchSpec } from "./bench"

/** An object that the application printed, and when, in the world's time. */
export type Print = Record<string, any> & { atMs: number }

/** A bench and the application's words. */
export interface AppBench extends Bench {
    /** What it printed that has this key, oldest first. */
    prints(key: string): readonly Print[]
    /** Runs until it has printed so many objects with this key; returns the latest. */
    untilPrint(key: string, count: number, limitMs: number): Promise<Print>
}

/** What the application is told: the scene's name and arguments, and options of startMqtt. */
export interface AppSpec extends BenchSpec {
    scene: [name: string, ...args: unknown[]]
    options?: Record<string, unknown>
}

/** Runs a case with the application on the device. */
export async function withApp(
    spec: AppSpec,
    run: (bench: AppBench) => Promise<void>,
) {
    const { scene, options } = spec
    await onBench(
        {
            ...spec,
            program: "test/bytecode/api-app.ts",
            settings: {
                SCENE: JSON.stringify(scene),
                ...(options && { OPTIONS: JSON.stringify(options) }),
            },
        },
        async bench => {
            const { world, device } = bench
            const prints = (key: string) => printsOf(device, key)
            await run({
                ...bench,
                prints,
                async untilPrint(key, count, limitMs) {
                    await world.until(
                        () => prints(key).length >= count,
                        limitMs,
                    )
                    return prints(key).at(-1)!
                },
            })
        },
    )
}

/** What has been read of a device's console: asked after every step of a world, each line is parsed once. */
interface Heard {
    lines: number
    byKey: Map<string, Print[]>
}

const heard = new WeakMap<LabDevice, Heard>()

/** The JSON objects with this key on a device's console, oldest first. */
export function printsOf(device: LabDevice, key: string): readonly Print[] {
    let known = heard.get(device)
    if (!known) heard.set(device, (known = { lines: 0, byKey: new Map() }))
    const { byKey } = known
    while (known.lines < device.console.length) {
        const { atMs, text } = device.console[known.lines++]
        if (!text.startsWith("# ") || !text.includes("{")) continue
        const what = JSON.parse(text.slice(text.indexOf("{")))
        for (const name of Object.keys(what)) {
            const prints = byKey.get(name) ?? []
            byKey.set(name, prints)
            prints.push({ ...what, atMs })
        }
    }
    return byKey.get(key) ?? []
}
