// Streams through the firmware's client in the VM: each connection gets CONNACK and then one stream. The
// program must not die, must let go of a broken connection and dial again, and its heap must not grow.
import type { LabDevice } from "../lab/device"
import type { Conn } from "../lab/scripted-broker"
import { World } from "../lab/world"
import type { Find } from "./pure"
import { chunksOf, streamOf, type Stream } from "./streams"

const DEVICES = 8

/** The firmware's client and commands, with short waits. */
const PROGRAM = "test/bytecode/fuzz-app.ts"

/** After a stream, what the device still has of it must be handled by then. */
const REST_MS = 60

/** Without a new connection for this long a device hangs: the slow lane's first wait of any program, and an attempt. */
const HANG_MS = 700_000

const STEP_MS = 5_000

/** Growth of the lowest heap seen, between the first and the last looks. */
const MAX_GROWTH_BYTES = 6000
const LOOKS = 40
const MAX_FIBERS = 16

/** What is known about one device. */
interface Track {
    device: LabDevice
    /** The streams it was given last, newest first. */
    given: Stream[]
    lastMs: number
    looks: number[]
}

/** Topics that the firmware of this id acts upon, and others. */
export function topicsOf(id: string): string[] {
    const base = `herdless/${id}/cmd/`
    return [
        `${base}ping`,
        `${base}status`,
        `${base}retry`,
        `${base}log`,
        `${base}none`,
        "a",
        "x".repeat(200),
    ]
}

/**
 * Runs the streams `from` .. `from + count - 1`; the first find ends it.
 * @param make instead of the seed's streams
 * @param program instead of PROGRAM
 */
export async function fuzzVm(
    seed: number,
    from: number,
    count: number,
    progress: (done: number) => void = () => {},
    make: (index: number, id: string) => Stream = (i, id) =>
        streamOf(seed, i, topicsOf(id)),
    program = PROGRAM,
): Promise<{ done: number; find?: Find; virtualSeconds: number }> {
    const world = new World({ seed, keepLog: 100 })
    const broker = world.scripted()
    const tracks = new Map<string, Track>()
    let next = 0
    const give = (c: Conn) => {
        const track = tracks.get(c.device)!
        track.lastMs = world.nowMs
        // One that died keeps the streams that it died of.
        if (next >= count || hasDied(track.device)) return
        const stream = make(from + next++, track.device.id)
        track.given = [stream, ...track.given.slice(0, 2)]
        let atMs = 0
        for (const chunk of chunksOf(stream))
            world.after((atMs += 1), () => c.isOpen && c.peer.write(chunk))
        // Every second one ends without waiting for what the device makes of it.
        world.after(atMs + (next & 1 ? REST_MS : 1), () => c.fin())
    }
    broker.always({
        connect(c) {
            c.connack()
            give(c)
        },
    })
    for (let i = 0; i < DEVICES; ++i) {
        const device = await world.device({ program })
        tracks.set(device.name, { device, given: [], lastMs: 0, looks: [] })
        device.powerOn()
    }
    let find: Find | undefined
    const all = [...tracks.values()]
    while (!find && next < count) {
        await world.run(STEP_MS)
        progress(next)
        for (const track of all) find ??= judge(track, world.nowMs)
        broker.conns.length = 0
        broker.packets.length = 0
    }
    await world.run(2000)
    for (const track of all) find ??= judge(track, world.nowMs) ?? grown(track)
    await world.close()
    return { done: next, find, virtualSeconds: world.nowMs / 1000 }
}

const hasDied = ({ panics, aborts, reboots, restarts }: LabDevice) =>
    panics.length + aborts.length + reboots.length + restarts.length > 0

function judge(track: Track, nowMs: number): Find | undefined {
    const { device } = track
    const found = (what: string) => ({
        what: `${what}; the last streams, newest first`,
        chunks: track.given.flatMap(s => [
            ...chunksOf(s).map(c => c.toString("hex")),
            "",
        ]),
    })
    device.lines.length = 0
    device.console.length = 0
    if (device.panics.length) return found(`panic ${device.panics[0].code}`)
    if (device.aborts.length) return found(`abort ${device.aborts[0].reason}`)
    if (device.reboots.length || device.restarts.length) return found("reset")
    if (nowMs - track.lastMs > HANG_MS) return found("dials no more")
    // No program before its first connection.
    if (track.lastMs === 0) return undefined
    const { usedBytes, fibers } = device.heap()
    if (fibers > MAX_FIBERS) return found(`${fibers} fibers`)
    track.looks.push(usedBytes)
    return undefined
}

function grown({ looks, device }: Track): Find | undefined {
    if (looks.length < 2 * LOOKS) return undefined
    const first = Math.min(...looks.slice(0, LOOKS))
    const last = Math.min(...looks.slice(-LOOKS))
    if (last - first <= MAX_GROWTH_BYTES) return undefined
    const what = `heap of ${device.name} grew from ${first} to ${last} B`
    return { what, chunks: [] }
}
