// The restart limit and the watchdog on the bytecode: crashes, power cuts, deploys, holds and who ends them, torn flash, natives
// that never come back, and a clock that ends.
import assert from "node:assert/strict"
import { describe, test } from "node:test"
import { mostIn, playCrashLoop } from "../../../host/lab/crash-loop"
import { playCrashHerd } from "../../../host/lab/crash-herd"
import type { LabDevice } from "../../../host/lab/device"
import * as faults from "../../../host/lab/faults"
import { LeapClock } from "../../../host/soak/leap-clock"
import { loadProgram } from "../../../host/vm/program"
import { emptyRecord, formatRecord, hash31 } from "../../../src/core/record"
import { plannedRebootMs } from "../../../src/core/watchdog"
import { onBench, type Bench, type BenchSpec } from "./bench"
import { loseReports } from "./lose-reports"

const S = 1000
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A case that kills the program. */
const crashing = (spec: BenchSpec, run: (bench: Bench) => Promise<void>) =>
    onBench({ kills: true, maxOpen: 2, ...spec }, run)

/** Runs until the program has started once more. */
async function nextStart({ world, device }: Bench) {
    const starts = device.said("boot").length
    await world.until(() => device.said("boot").length > starts, 20 * S)
    return device.last("boot")
}

/** Kills the program; its next start. */
async function crash(bench: Bench) {
    const { world, broker, device } = bench
    device.crash()
    // A program dies when it wakes.
    for (const c of broker.open) c.pingresp()
    await world.until(() => device.panics.length > 0, 2 * S)
    return await nextStart(bench)
}

/** Kills the program a second after each start, until a start is held. */
async function untilHeld(bench: Bench) {
    for (let i = 0; i < 9; ++i) {
        await bench.world.run(S)
        if ((await crash(bench)).verdict === "held") return
    }
    assert.fail("never held")
}

const verdicts = (device: LabDevice) =>
    device.said("boot").map(b => `${b.cause}: ${b.verdict}`)

describe("crash loops", () => {
    // The week is `npm run crashes -- --hours 168`.
    test("1 s after CONNACK: five starts more, then held, each hold twice as long, an hour at most", async () => {
        const { connectMs, crashes } = await playCrashLoop({
            crashAfterMs: S,
            minutes: 100,
        })
        assert.ok(crashes >= connectMs.length - 1)
        assert.equal(mostIn(connectMs, 2 * MINUTE), 6, "with the first start")
        const gaps = connectMs.map((ms, i) => ms - (connectMs[i - 1] ?? 0))
        const holds = gaps.slice(6).map(ms => Math.round(ms / MINUTE))
        assert.deepEqual(holds, [5, 10, 20, 40])
    })

    test("30 s after CONNACK: too slow for the window of 2 min, held by the one of an hour", async () => {
        const { connectMs } = await playCrashLoop({
            crashAfterMs: 30 * S,
            minutes: 100,
        })
        assert.ok(mostIn(connectMs, 2 * MINUTE) <= 5)
        assert.ok(mostIn(connectMs, HOUR) <= 24, `${mostIn(connectMs, HOUR)}`)
        assert.ok(connectMs.length <= 26, `${connectMs.length}`)
    })

    test("at 11 min: each is a stable run, and none is held", async () => {
        const { connectMs, crashes } = await playCrashLoop({
            crashAfterMs: 11 * MINUTE,
            minutes: 90,
        })
        assert.ok(crashes >= 7)
        assert.ok(mostIn(connectMs, HOUR) <= 6)
        for (let i = 1; i < connectMs.length; ++i)
            assert.ok(connectMs[i] - connectMs[i - 1] < 12 * MINUTE)
    })

    test("at 11 min, a hundred times before: held for an hour, by the allowance that is spent", () =>
        crashing({ button: true }, async bench => {
            const { world, device } = bench
            await world.until("connected", MINUTE)
            await world.run(11 * MINUTE)
            const start = device.console.find(c => c.text.includes("* start: "))
            const [, build] = /start: (.*)$/.exec(start!.text)!
            const record = emptyRecord()
            record.buildHash = hash31(build)
            record.upS = Math.floor(world.nowMs / S)
            record.debtS = 100 * 75 * 60
            device.setSetting("RST", formatRecord(record))
            await world.run(S)
            const boot = await crash(bench)
            assert.deepEqual([boot.starts, boot.verdict], [1, "held"])
            const { reason, leftMs } = device.last("held")
            assert.equal(reason, "restart allowance spent")
            assert.ok(Math.abs(leftMs - HOUR) < 10 * S, `${leftMs}`)
            await world.run(HOUR + 10 * S)
            assert.ok(device.isConnected, "the trial")
        }))

    test("R3: before the first connect, again and again: counted, and held after the burst", () =>
        crashing({}, async bench => {
            const { broker, device } = bench
            await nextStart(bench)
            for (let i = 1; i <= 5; ++i) {
                const boot = await crash(bench)
                assert.deepEqual([boot.cause, boot.starts], ["crash", i])
                assert.equal(boot.verdict, "run")
            }
            const held = await crash(bench)
            assert.deepEqual([held.starts, held.verdict], [6, "held"])
            await bench.world.run(4 * MINUTE)
            assert.equal(broker.conns.length, 0)
            assert.equal(device.said("attempt").length, 0)
        }))

    test("the stock client: a connection every 8 s, for ever", async () => {
        const { connectMs } = await playCrashLoop({
            spec: { program: "test/bytecode/stock-minimal.ts" },
            address: "127.0.0.1:1883",
            crashAfterMs: S,
            minutes: 5,
        })
        assert.ok(connectMs.length > 35, `${connectMs.length} in 5 min`)
    })
})

