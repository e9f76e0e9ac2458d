// Opens MQTT connections against a broker at a steady rate and notes when each CONNACK comes. The only
// part of `fleet measure` that touches the network; whatever ends it, it leaves no socket open.
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { generate, parser } from "mqtt-packet"

/** The broker, and as whom to connect. */
export interface Target {
    host: string
    port: number
    username?: string
    password?: string
}

/** One connection, from the dial to its CONNACK or its end. */
export interface Sample {
    startMs: number
    /** When CONNACK 0 came, or when it was over. */
    endMs: number
    /** Undefined: CONNACK 0. */
    problem: string | undefined
}

/** A burst of connections, in the order they were begun. */
export interface Burst {
    samples: Sample[]
    /** Begun a second; less than asked for when this computer is too slow. */
    offeredPerSecond: number
    /** It ended early: too many were open at once, or it was told to stop. */
    cut: boolean
}

/** So long a connection waits for its CONNACK. */
export const PATIENCE_MS = 10_000

/** More are never open at once. */
const MAX_OPEN = 1000

/** Between two looks at how many are due. */
const TURN_MS = 5

let sequence = 0

/** Opens one connection; it is closed again as soon as CONNACK has come. */
function open(target: Target, sockets: Set<Socket>): Promise<Sample> {
    const startMs = performance.now()
    const { host, port, username, password } = target
    return new Promise(done => {
        const socket = connect({ host, port, noDelay: true })
        sockets.add(socket)
        const timer = setTimeout(
            () => end(`no CONNACK within ${PATIENCE_MS / 1000} s`),
            PATIENCE_MS,
        )
        let isOver = false
        const end = (problem?: string) => {
            if (isOver) return
            isOver = true
            clearTimeout(timer)
            if (problem === undefined) {
                socket.write(generate({ cmd: "disconnect" }))
                socket.end()
                // A broker that never closes its end must not keep ours.
                setTimeout(() => socket.destroy(), 1000).unref()
            } else socket.destroy()
            done({ startMs, endMs: performance.now(), problem })
        }
        const packets = parser()
        packets.on("packet", packet => {
            if (packet.cmd !== "connack") end("it does not speak MQTT 3.1.1")
            else if (packet.returnCode === 0) end()
            else end(`CONNACK ${packet.returnCode}`)
        })
        packets.on("error", () => end("it does not speak MQTT 3.1.1"))
        socket.on("data", bytes => packets.parse(bytes))
        socket.on("error", e =>
            end((e as NodeJS.ErrnoException).code ?? `${e}`),
        )
        socket.on("close", () => {
            sockets.delete(socket)
            end("closed without CONNACK")
        })
        socket.on("connect", () => {
            socket.write(
                generate({
                    cmd: "connect",
                    protocolId: "MQTT",
                    protocolVersion: 4,
                    clientId: `herdless-measure-${process.pid}-${++sequence}`,
                    clean: true,
                    keepalive: 60,
                    username,
                    password: password as never,
                }),
            )
        })
    })
}

/** One connection alone. */
export async function probe(target: Target): Promise<Sample> {
    return open(target, new Set())
}

/**
 * Opens `count` connections at a rate and waits for all of them.
 * @param stopped asked now and then; true ends it and closes everything
 */
export async function burst(
    target: Target,
    ratePerSecond: number,
    count: number,
    stopped: () => boolean,
): Promise<Burst> {
    const sockets = new Set<Socket>()
    const running: Promise<Sample>[] = []
    const startMs = performance.now()
    let over = 0
    let cut = false
    while (running.length < count && !cut) {
        const dueMs = performance.now() - startMs
        const due = Math.min(count, 1 + (dueMs * ratePerSecond) / 1000)
        while (running.length + 1 <= due) {
            const sample = open(target, sockets)
            void sample.then(() => over++)
            running.push(sample)
        }
        cut = stopped() || running.length - over > MAX_OPEN
        await sleep(TURN_MS)
    }
    const offeredMs = performance.now() - startMs
    while (over < running.length && !stopped()) await sleep(TURN_MS)
    if (stopped()) for (const socket of sockets) socket.destroy()
    return {
        samples: await Promise.all(running),
        offeredPerSecond: (running.length * 1000) / offeredMs,
        cut,
    }
}
