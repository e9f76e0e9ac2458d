// One VM with a program of the bench (test/bytecode/bench-*.ts), on a clock of its own, at a broker that costs next to
// nothing: it answers by the first byte of what is written and counts.
import { framesByFunction, liveHeapBytes, walkHeap } from "../lab/heap"
import { encode } from "../lab/mqtt-wire"
import { VirtualClock } from "../vm/clock"
import { DeviceVm } from "../vm/device"
import { MemoryFlash } from "../vm/flash"
import type { Network, Socket, SocketEvents } from "../vm/network"
import { loadProgram, type DebugInfo } from "../vm/program"

/** First bytes of the packets that it knows [MQTT-2.2.1]. */
const CONNECT = 0x10
const PUBLISH = 0x30
const PUBLISH_QOS1 = 0x32
const SUBSCRIBE = 0x82
const PINGREQ = 0xc0

const CONNACK = Uint8Array.of(0x20, 2, 0, 0)
const PINGRESP = Uint8Array.of(0xd0, 0)

const OUT = "bench/out"
const COUNT = /^bench\/count\/(\d+)/

/** Of a PUBLISH whose length takes one byte: where its topic begins. */
const TOPIC_AT = 4

/** A message to the program, as every broker would send it. */
function message(topic: string, payload: string): Uint8Array {
    return encode({
        cmd: "publish",
        topic,
        payload,
        qos: 0,
        dup: false,
        retain: false,
    } as never)
}

const INCOMING = message("bench/in", "01234567890123456789012345678901")

/** A program's turn takes no longer. */
const TURN_MS = 30
const LIMIT_MS = 600_000

export class Rig {
    readonly clock = new VirtualClock()
    /** Socket writes, their bytes, and PUBLISH packets to bench/out, since the start. */
    writes = 0
    bytes = 0
    publishes = 0
    /** CPU of this process from each dial to the first SUBSCRIBE after it, µs. */
    readonly connectUs: number[] = []
    /** Called at each PUBLISH to bench/out, in the middle of it. */
    probe: () => void = () => {}
    private dialled: NodeJS.CpuUsage | undefined
    private events: SocketEvents | undefined
    private subscribes = 0
    private names: string[] | undefined
    private counted = -1
    /** What the program was told last. */
    private said = "-"
    private readonly device: DeviceVm

    private constructor(readonly program: string) {
        this.device = new DeviceVm({
            deviceId: "1122334455667788",
            clock: this.clock,
            network: this.network(),
            flash: new MemoryFlash(),
            entropy: count => new Uint8Array(count).fill(7),
            lazyTurns: true,
            onPanic: code => {
                throw new Error(`${program} died: ${code}`)
            },
        })
    }

    /** The program, connected and subscribed, at rest. */
    static async start(program: string): Promise<Rig> {
        const rig = new Rig(program)
        rig.device.powerOn()
        rig.clock.runForSync(50)
        rig.device.deploy(loadProgram(program).bytecode)
        await rig.until("subscribe", () => rig.subscribes >= 2)
        rig.clock.runForSync(1000)
        return rig
    }

    /** What the heap holds now, garbage included. */
    heap() {
        return walkHeap(this.device.memory)
    }

    /** Bytes of the heap that a collection would leave. */
    liveHeapBytes() {
        return liveHeapBytes(this.device.memory)
    }

    /** Frames on the heap by the name of their function; see heap.ts. */
    frames(): Map<string, number> {
        const { debugJson } = loadProgram(this.program)
        this.names ??= (JSON.parse(debugJson) as DebugInfo).functions.map(
            f => f.name,
        )
        const { names } = this
        const frames = framesByFunction(this.device.memory, names.length)
        const named = new Map<string, number>()
        for (const [index, count] of frames)
            named.set(names[index], (named.get(names[index]) ?? 0) + count)
        return named
    }

    /** Publishes with this QoS until there are so many more, or some beyond. */
    async publish(qos: 0 | 1, count: number) {
        this.say(`${qos}`)
        const most = this.publishes + count
        await this.until("publish", () => this.publishes >= most)
    }

    /** Nothing to do any more; what was begun is done. */
    rest() {
        this.say("-")
        this.clock.runForSync(10 * TURN_MS)
    }

    /** Receives so many messages, 1 ms apart. */
    receive(count: number) {
        for (let i = 0; i < count; ++i) this.events!.data(INCOMING)
        this.clock.runForSync(count + TURN_MS)
    }

    /** How many messages the program has counted. */
    async received(): Promise<number> {
        this.counted = -1
        this.say("?")
        await this.until("count", () => this.counted >= 0)
        return this.counted
    }

    /** Loses its connection and makes another. */
    async reconnect() {
        const before = this.connectUs.length
        this.events!.close()
        await this.until("connect", () => this.connectUs.length > before)
        this.clock.runForSync(10 * TURN_MS)
    }

    stop() {
        this.device.powerOff()
    }

    private say(what: string) {
        if (what === this.said && what !== "?") return
        this.said = what
        this.events!.data(message("bench/go", what))
    }

    private async until(what: string, done: () => boolean) {
        if (!(await this.clock.runUntil(done, LIMIT_MS)))
            throw new Error(`${this.program} did not ${what}`)
    }

    private network(): Network {
        return {
            isUp: () => true,
            open: (_host, _port, _tls, events) => this.dial(events),
        }
    }

    private dial(events: SocketEvents): Socket {
        this.dialled = process.cpuUsage()
        this.events = events
        this.clock.setTimeout(() => events.open(), 1)
        const over = () => {
            if (this.events === events) this.events = undefined
        }
        return {
            write: bytes => this.written(events, bytes),
            close: over,
            destroy: over,
        }
    }

    private written(events: SocketEvents, bytes: Uint8Array): number {
        this.writes++
        this.bytes += bytes.length
        const answer = this.answerTo(bytes)
        if (answer) this.clock.setTimeout(() => events.data(answer), 1)
        return 0
    }

    private answerTo(bytes: Uint8Array): Uint8Array | undefined {
        switch (bytes[0]) {
            case CONNECT:
                return CONNACK
            case PINGREQ:
                return PINGRESP
            case SUBSCRIBE:
                this.subscribed()
                return Uint8Array.of(0x90, 3, bytes[2], bytes[3], 0)
            case PUBLISH:
            case PUBLISH_QOS1:
                return this.published(bytes)
            default:
                return undefined
        }
    }

    private subscribed() {
        this.subscribes++
        if (!this.dialled) return
        const { user, system } = process.cpuUsage(this.dialled)
        this.dialled = undefined
        this.connectUs.push(user + system)
    }

    /** The stock client writes a payload by itself: its first byte may be any packet's, but it has no topic we know. */
    private published(bytes: Uint8Array): Uint8Array | undefined {
        const text = Buffer.from(bytes).toString("latin1", TOPIC_AT)
        const count = COUNT.exec(text)
        if (count) this.counted = Number(count[1])
        if (!text.startsWith(OUT)) return undefined
        this.publishes++
        this.probe()
        if (bytes[0] !== PUBLISH_QOS1) return undefined
        const idAt = TOPIC_AT + OUT.length
        return Uint8Array.of(0x40, 2, bytes[idAt], bytes[idAt + 1])
    }
}