describe("a hold", () => {
    const WITH_BUTTON: BenchSpec = { button: true }

    test("a line at once and then every minute with the time left; nothing on the wire; then a trial through a first wait", () =>
        crashing({}, async bench => {
            const { world, broker, device } = bench
            await nextStart(bench)
            await untilHeld(bench)
            const dials = device.network.dials
            const conns = broker.conns.length
            await world.run(6 * MINUTE)
            const lines = device.said("held")
            const left = lines.map(l => Math.round(l.leftMs / S))
            assert.deepEqual(left, [300, 240, 180, 120, 60, 0])
            assert.equal(lines[0].reason, "restart burst")
            assert.equal(lines[0].trips, 1)
            const over = lines.at(-1)!.atMs
            assert.equal(lines.at(-1)!.reason, "over, a trial start")
            assert.equal(device.network.dials, dials + 1)
            const first = device.said("retry").find(l => l.atMs > over)!
            assert.equal(first.reason, "start")
            assert.ok(first.delayMs >= 1000 && first.delayMs <= 2200)
            assert.equal(broker.conns.length, conns + 1)
            // The trial fails: twice as long.
            const again = await crash(bench)
            assert.deepEqual([again.verdict, again.trips], ["held", 2])
            assert.equal(device.last("held").reason, "trial failed")
            assert.ok(Math.abs(device.last("held").leftMs - 10 * MINUTE) < S)
        }))

    test("a run of ten minutes after it clears everything", () =>
        crashing({}, async bench => {
            const { world } = bench
            await nextStart(bench)
            await untilHeld(bench)
            await world.run(16 * MINUTE)
            const boot = await crash(bench)
            assert.deepEqual(
                [boot.verdict, boot.starts, boot.trips],
                [...["run", 1, 0]],
            )
        }))

    test("asked to reboot in the trial after it: refused; once the run is a stable one, done", () =>
        crashing({ reboots: 1 }, async bench => {
            const { world, broker, device } = bench
            const ask = async () => {
                const topic = `herdless/${device.id}`
                broker.latest.publish(topic + "/cmd/reboot", "")
                await world.run(S)
                const answer = broker
                    .sent("publish")
                    .findLast(p => p.packet.topic === topic + "/res")
                return JSON.parse(`${answer?.packet.payload}`)
            }
            await nextStart(bench)
            await untilHeld(bench)
            await world.run(14 * MINUTE)
            assert.deepEqual(await ask(), {
                cmd: "reboot",
                ok: false,
                why: "on trial after a hold",
            })
            await world.run(2 * MINUTE)
            assert.equal((await ask()).ok, true)
            await world.run(5 * S)
            const { cause, verdict } = device.last("boot")
            assert.deepEqual([cause, verdict], ["command", "run"])
        }))

    test("a power cut doesn't end it: what is left goes on", () =>
        crashing({}, async bench => {
            const { world, device } = bench
            await nextStart(bench)
            await untilHeld(bench)
            await world.run(3 * MINUTE)
            device.powerCycle()
            const boot = await nextStart(bench)
            assert.deepEqual([boot.cause, boot.verdict], ["power-on", "held"])
            const { leftMs, reason } = device.last("held")
            assert.equal(reason, "hold not over")
            // No clock saw what has passed since the record was written.
            assert.ok(leftMs > 4 * MINUTE && leftMs <= 5 * MINUTE)
        }))

    test("a long press of the board's button ends it, a short one doesn't", () =>
        crashing(WITH_BUTTON, async bench => {
            const { world, device } = bench
            await nextStart(bench)
            await untilHeld(bench)
            await world.run(10 * S)
            device.button!.press(2000)
            await world.run(5 * S)
            assert.ok(device.last("held").leftMs > 0)
            device.button!.press(3500)
            await world.until("connected", 10 * S)
            assert.equal(device.last("held").reason, "cleared by the button")
            const boot = await crash(bench)
            assert.deepEqual([boot.starts, boot.trips], [1, 0])
        }))

    test("the light blinks red, once a second, until it is over", () =>
        crashing(WITH_BUTTON, async bench => {
            const { world, device } = bench
            await nextStart(bench)
            await world.run(S)
            assert.equal(device.lights.length, 0)
            await untilHeld(bench)
            await world.run(4 * MINUTE)
            const seen = device.lights
            assert.ok(Math.abs(seen.length - 480) <= 2, `${seen.length}`)
            seen.forEach(({ rgb, atMs }, i) => {
                assert.equal(rgb, i & 1 ? 0 : 0xff0000)
                if (i) assert.ok(Math.abs(atMs - seen[i - 1].atMs - 500) <= 20)
            })
            device.button!.press(3500)
            await world.until("connected", 10 * S)
            const { length } = device.lights
            await world.run(MINUTE)
            assert.equal(device.lights.length, length)
            assert.equal(device.lights[length - 1].rgb, 0, "it is off")
        }))

    test("the setting CLEAR_HOLD ends it, once, and is deleted", () =>
        crashing(WITH_BUTTON, async bench => {
            const { world, device } = bench
            await nextStart(bench)
            await untilHeld(bench)
            await world.run(10 * S)
            device.setSetting("CLEAR_HOLD", "1")
            await world.until("connected", 10 * S)
            assert.equal(device.last("held").reason, "cleared by CLEAR_HOLD")
            await untilHeld(bench)
            await world.run(MINUTE)
            assert.ok(device.last("held").leftMs > 0, "held again")
        }))

    test("CLEAR_HOLD found at a start: nothing is held", () =>
        crashing(WITH_BUTTON, async bench => {
            const { world, device } = bench
            await nextStart(bench)
            for (let i = 0; i < 5; ++i) await crash(bench)
            await world.run(S)
            device.setSetting("CLEAR_HOLD", "1")
            await world.run(S)
            assert.equal((await crash(bench)).verdict, "run")
            for (let i = 0; i < 4; ++i) await crash(bench)
            assert.equal((await crash(bench)).verdict, "held")
        }))

    test("RST_BURST, RST_WINDOW and RST_HOLD are obeyed; what is not allowed costs a line and the default is used", () =>
        crashing(
            {
                settings: {
                    ...{ RST_BURST: 2, RST_WINDOW: 60_000 },
                    ...{ RST_HOLD: 20_000, RST_STABLE: 1 },
                },
            },
            async bench => {
                const { world, device } = bench
                await nextStart(bench)
                const { key, allowed, used } = device.last("config")
                assert.deepEqual(
                    [key, allowed, used],
                    ["RST_STABLE", "60000..86400000", "600000"],
                )
                await crash(bench)
                await crash(bench)
                assert.equal((await crash(bench)).verdict, "held")
                await world.run(25 * S)
                assert.ok(device.isConnected)
            },
        ))

    test("onHeld is called, and what it starts goes on; clearHold() ends the hold", () =>
        crashing(
            { program: "test/bytecode/held-app.ts", settings: {} },
            async bench => {
                const { world, device } = bench
                await nextStart(bench)
                await untilHeld(bench)
                const says = (text: string) =>
                    device.console.filter(c => c.text === `> ${text}`).length
                await world.run(10 * S)
                assert.equal(says("held"), 1)
                assert.ok(says("the switch works") >= 9)
                await world.run(MINUTE)
                assert.equal(
                    device.last("held").reason,
                    "cleared by the program",
                )
                assert.equal(says("online"), 7)
            },
        ))
})

