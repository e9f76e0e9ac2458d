// The stage of a soak: a world with its devices, brokers and traffic, everything that troubles may
// do to it, and the watches that see all of it.
import { encode } from "../lab/mqtt-wire"
import type { Broker } from "../lab/broker"
import type { LabDevice } from "../lab/device"
import type { Fault } from "../lab/link"
import { ScriptedBroker, type Play } from "../lab/scripted-broker"
import { keptIn } from "../lab/stored"
import { World } from "../lab/world"
import { DeviceWatch, type Finding } from "./device-watch"
import { LeapClock } from "./leap-clock"
import { castOf, type Part } from "./cast"
import type { Invariant } from "./invariants"
import { LASTS_MS, type Trouble } from "./schedule"
import { numbered } from "./delivery-watch"
import { counted, KINDS } from "./troubles"

const ADDRESS = "broker:1883"

/** Lines of the world's log kept for a finding. */
const KEEP_LINES = 400

/** More lines at one instant than anything sane prints. */
const MAX_LINES_AT_ONCE = 5000

/** The strict broker's records are emptied when they get this long. */
const KEEP_MESSAGES = 2000

/** What an intruder says. */
const CONNECT = {
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 4,
    clean: true,
    keepalive: 0,
} as const

/** A broker that is not the good one: down, or playing badly. */
interface Regime {
    play: Play | undefined
    keep: boolean
    how: "fin" | "reset"
}

/** A device of the soak, with what it plays and who watches it. */
export interface Actor {
    part: Part
    device: LabDevice
    watch: DeviceWatch
    clock: LeapClock
}

export class Rig {
    readonly world: World
    readonly actors: Actor[] = []
    readonly strict: Broker
    /** How often each kind of trouble took effect. */
    readonly fired: Record<string, number> = {}
    finding: Finding | undefined
    /** Numbers given to messages so far. */
    messages = 0
    private bad: ScriptedBroker | undefined
    private readonly regimes: Regime[] = []
    private violations = 0

    private constructor(readonly seed: number) {
        this.world = new World({ seed, keepLog: KEEP_LINES })
        this.strict = this.world.broker(ADDRESS)
    }

    /**
     * @param devices how many; cast.ts says what each is
     * @param program the firmware, instead of src/main.ts
     */
    static async make(
        seed: number,
        devices: number,
        program?: string,
    ): Promise<Rig> {
        const rig = new Rig(seed)
        const drawn = new Set<string>()
        for (const part of castOf(seed, devices, program)) {
            const device = await rig.world.device(part.spec)
            const clock = new LeapClock(rig.world.clock)
            device.vm.options.clock = clock
            const watch = new DeviceWatch(
                part,
                (invariant, what) => rig.found({ part }, invariant, what),
                drawn,
                () => keptIn(device.flash.image),
            )
            rig.actors.push({ part, device, watch, clock })
        }
        rig.listen()
        return rig
    }

