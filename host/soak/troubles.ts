// Every kind of trouble a soak may draw: which numbers it takes, where it may strike, and what it does.
// One entry is one kind; a trouble starts, and what `start` returns ends it again.
import * as faults from "../lab/faults"
import type { Fault } from "../lab/link"
import * as plays from "../lab/plays"
import type { LabRandom } from "../lab/random"
import type { Conn, Play } from "../lab/scripted-broker"
import type { Rig } from "./rig"
import type { Trouble } from "./schedule"

/** How a kind of trouble works. */
export interface Kind {
    /** Draws its numbers. */
    draw?: (random: LabRandom) => number[]
    /** It strikes one device, or only one with Wi-Fi; default: one device or all. */
    needs?: "device" | "wifi"
    /** No longer than this, ms; 0: it is over at once. */
    longestMs?: number
    /** How often it is drawn, default 2. */
    weight?: number
    /** Begins it; returns how it ends. */
    start(rig: Rig, trouble: Trouble): (() => void) | void
}

/** A kind that is a fault of the network. */
const net = (
    make: (...args: number[]) => Fault,
    more: Omit<Kind, "start"> = {},
): Kind => ({
    ...more,
    start: (rig, t) => rig.fault(t, make(...t.args)),
})

/** A kind that is another broker in the place of the good one. */
const broker = (
    make: (rig: Rig, ...args: number[]) => Play,
    more: Omit<Kind, "start"> = {},
): Kind => ({
    ...more,
    start: (rig, t) => rig.badBroker(t, make(rig, ...t.args)),
})

/** Log-uniform, so that short and long are equally likely. */
export function between(random: LabRandom, low: number, high: number): number {
    const ratio = high / low
    return Math.round(low * ratio ** (random.below(10_001) / 10_000))
}

const ms =
    (low: number, high: number) =>
    (random: LabRandom): number[] => [between(random, low, high)]

const upTo =
    (count: number) =>
    (random: LabRandom): number[] => [random.below(count)]

const OVERFLOWS = ["rst", "silent", "busy"] as const
const WRITE_CODES = [-1, -10, -100]
const MINUTES = 60_000

/** Things a broker may say that nobody asked for. */
const ODD: readonly ((c: Conn) => void)[] = [
    c => c.send("40 02 00 01"), // PUBACK for nothing
    c => c.send("90 03 ff ff 00"), // SUBACK for nothing
    c => c.send("b0 02 00 07"), // UNSUBACK for nothing
    c => c.pingresp(),
    c => c.connack(), // a second CONNACK
    c => c.send("e0 00"), // DISCONNECT is not for brokers to send
    c => c.send("30 00"), // PUBLISH without a topic
    c => c.send("34 06 00 01 61 00 01 78"), // QoS 2
    c => c.send("30 ff ff ff ff 7f"), // a length of five bytes
    c => c.send("f0 00"),
    c => c.send("d000".repeat(2000)), // PINGRESPs without end
    c => c.publish("soak/odd/+", "wildcard"),
    c => c.publish("soak/a/b", Buffer.alloc(3000, 0x78), { qos: 1 }),
]