describe("what doesn't count", () => {
    /** What a deploy itself writes: the program and its entry. */
    const DEPLOY_WRITES = 3

    test("six deploys in two minutes: not held", () =>
        onBench({ flashWrites: 6 * DEPLOY_WRITES }, async bench => {
            const { world, device } = bench
            await world.until("connected", MINUTE)
            for (let build = 1; build <= 6; ++build) {
                await world.run(15 * S)
                device.vm.deploy(buildOf(build))
                await nextStart(bench)
            }
            await world.run(5 * S)
            assert.ok(device.isConnected)
            assert.deepEqual(
                verdicts(device),
                Array<string>(7).fill("new build: run"),
            )
        }))

    test("the same build deployed again is a crash to whoever has only a clock", () =>
        onBench({ flashWrites: DEPLOY_WRITES }, async bench => {
            const { world, device } = bench
            await world.until("connected", MINUTE)
            device.vm.deploy(loadProgram("src/main.ts").bytecode)
            assert.equal((await nextStart(bench)).cause, "crash")
        }))

    test("R2: twenty power cuts in a row run; the next start is held for a minute, and the one after a minute's run isn't", () =>
        onBench({ maxOpen: 30 }, async bench => {
            const { world, device } = bench
            for (let i = 0; i < 20; ++i) {
                await world.run(3 * S)
                device.powerCycle()
            }
            await nextStart(bench)
            assert.equal(device.said("held").length, 0)
            device.powerCycle()
            assert.equal((await nextStart(bench)).verdict, "held")
            assert.ok(device.last("held").leftMs <= MINUTE)
            await world.run(3 * MINUTE)
            assert.ok(device.isConnected)
            device.powerCycle()
            assert.equal((await nextStart(bench)).verdict, "run")
        }))
})