    /** Hears everything that happens, before anything else is done about it. */
    private listen() {
        const { world } = this
        const byName = new Map(this.actors.map(a => [a.part.name, a]))
        const { log, net } = world
        const add = log.add.bind(log)
        let lastMs = 0
        let atOnce = 0
        log.add = (atMs, who, what) => {
            add(atMs, who, what)
            if (who === ADDRESS) return this.violated()
            const actor = byName.get(who)
            // What the network says of a device comes through the tap, with its bytes.
            if (!actor || /^#\d/.test(what)) return
            // Lines of the network don't count: a healed partition lets go of thousands of bytes at once.
            const ofNetwork = /^#\d/.test(what)
            if (atMs !== lastMs) atOnce = 0
            else if (!ofNetwork) atOnce++
            lastMs = atMs
            if (atOnce > MAX_LINES_AT_ONCE) {
                atOnce = 0
                this.hangs(actor, what)
            }
            actor.watch.event(atMs, what)
        }
        const tap = net.tap
        net.tap = (device, what, bytes) => {
            tap(device, what, bytes)
            byName.get(device)?.watch.wire(world.nowMs, what, bytes)
        }
    }

    /** Time stands still: only an exception gets out of a VM that never returns. */
    private hangs(actor: Actor, what: string) {
        actor.watch.hangs(what)
        throw new Error("the soak ends a program that hangs")
    }

    private violated() {
        const { violations } = this.strict
        for (; this.violations < violations.length; ++this.violations) {
            const { device, clause, what } = violations[this.violations]
            const actor = this.actorNamed(device)
            if (actor) this.found(actor, "standard", `${clause} ${what}`)
        }
    }

    /** Notes that an invariant did not hold; the first finding counts. */
    found({ part }: Pick<Actor, "part">, invariant: Invariant, what: string) {
        this.finding ??= {
            invariant,
            device: part.name,
            atMs: this.world.nowMs,
            what,
            tail: this.world.tail(KEEP_LINES).split("\n"),
        }
    }

    actorNamed(name: string | undefined): Actor | undefined {
        return this.actors.find(a => a.part.name === name)
    }

    /** What should have happened by now, and what must not grow. */
    look() {
        const { nowMs } = this.world
        for (const { device, watch } of this.actors) {
            watch.look(nowMs)
            // A start that is held, or has not begun yet, has no client: its heap would be the floor for ever.
            const { phase } = watch.policy
            if (!watch.isRunning || phase === "held" || phase === "booted")
                continue
            const heap = heapOf(device)
            if (heap) watch.upkeep.look(nowMs, heap.usedBytes, heap.fibers)
            device.lines.length = 0
            device.console.length = 0
        }
        if (this.strict.messages.length > KEEP_MESSAGES) this.forget()
    }

    /** Empties the strict broker's records, counting answers first. */
    forget() {
        for (const m of this.strict.messages)
            for (const { watch } of this.actors) watch.published(m)
        this.strict.messages = []
        this.strict.wills.length = 0
        this.strict.violations.length = 0
        this.violations = 0
    }

    /** What the devices did, added up. */
    stats(): Record<string, number> {
        const sum = (of: (w: DeviceWatch) => number) =>
            this.actors.reduce((n, a) => n + of(a.watch), 0)
        return {
            messages: this.messages,
            deliveries: sum(w => w.delivery.deliveries),
            answers: sum(w => w.answers),
            accepted: sum(w => w.outbound.accepted),
            acknowledged: sum(w => w.outbound.acknowledged),
            repeats: sum(w => w.outbound.repeats),
            setAside: sum(w => w.outbound.dropped),
            restored: sum(w => w.outbound.restored),
            connects: sum(w => w.connects),
            losses: sum(w => w.losses),
            starts: sum(w => w.upkeep.starts),
            flashWrites: sum(w => w.upkeep.writes),
        }
    }

    // ---- traffic ----

    /** Sends a numbered message to a device through whatever broker there is; returns its number. */
    send(actor: Actor, topic: string, bytes: number, qos: 0 | 1): number {
        const number = ++this.messages
        const payload = numbered(number, bytes)
        actor.watch.sends(number, {
            topic,
            bytes: payload.length,
            qos,
            retain: false,
        })
        if (!this.regimes.length) this.strict.publish(topic, payload, { qos })
        else
            for (const c of this.bad?.open ?? [])
                if (c.device === actor.part.name && actor.watch.isUp)
                    c.publish(topic, payload, { qos })
        return number
    }

    // ---- troubles ----

    /** Starts a trouble; it ends by itself. */
    begin(trouble: Trouble) {
        const end = KINDS[trouble.what].start(this, trouble)
        const { world } = this
        world.say("soak", `begin ${trouble.id} ${trouble.what}`)
        if (!end) return
        world.after(trouble.forMs, () => {
            world.say("soak", `end ${trouble.id} ${trouble.what}`)
            end()
        })
    }

    private count(name: string) {
        this.fired[name] = (this.fired[name] ?? 0) + 1
    }

    fault(t: Trouble, fault: Fault): () => void {
        const address = t.what === "noNetwork" ? "*" : ADDRESS
        const active = this.world.net.fault(
            address,
            counted(fault, () => {
                this.count(t.what)
                if (t.what === "openFails")
                    for (const { watch } of this.actors)
                        watch.upkeep.mayStick(this.world.nowMs)
                if (t.what === "chipResets")
                    for (const { watch } of this.actors)
                        watch.upkeep.mayReset(this.world.nowMs)
            }),
            t.device,
        )
        return () => active.off()
    }

    /** A broker that plays badly takes the good one's place. */
    badBroker(t: Trouble, play: Play): () => void {
        const accept = play.accept?.bind(play)
        const counting: Play = {
            ...play,
            accept: c => {
                this.count(t.what)
                accept?.(c)
            },
        }
        return this.rule({ play: counting, keep: true, how: "reset" })
    }

    brokerDown(t: Trouble, keep: boolean, fin: boolean): () => void {
        this.count(t.what)
        return this.rule({
            play: undefined,
            keep,
            how: fin ? "fin" : "reset",
        })
    }

    private rule(regime: Regime): () => void {
        this.regimes.push(regime)
        this.appoint(regime)
        return () => {
            const at = this.regimes.indexOf(regime)
            this.regimes.splice(at, 1)
            if (at === this.regimes.length) this.appoint(regime)
        }
    }

    /** Makes the latest regime rule, or the good broker if there is none. */
    private appoint({ keep, how }: Regime) {
        if (this.bad) this.bad.down(how)
        else this.strict.crash({ keep, how })
        this.bad = undefined
        const now = this.regimes.at(-1)
        if (!now) this.strict.start()
        else if (now.play)
            this.bad = new ScriptedBroker(this.world, ADDRESS).always(now.play)
    }

    kick(t: Trouble) {
        const actor = this.actorNamed(t.device)!
        if (!this.strict.connected.includes(actor.part.clientId)) return
        this.count(t.what)
        this.strict.kick(actor.part.clientId, t.args[0] ? "fin" : "reset")
    }

    /** Another client with the same identifier comes, again and again. */
    takeOver(t: Trouble): () => void {
        const actor = this.actorNamed(t.device)!
        const { world } = this
        let over = false
        let close = () => {}
        const dial = () => {
            if (over) return
            world.after(t.args[0], dial)
            close()
            close = this.intrude(t, actor.part.clientId)
        }
        dial()
        return () => {
            over = true
            close()
        }
    }

    /** One connection of another client with this identifier; returns what ends it. */
    private intrude(t: Trouble, clientId: string): () => void {
        try {
            const socket = this.world.net
                .view(`intruder ${t.id}`)
                .open("broker", 1883, false, {
                    open: () => {
                        this.count(t.what)
                        socket.write(encode({ ...CONNECT, clientId }))
                    },
                    data() {},
                    error() {},
                    close() {},
                })
            return () => socket.close()
        } catch {
            // A fault that would have killed a device's VM.
            return () => {}
        }
    }

    giant(t: Trouble): () => void {
        const actor = this.actorNamed(t.device)!
        const [bytes, qos] = t.args
        const { giant: topic } = actor.part
        this.count(t.what)
        const payload = Buffer.alloc(bytes, 0x2e)
        this.strict.publish(topic, payload, { qos: qos as 0 | 1, retain: true })
        for (const c of this.bad?.open ?? [])
            if (c.clientId) c.publish(topic, payload, { retain: true })
        return () => this.strict.publish(topic, "", { retain: true })
    }

    flood(t: Trouble) {
        const actor = this.actorNamed(t.device)!
        const [count, bytes, qos] = t.args
        this.count(t.what)
        for (let i = 0; i < count; ++i)
            this.send(actor, actor.part.topics[0], bytes, qos as 0 | 1)
    }

    /** A command of the reference firmware. */
    command(t: Trouble) {
        const actor = this.actorNamed(t.device)!
        const name = ["retry", "reboot", "status", "log"][t.args[0]]
        if (actor.part.isApp || this.regimes.length) return
        this.count(t.what)
        const { nowMs } = this.world
        if (name === "retry") actor.watch.policy.toldToRetry(nowMs)
        if (name === "reboot") {
            actor.watch.policy.toldToReboot(nowMs)
            // A partition lets go of it when it is over.
            actor.watch.upkeep.mayReset(nowMs, LASTS_MS[1])
        }
        this.strict.publish(`${actor.part.inbox}/cmd/${name}`, "60")
    }

    cutPower(t: Trouble): () => void {
        const { device } = this.actorNamed(t.device)!
        this.count(t.what)
        device.powerOff()
        return () => device.powerOn()
    }

    /** Cuts the power right after the n-th event from now. */
    cutPowerAtEvent(t: Trouble): () => void {
        const { device } = this.actorNamed(t.device)!
        const { world } = this
        const at = world.log.count + t.args[0]
        let over = false
        const watch = () => {
            if (over) return
            if (world.log.count < at) return void world.after(1, watch)
            over = true
            this.count(t.what)
            device.powerCycle()
        }
        watch()
        return () => {
            over = true
        }
    }

    crash(t: Trouble) {
        const { device, watch } = this.actorNamed(t.device)!
        if (!device.vm.isOn || !watch.isRunning) return
        this.count(t.what)
        watch.upkeep.mayPanic()
        device.crash()
    }

    /** The device's clock moves on to shortly before 2^31 ms; once in a program's life. */
    leap(t: Trouble) {
        const { watch, clock } = this.actorNamed(t.device)!
        const leftMs = 2 ** 31 - t.args[0] - watch.deviceMs(this.world.nowMs)
        if (!watch.isRunning || leftMs <= 0) return
        this.count(t.what)
        clock.leap(leftMs)
        watch.leapt(leftMs)
    }

    leaveWifi(t: Trouble): (() => void) | void {
        const { device } = this.actorNamed(t.device)!
        this.count(t.what)
        device.leaveWifi()
        return () => device.joinWifi()
    }

    joinWifi(t: Trouble, ip: number[]): (() => void) | void {
        const { device } = this.actorNamed(t.device)!
        this.count(t.what)
        device.joinWifi(ip)
        return () => device.joinWifi()
    }

    // ---- healing ----

    /** Ends everything that may still be wrong; troubles have ended by themselves. */
    heal() {
        this.world.say("soak", "heal")
        this.world.net.heal()
        for (const { device, part } of this.actors) {
            device.powerOn()
            if (part.spec.wifi) device.joinWifi()
        }
    }

    async close() {
        await this.world.close()
    }
}

function heapOf(device: LabDevice) {
    try {
        return device.heap()
    } catch {
        // No program: it has just died.
        return undefined
    }
}
