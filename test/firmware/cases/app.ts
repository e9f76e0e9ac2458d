// The bench with an application of the library on the device (test/bytecode/api-app.ts): which scene
// it plays is a setting, and what it prints are JSON objects.
import type { LabDevice } from "../../../host/lab/device"
import { onBench, type Bench, type BenchSpec } from "./bench"

/** An object that the application printed, and when, in the world's time. */
export type Print = Record<string, any> & { atMs: number }

/** A bench and the application's words. */
export interface AppBench extends Bench {
    /** What it printed that has this key, oldest first. */
    prints(key: string): Print[]
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

/** The JSON objects with this key on a device's console. */
export function printsOf(device: LabDevice, key: string): Print[] {
    const found: Print[] = []
    for (const { atMs, text } of device.console) {
        if (!text.startsWith("# ") || !text.includes(`"${key}":`)) continue
        const what = JSON.parse(text.slice(text.indexOf("{")))
        if (key in what) found.push({ ...what, atMs })
    }
    return found
}