/** The firmware as another build: only its version differs. */
function buildOf(n: number): Uint8Array {
    const bytecode = Buffer.from(loadProgram("src/main.ts").bytecode)
    const at = bytecode.indexOf("v0.1.")
    assert.ok(at > 0)
    bytecode[at + 1] = 0x30 + n
    return bytecode
}

// With the default settings, more devices, and beside the stock client: `npm run crashes -- --herd 200`.
test("60 devices crash together because of one retained message, again and again: each start's attempts are spread, the trials' too", async () => {
    const settings = { MQTT_HOST: "broker", RST_BURST: 2, RST_HOLD: 10_000 }
    const times = await playCrashHerd({
        devices: 60,
        spec: { settings },
        seconds: 40,
        seed: 5,
    })
    // Two starts, a hold of 10 s, and a trial.
    for (const t of times) assert.equal(t.length, 3, "starts online")
    for (let start = 0; start < 3; ++start) {
        const at = times.map(t => t[start]).sort((a, b) => a - b)
        const widthMs = at.at(-1)! - at[0]
        assert.ok(widthMs > 600, `within ${widthMs} ms`)
        const share = mostIn(at, 120) / at.length
        assert.ok(share < 0.3, `${share} within 120 ms`)
    }
    assert.ok(
        times.every(t => t[2] - t[1] > 10_000),
        "held before the trial",
    )
})

