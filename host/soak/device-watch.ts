// All watches of one device together; splits what happens among them.
import { parseLine, type RetryLine } from "../../src/core/line"
import type { Inbound } from "../lab/broker"
import type { Part } from "./cast"
import { DeliveryWatch, type Numbered } from "./delivery-watch"
import { OutboundWatch } from "./outbound-watch"
import type { Invariant, Report } from "./invariants"
import { PolicyWatch } from "./policy-watch"
import { UpkeepWatch } from "./upkeep-watch"
import { WireWatch } from "./wire-watch"

/** An invariant that did not hold. */
export interface Finding {
    invariant: Invariant
    device: string
    atMs: number
    what: string
    /** The last lines of the world's log. */
    tail: string[]
}

export class DeviceWatch {
    readonly policy: PolicyWatch
    readonly wires: WireWatch
    readonly delivery: DeliveryWatch
    readonly outbound: OutboundWatch
    readonly upkeep: UpkeepWatch
    /** Between its boot line and its death. */
    isRunning = false
    /** Times its session began. */
    connects = 0
    losses = 0
    /** Messages of its telemetry that have reached the broker. */
    telemetry = 0
    private pings = 0
    answers = 0
    /** When the program ended last, or will. */
    diedMs = 0
    /** Its clock and the world's at the last look. */
    private aheadMs = 0
    /** Attempts that begin after this have to succeed; Infinity while there are troubles. */
    healedMs = Infinity
    private attemptMs = 0
    /** The first waits of this program start. */
    private draws: string[] = []

    constructor(
        readonly part: Part,
        private readonly report: Report,
        /** Waits that any program of this soak has started with. */
        private readonly drawn = new Set<string>(),
        /** Payloads of the messages that its flash holds. */
        kept: () => string[] = () => [],
    ) {
        const { promises, filters } = part
        this.policy = new PolicyWatch(promises, report)
        this.wires = new WireWatch(
            filters,
            promises.pingMs,
            this.policy,
            report,
            (this.outbound = new OutboundWatch(report, kept)),
        )
        this.delivery = new DeliveryWatch(filters, report)
        this.upkeep = new UpkeepWatch(report, part.isApp)
    }

    /** A line of the world's log about this device: console, power, death. */
    event(atMs: number, what: string) {
        if (what.startsWith("# ")) return this.line(atMs, what)
        if (what.startsWith("> ")) {
            this.outbound.heard(what)
            return this.delivery.heard(what)
        }
        this.upkeep.event(atMs, what)
        if (!DEATHS.some(death => what.startsWith(death))) return
        this.isRunning = false
        this.diedMs = atMs
        this.policy.died()
    }

    private line(atMs: number, text: string) {
        const timed = parseLine(text)
        if (!timed) {
            if (text.includes('{"ev"'))
                this.report("line", `unreadable: ${text}`)
            return
        }
        const { tMs, line } = timed
        if (line.ev === "boot") {
            this.isRunning = true
            this.upkeep.started()
            this.upkeep.restarted(atMs)
            this.delivery.restarted()
            this.outbound.restarted()
            this.draws = []
        }
        this.aheadMs = tMs - atMs
        if (!this.isRunning) return
        if (line.ev === "connected") this.connects++
        if (line.ev === "lost") this.losses++
        if (line.ev === "held" && line.leftMs === 0) this.upkeep.released()
        if (line.ev === "reboot") this.reboots(atMs, line.cause)
        this.policy.line(atMs, tMs, line)
        if (line.ev === "retry") this.draw(line)
        if (line.ev === "attempt") this.attemptMs = atMs
        if (line.ev !== "lost" && line.ev !== "retry") return
        if (line.evidence !== "none" && this.attemptMs > this.healedMs)
            this.report("convergence", `healed, and yet: ${line.reason}`)
    }

    private reboots(atMs: number, cause: string) {
        this.upkeep.reboots(atMs, cause)
        this.policy.toldToReboot(atMs)
    }

    /** The first waits of a start are those of no other start, of no device. */
    private draw({ ceilingMs, delayMs }: RetryLine) {
        const { jitter, minMs } = this.part.promises.policy
        // Where there is nothing to draw from, many start alike.
        if (jitter === "none" || minMs < 100) return
        if (this.draws.length >= DRAWS) return
        this.draws.push(`${delayMs} under ${ceilingMs}`)
        if (this.draws.length < DRAWS) return
        const all = this.draws.join(", ")
        if (this.drawn.has(all)) this.report("apart", `waits ${all} once more`)
        this.drawn.add(all)
    }

    /** The device's own clock. */
    deviceMs(nowMs: number) {
        return nowMs + this.aheadMs
    }

    /** Its clock was moved on. */
    leapt(byMs: number) {
        this.aheadMs += byMs
        this.upkeep.leapt(byMs)
        this.policy.clockLeapt()
    }

    /** It has a session, as far as it knows. */
    get isUp() {
        return this.isRunning && this.policy.phase === "connected"
    }

    /** It prints without end at one instant. */
    hangs(what: string) {
        this.report("no hang", `again and again: ${what}`)
    }

    /** Something on its wire. */
    wire(atMs: number, what: string, bytes: Uint8Array | undefined) {
        this.wires.event(atMs, what, bytes)
    }

    /** A message goes to it. */
    sends(number: number, message: Numbered) {
        this.delivery.sends(number, message)
        if (message.topic.endsWith("/cmd/ping")) this.pings++
    }

    /** Something has reached the broker. */
    published(message: Inbound) {
        const { topic } = message
        if (topic.startsWith(`once/${this.part.spec.id}/`))
            this.outbound.published(message)
        if (topic === this.part.outbox) this.telemetry++
        if (topic !== `${this.part.inbox}/res`) return
        if (!message.payload.includes('"cmd":"ping"')) return
        if (++this.answers > this.pings)
            this.report("twice", `${this.answers} answers, ${this.pings} pings`)
    }

    /** What should have happened by now? */
    look(nowMs: number) {
        if (!this.isRunning) return
        this.policy.look(nowMs)
        this.wires.look(nowMs)
    }
}

/** Waits that tell one start from another: so many are never the same by chance. */
const DRAWS = 4

/** What ends a program, or makes it about to end. */
const DEATHS = ["panic ", "reboot", "abort ", "power off", "crash"]