/** Every kind by its name. */
export const KINDS: Record<string, Kind> = {
    // ---- dialling ----
    refuse: net(faults.refuse),
    unreachable: net(faults.unreachable, { draw: ms(10, 20_000) }),
    noSuchHost: net(faults.noSuchHost, { draw: ms(1, 20_000) }),
    blackHole: net(faults.blackHole),
    someSynsLost: net(p => faults.sometimes(p, faults.blackHole()), {
        draw: ms(5, 95),
    }),

    // ---- the device's natives ----
    noNetwork: net(faults.noNetwork),
    writeFails: net(
        (p, i) => faults.sometimes(p, faults.writeReturns(WRITE_CODES[i])),
        { draw: r => [between(r, 5, 100), r.below(3)] },
    ),
    openFails: net(p => faults.sometimes(p, faults.openFails()), {
        draw: ms(10, 100),
    }),
    chipResets: net(() => faults.openThrows(), {
        longestMs: 5 * MINUTES,
        weight: 2,
    }),
    lateClose: net(faults.lateClose, { draw: ms(1, 95) }),

    // ---- the way of the bytes ----
    latency: net(faults.latency, {
        draw: r => [between(r, 1, 5000), between(r, 1, 5000)],
    }),
    split: net(faults.split, { draw: ms(1, 40) }),
    trickle: net(faults.trickle, { draw: ms(1, 500) }),
    coalesce: net(faults.coalesce, { draw: ms(1, 3000) }),

    // ---- silence ----
    swallow: net(faults.swallow),
    swallowToDevice: net(faults.swallowToDevice),
    swallowToBroker: net(faults.swallowToBroker),
    partition: net(faults.partition),

    // ---- ends ----
    resetAfter: net(faults.resetAfter, { draw: ms(1, 100_000) }),
    finAfter: net(faults.finAfter, { draw: ms(1, 100_000) }),
    resetAfterBytes: net(faults.resetAfterBytes, { draw: upTo(60) }),
    finAfterBytes: net(faults.finAfterBytes, { draw: upTo(60) }),
    resetAfterBytesOut: net(faults.resetAfterBytesToBroker, {
        draw: r => [1 + r.below(400)],
    }),

    // ---- the broker ----
    brokerDown: {
        draw: r => [r.below(2), r.below(2)],
        weight: 6,
        start: (rig, t) => rig.brokerDown(t, !!t.args[0], !!t.args[1]),
    },
    brokerMute: broker(() => plays.mute(), { weight: 1 }),
    brokerRefuses: broker((_, code) => plays.refuse(code), {
        draw: r => [1 + r.below(7)],
        weight: 3,
    }),
    brokerLate: broker((_, delay) => plays.lateConnack(delay), {
        draw: ms(100, 60_000),
        weight: 1,
    }),
    brokerTrickles: broker((_, every) => plays.tricklingConnack(every), {
        draw: ms(10, 20_000),
        weight: 1,
    }),
    brokerOverload: broker(
        (rig, rate, backlog, overflow) =>
            new plays.Overload(
                rig.world,
                rate / 1000,
                backlog,
                OVERFLOWS[overflow],
            ).play,
        {
            draw: r => [between(r, 10, 2000), r.below(4), r.below(3)],
            weight: 3,
        },
    ),
    brokerKicks: broker(
        (_, delay, how) => plays.kick(delay, how ? "fin" : "rst"),
        { draw: r => [between(r, 1, 15_000) - 1, r.below(2)], weight: 3 },
    ),
    brokerAccepts: broker(
        (_, delay, how) => plays.endAfterAccept(delay, how ? "fin" : "rst"),
        { draw: r => [r.below(30), r.below(2)], weight: 1 },
    ),
    brokerDeaf: broker(() => plays.deafAfterConnack(), { weight: 1 }),
    brokerNoPings: broker(() => plays.noPings(), { weight: 1 }),
    brokerNoPubacks: broker(() => plays.noPubacks(), { weight: 1 }),
    brokerNoSubacks: broker(() => plays.noSubacks(), { weight: 1 }),
    brokerNoSubs: broker(() => plays.subackFailure(), { weight: 1 }),
    brokerReverses: broker((_, count) => plays.reversedPubacks(count), {
        draw: r => [2 + r.below(3)],
        weight: 1,
    }),
    brokerGreets: broker(
        (_, byte, more) => plays.greetWith(Buffer.from([byte, more])),
        { draw: r => [r.below(256), r.below(256)], weight: 1 },
    ),
    brokerOdd: broker(
        (_, which, delay) => ({
            connect(c) {
                c.connack()
                c.after(delay, () => ODD[which](c))
            },
        }),
        {
            draw: r => [r.below(ODD.length), between(r, 1, 30_000)],
            weight: 3,
        },
    ),

    // ---- sessions and messages ----
    operatorKicks: {
        needs: "device",
        longestMs: 0,
        weight: 3,
        draw: upTo(2),
        start: (rig, t) => rig.kick(t),
    },
    takeover: {
        needs: "device",
        longestMs: 10 * MINUTES,
        draw: ms(500, 60_000),
        start: (rig, t) => rig.takeOver(t),
    },
    giant: {
        needs: "device",
        longestMs: 60 * MINUTES,
        draw: r => [between(r, 1000, 200_000), r.below(2)],
        start: (rig, t) => rig.giant(t),
    },
    flood: {
        needs: "device",
        longestMs: 0,
        weight: 3,
        draw: r => [between(r, 5, 400), between(r, 1, 800), r.below(2)],
        start: (rig, t) => rig.flood(t),
    },
    command: {
        needs: "device",
        longestMs: 0,
        weight: 3,
        draw: upTo(4),
        start: (rig, t) => rig.command(t),
    },

    // ---- the device ----
    powerCut: {
        needs: "device",
        longestMs: 30 * MINUTES,
        weight: 3,
        start: (rig, t) => rig.cutPower(t),
    },
    powerCutAtEvent: {
        needs: "device",
        longestMs: 30 * MINUTES,
        weight: 4,
        draw: ms(1, 200),
        start: (rig, t) => rig.cutPowerAtEvent(t),
    },
    crash: {
        needs: "device",
        longestMs: 0,
        weight: 3,
        start: (rig, t) => rig.crash(t),
    },
    clockLeap: {
        needs: "device",
        longestMs: 0,
        weight: 1,
        draw: ms(1, 300_000),
        start: (rig, t) => rig.leap(t),
    },

    // ---- Wi-Fi ----
    wifiGone: { needs: "wifi", weight: 4, start: (rig, t) => rig.leaveWifi(t) },
    wifiMoves: {
        needs: "wifi",
        longestMs: 0,
        draw: r => [1 + r.below(254)],
        start: (rig, t) => rig.joinWifi(t, [10, 0, 0, t.args[0]]),
    },
    wifiZero: {
        needs: "wifi",
        start: (rig, t) => rig.joinWifi(t, [0, 0, 0, 0]),
    },
    wifiNoAddress: {
        needs: "wifi",
        start: (rig, t) => rig.joinWifi(t, []),
    },
}

/** Counts each time a fault takes effect on something. */
export function counted(fault: Fault, fired: () => void): Fault {
    return link => {
        const h = fault(link)
        const count = <T>(result: T, effect: boolean): T => {
            if (effect) fired()
            return result
        }
        const { toDevice, toBroker } = h
        const passes = (out: unknown[], piece: unknown) =>
            out.length === 1 && out[0] === piece
        return {
            isUp: h.isUp && (() => count(h.isUp!(), true)),
            open:
                h.open &&
                (() => {
                    fired()
                    return h.open!()
                }),
            dial:
                h.dial &&
                (() => {
                    const fate = h.dial!()
                    return count(fate, fate !== undefined)
                }),
            opened: h.opened && (() => count(h.opened!(), true)),
            write:
                h.write &&
                (bytes => {
                    const code = h.write!(bytes)
                    return count(code, code !== undefined)
                }),
            toDevice:
                toDevice &&
                (piece => {
                    const out = toDevice(piece)
                    return count(out, !passes(out, piece))
                }),
            toBroker:
                toBroker &&
                (piece => {
                    const out = toBroker(piece)
                    return count(out, !passes(out, piece))
                }),
            closed: h.closed && (() => count(h.closed!(), true)),
        }
    }
}