test("asked to reboot as its run becomes a stable one: the reason outlasts the goodbye, and it counts", () =>
    crashing({ reboots: 1 }, async bench => {
        const { world, broker, device } = bench
        await nextStart(bench)
        const { atMs } = await crash(bench)
        await world.run(atMs + 10 * MINUTE - 50 - world.nowMs)
        // A goodbye that nobody hears takes 100 ms.
        world.net.fault("*", faults.swallowToBroker())
        broker.latest.publish(`herdless/${device.id}/cmd/reboot`, "")
        const boot = await nextStart(bench)
        assert.ok(device.last("reboot").atMs < atMs + 10 * MINUTE)
        assert.ok(device.reboots[0] > atMs + 10 * MINUTE + 20)
        // What would have cleared the record comes in between, and finds one that is new.
        assert.deepEqual([boot.cause, boot.starts], ["command", 1])
    }))

describe("the record in flash", () => {
    const BAD = ["NaN", "-5", "garbage", '"[2,1]"', "[2,1,1,0,0,0,0,[],0,0,7]"]
    for (const value of [...BAD, "[9,1,2]", `[${"1,".repeat(60)}1]`])
        test(`R3: ${value.slice(0, 30)} never reads as nothing, and is told`, () =>
            crashing(
                { settings: { RST: value }, button: true },
                async bench => {
                    const { world, device } = bench
                    const boot = await nextStart(bench)
                    assert.deepEqual(
                        [boot.cause, boot.verdict, boot.trips],
                        ["unknown", "run", 1],
                    )
                    const { key, used } = device.last("config")
                    assert.equal(key, "RST")
                    assert.equal(used, "a record that has tripped once")
                    await world.until("connected", 10 * S)
                    assert.equal(device.said("config").length, 1)
                    // In a run it is garbage that only a bug of ours can have written: not even one start more.
                    device.setSetting("RST", value)
                    await world.run(S)
                    const next = await crash(bench)
                    assert.equal(next.verdict, "held")
                    assert.equal(
                        device.last("held").reason,
                        "record unreadable",
                    )
                },
            ))

    test("a power cut before or after any write of a crash loop: held one start later at most", async () => {
        const settings = { RST_BURST: 2, RST_HOLD: 20_000 }
        for (const keeps of [false, true])
            for (let cutAt = 1; cutAt <= 4; ++cutAt)
                await crashing({ settings }, async bench => {
                    const { world, device } = bench
                    cutPowerAtWrite(bench, cutAt, keeps)
                    let runs = 0
                    await nextStart(bench)
                    while (device.last("boot").verdict !== "held") {
                        runs++
                        device.crash()
                        await nextStart(bench)
                    }
                    assert.ok(runs >= 3 && runs <= 4, `${runs} starts`)
                    await world.run(25 * S)
                    assert.equal(device.last("held").leftMs, 0)
                })
    })

    test("torn writes: the record before, the record after, or a store that the runtime formats; and then a new deploy comes up", async () => {
        const images: Uint8Array[] = []
        await crashing({}, async bench => {
            images.push(bench.device.flash.image)
            await nextStart(bench)
            images.push(bench.device.flash.image)
            await crash(bench)
            images.push(bench.device.flash.image)
        })
        const [, older, newer] = images
        const changed = [...newer.keys()].filter(i => newer[i] !== older[i])
        // The order of the runtime's writes: the value at the bank's end, then its entry at the front.
        const inOrder = changed.sort((a, b) =>
            a > 4096 === b > 4096 ? a - b : b - a,
        )
        const seen: Record<string, number> = {}
        for (let cut = 0; cut <= inOrder.length; cut += 8) {
            const torn = older.slice()
            for (const at of inOrder.slice(0, cut)) torn[at] = newer[at]
            const what = await bootTorn(torn)
            seen[what] = (seen[what] ?? 0) + 1
        }
        assert.ok(seen.formatted > 0 && seen.started > 0, JSON.stringify(seen))
    })

    /** Boots a torn image; a store that has been formatted is deployed to once more. */
    async function bootTorn(torn: Uint8Array) {
        let what = ""
        await onBench(
            { powerOn: false, flashWrites: 6 },
            async ({ world, device }) => {
                device.flash.image = torn
                device.powerOn()
                await world.run(10 * S)
                const formatted = device.console.some(c =>
                    c.text.includes("fstor: formatting"),
                )
                what = formatted ? "formatted" : "started"
                if (!formatted) {
                    assert.ok(device.isConnected)
                    assert.equal(device.last("boot").verdict, "run")
                    return
                }
                assert.equal(
                    device.said("boot").length,
                    0,
                    "no program, no network",
                )
                assert.equal(device.network.dials, 0)
                device.vm.deploy(loadProgram("src/main.ts").bytecode)
                await world.run(10 * S)
                assert.equal(device.last("boot").cause, "new build")
                const [store, host] = device.said("config")
                assert.equal(store.key, "RST")
                assert.equal(store.used, "an empty store: new, or formatted")
                assert.equal(host.key, "MQTT_HOST")
            },
        )
        return what
    }

    test("two of three reports of every setting are lost: up all the same, later", () =>
        crashing({}, async bench => {
            const { world, device } = bench
            const heard = loseReports(bench, (_, nth) => nth % 3 !== 0)
            await world.until("connected", 5 * MINUTE)
            assert.equal(device.last("boot").cause, "new build")
            assert.equal(device.said("config").length, 0)
            assert.ok(heard.size > 20, "settings")
        }))

    test("every report of the record is lost: at a power-on it counts as tripped once, at a crash as held", () =>
        crashing({}, async bench => {
            const { world, device } = bench
            loseReports(bench, key => key === "RST")
            await world.until("connected", MINUTE)
            const { cause, verdict, trips } = device.last("boot")
            assert.deepEqual([cause, verdict, trips], ["unknown", "run", 1])
            assert.equal(device.last("config").key, "RST")
            device.crash()
            for (const c of bench.broker.open) c.pingresp()
            await world.until(() => device.said("held").length > 0, MINUTE)
            assert.equal(device.last("held").reason, "record unreadable")
            await world.run(6 * MINUTE)
            assert.ok(device.isConnected, "the trial")
        }))

    test("a flash that takes no writes: a start after power-on runs, a crash is held", () =>
        crashing({}, async bench => {
            const { device, world } = bench
            await nextStart(bench)
            await world.until("connected", 10 * S)
            breakStore(bench)
            const boot = await crash(bench)
            assert.equal(boot.verdict, "held")
            assert.equal(device.last("held").reason, "record unreadable")
            assert.ok(device.said("config").some(l => l.key === "RST"))
            await world.run(6 * MINUTE)
            assert.ok(device.isConnected, "a trial every five minutes")
        }))
})

/** Cuts the power at a write: before it (`keeps` false) or right after it. */
function cutPowerAtWrite({ world, device }: Bench, at: number, keeps: boolean) {
    const { flash } = device
    const save = flash.save.bind(flash)
    let writes = 0
    flash.save = image => {
        if (++writes !== at) return save(image)
        if (keeps) save(image)
        const whole = flash.image
        world.after(0, () => {
            flash.image = whole
            device.powerCycle()
        })
    }
}

/** From now on no record that is written reads as it was written. */
function breakStore({ device, world }: Bench) {
    const { memory } = device.vm
    const heap = Buffer.from(memory.buffer, memory.byteOffset, memory.length)
    // The runtime's flash lies in the same memory.
    const base = heap.indexOf(device.flash.image.subarray(0, 256))
    assert.ok(base >= 0)
    const flash = heap.subarray(base, base + 16384)
    const whole = new Set<number>()
    const records = function* () {
        for (let at = -1; (at = flash.indexOf("[2,", at + 1)) >= 0;) yield at
    }
    for (const at of records()) whole.add(at)
    const look = () => {
        for (const at of records()) if (!whole.has(at)) flash[at + 3] = 0x78
        world.after(2, look)
    }
    look()
}

/** A device whose program says no to every reboot. */
const VETO: BenchSpec = {
    ...{ program: "test/bytecode/veto-app.ts", settings: {} },
    ...{ wifi: true, maxOpen: 99, reboots: 1 },
}

describe("the watchdog", () => {
    const TLS: BenchSpec = {
        settings: { MQTT_PROTO: "tls", MQTT_PORT: 1883 },
        wifi: true,
        maxOpen: 99,
    }

    /** A device with Wi-Fi whose broker leaves TLS handshakes unanswered. */
    async function hanging(bench: Bench) {
        const { world, device } = bench
        device.joinWifi()
        await world.until("connected", MINUTE)
        const fault = world.net.fault("*", faults.handshakeHangs())
        bench.broker.down()
        bench.broker.up()
        return fault
    }

    test("a TLS handshake that never ends: Wi-Fi reconnects after 10 min, which frees it", () =>
        onBench(TLS, async bench => {
            const { world, device } = bench
            const fault = await hanging(bench)
            device.wifi!.onReconnect = () => {
                device.leaveWifi()
                world.after(2 * S, () => device.joinWifi())
            }
            await world.run(5 * MINUTE)
            fault.off()
            await world.run(4 * MINUTE)
            assert.ok(!device.isConnected, "the worker is still stuck")
            await world.until("connected", 3 * MINUTE)
            assert.equal(device.wifi!.reconnects, 1)
            assert.ok(
                device
                    .said("link")
                    .some(l => l.why === "native call never came back"),
            )
        }))

    test("one that even a Wi-Fi reconnect doesn't free: reboots, 5, 10, 20 min after it, each counted", () =>
        onBench({ ...TLS, reboots: 3 }, async bench => {
            const { world, device } = bench
            await hanging(bench)
            device.wifi!.onReconnect = () => {}
            await world.run(78 * MINUTE)
            const reboots = device.said("reboot")
            assert.deepEqual(
                reboots.map(r => r.cause),
                ["watchdog", "watchdog", "watchdog"],
            )
            const apart = reboots.map((r, i) =>
                Math.round((r.atMs - (reboots[i - 1]?.atMs ?? 0)) / MINUTE),
            )
            assert.deepEqual(apart, [15, 20, 30])
            const boots = device.said("boot").slice(1)
            for (const b of boots) assert.equal(b.cause, "watchdog")
            assert.equal(device.wifi!.reconnects, 4)
        }))

    test("mayReboot puts a reboot off, even by failing, for an hour at most", () =>
        onBench(VETO, async bench => {
            const { world, device } = bench
            await hanging(bench)
            device.wifi!.onReconnect = () => {}
            // 15 min, as above, and an hour.
            await world.run(74 * MINUTE)
            assert.equal(device.reboots.length, 0)
            assert.ok(device.console.some(c => c.text.includes("no answer")))
            await world.run(3 * MINUTE)
            assert.equal(device.last("reboot").cause, "watchdog")
            assert.equal(device.last("boot").cause, "watchdog")
        }))

    test("a flash that takes no reason puts a reboot off for an hour, and is tried every 10 min", () =>
        onBench({ ...TLS, reboots: 1, flashWrites: 7 * 3 }, async bench => {
            const { world, device } = bench
            await hanging(bench)
            device.wifi!.onReconnect = () => {}
            await world.run(14 * MINUTE)
            const { flashWrites } = device
            loseReports(bench, key => key === "RST")
            // 15 min, as above, and an hour.
            await world.run(60 * MINUTE)
            assert.equal(device.reboots.length, 0)
            assert.ok(device.flashWrites > flashWrites, "it was tried")
            await world.run(3 * MINUTE)
            assert.equal(device.last("reboot").cause, "watchdog")
            assert.equal(device.said("boot").length, 2)
        }))

    // Down, and silent for a day: backoff.test.ts, R1.
    const NEVER: [string, (b: Bench) => void][] = [
        ["unknown to DNS", b => b.world.net.fault("*", faults.noSuchHost())],
        ["mute", b => b.broker.always({ connect() {} })],
        [
            "refusing the password",
            b =>
                b.broker.always({
                    connect(c) {
                        c.connack(4)
                        c.fin()
                    },
                }),
        ],
    ]
    for (const [what, begin] of NEVER)
        test(`a broker that is ${what} for hours: never a reason`, () =>
            onBench({}, async bench => {
                const { world, device } = bench
                await world.until("connected", MINUTE)
                begin(bench)
                bench.broker.open.forEach(c => c.rst())
                await world.run(3 * HOUR)
                assert.equal(device.said("reboot").length, 0)
                assert.equal(device.said("link").length, 0)
            }))
})

/** Gives the device a clock that can be moved on. */
function leapClock({ device, world }: Bench): LeapClock {
    const clock = new LeapClock(world.clock)
    device.vm.options.clock = clock
    return clock
}

/** The runtime counts microseconds in 32 bits: a longer step would be taken modulo 71 min. */
const LEAP_MS = 4_200_000

/** Moves it on until it shows toMs. In between everything has its turn, as on a device whose clock goes step by step. */
async function leapTo({ world }: Bench, clock: LeapClock, toMs: number) {
    while (clock.nowMs() < toMs) {
        clock.leap(Math.min(toMs - clock.nowMs(), LEAP_MS))
        await world.run(11 * S)
    }
}

describe("the clock's end", () => {
    const END_MS = 2 ** 32

    test("30 min before 2^32 ms: rebooted, announced, not counted, and connected an hour later", () =>
        onBench({ powerOn: false, reboots: 1 }, async bench => {
            const { world, device, broker } = bench
            const clock = leapClock(bench)
            device.powerOn()
            await world.until("connected", MINUTE)
            await leapTo(bench, clock, END_MS - 30 * MINUTE)
            await world.until(() => device.reboots.length > 0, MINUTE)
            assert.equal(device.last("reboot").cause, "planned")
            assert.equal(broker.sent("disconnect").length, 1)
            await world.run(HOUR)
            assert.ok(device.isConnected)
            const { cause, starts, verdict } = device.last("boot")
            assert.deepEqual([cause, starts, verdict], ["planned", 0, "run"])
        }))

    test("mayReboot puts this one off, too, for an hour at most", () =>
        onBench({ ...VETO, wifi: false, powerOn: false }, async bench => {
            const { world, device } = bench
            const clock = leapClock(bench)
            device.powerOn()
            await world.run(MINUTE)
            const dueMs = plannedRebootMs(device.id)
            await leapTo(bench, clock, dueMs)
            await world.run(58 * MINUTE)
            assert.equal(device.reboots.length, 0)
            await world.run(3 * MINUTE)
            assert.equal(device.last("boot").cause, "planned")
        }))

    test("in a hold: the hold goes on after the reboot", () =>
        crashing({ powerOn: false, reboots: 1 }, async bench => {
            const { world, device } = bench
            const clock = leapClock(bench)
            device.powerOn()
            await nextStart(bench)
            await leapTo(bench, clock, plannedRebootMs(device.id) - 2 * MINUTE)
            await untilHeld(bench)
            await world.until(() => device.reboots.length > 0, 2 * MINUTE)
            const boot = await nextStart(bench)
            assert.deepEqual([boot.cause, boot.verdict], ["planned", "held"])
            assert.ok(device.last("held").leftMs > 3 * MINUTE)
            await world.run(6 * MINUTE)
            assert.ok(device.isConnected)
        }))
})

test("flash: a healthy device writes when it reboots, on day 40 to 45; one that is switched on writes twice", () =>
    onBench({ powerOn: false, reboots: 1, maxOpen: 2 }, async bench => {
        const { world, device } = bench
        const clock = leapClock(bench)
        device.powerOn()
        await world.until("connected", MINUTE)
        assert.equal(device.flashWrites, 1, "a new build")
        const dueMs = plannedRebootMs(device.id)
        assert.ok(dueMs >= 40 * DAY && dueMs <= 45 * DAY)
        await leapTo(bench, clock, dueMs - 2 * MINUTE)
        assert.equal(device.reboots.length, 0, "two minutes before")
        assert.equal(device.flashWrites, 1, "of 40 days and more")
        await world.run(14 * MINUTE)
        assert.equal(device.reboots.length, 1)
        // The reason and the start.
        assert.equal(device.flashWrites, 3)
        device.powerCycle()
        await world.run(12 * MINUTE)
        // The start, and that it was no short one.
        assert.equal(device.flashWrites, 5)
        await world.run(2 * HOUR)
        assert.equal(device.flashWrites, 5)
    }))
