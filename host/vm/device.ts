// One simulated device: the real DeviceScript VM with its clock, network, entropy, flash
// and Jacdac bus injected. It can be switched on and off like a board; flash outlives both.
import type { Clock, Timer } from "./clock"
import { memoryOf, programsIn } from "./context"
import type { Flash } from "./flash"
import { LazyTurns } from "./lazy-turns"
import { createVm, type VmModule } from "./module"
import { noSocket, type Network, type Socket } from "./network"

/** What a device is made of. */
export interface DeviceOptions {
    /** 16 hexadecimal digits. */
    deviceId: string
    clock: Clock
    network: Network
    flash: Flash
    /** Size of the flash store in bytes, two banks; the VM's own 8 kB when left out. */
    flashBytes?: number
    /** The hardware's random numbers. */
    entropy: (bytes: number) => Uint8Array
    /** Collects garbage at every allocation: slow, finds dangling references. */
    gcStress?: boolean
    /**
     * Lets the VM sleep until it has something to do, instead of waking it every 10 ms: much faster
     * on a virtual clock, no use on the real one.
     */
    lazyTurns?: boolean
    /** Each line the device prints on its console, as it comes out of the serial port. */
    onConsole?: (line: string) => void
    /** The program died (0: it asked for `ds.restart()`); the runtime starts it again. */
    onPanic?: (code: number) => void
    /** `ds.reboot()`: the chip has reset and boots again from flash. */
    onReboot?: () => void
    /** The VM itself died, which the real chip would answer with a reset. */
    onAbort?: (reason: string) => void
    /** A frame from the device to its Jacdac bus. */
    onFrame?: (frame: Uint8Array) => void
}

const EVENT_OPEN = 1
const EVENT_CLOSE = 2
const EVENT_ERROR = 3
const EVENT_MESSAGE = 4

/** From `ds.reboot()` to the first instruction of the runtime, as short as on an ESP32. */
const REBOOT_MS = 300

/** Where a program's header says where its code is: start and length, 32 bits each. */
const CODE_SECTION = 40

/** Above the last opcode and below the first constant. */
const ILLEGAL_OPCODE = 0x7f

/** Return code of socket natives when there is no socket. */
const NO_SOCKET = -10

export class DeviceVm {
    private vm: VmModule | undefined
    private socket: Socket | undefined
    private rebootTimer: Timer | undefined
    /** Times the program died since the device was made, `ds.restart()` not counted. */
    panics: number[] = []
    /** Code that `crash` overwrote, until it is put back. */
    private damaged: { start: number; code: Uint8Array }[] = []

    constructor(readonly options: DeviceOptions) {}

    /** True from powerOn to powerOff (a reboot in between included). */
    get isOn() {
        return this.vm !== undefined || this.rebootTimer !== undefined
    }

    /** The VM's memory, for measurements from outside; throws when switched off. */
    get memory(): Uint8Array {
        return this.running().HEAPU8
    }

    /** Switches the power on: boots the runtime, which starts the program in flash. */
    powerOn() {
        if (this.isOn) return
        const { options } = this
        const lazy = options.lazyTurns ? new LazyTurns() : undefined
        const vm = createVm({
            clock: options.clock,
            entropy: options.entropy,
            diagnostics: () => {},
            turnMs: lazy && (askedMs => lazy.turnMs(vm, askedMs)),
        })
        this.vm = vm
        if (options.flashBytes) vm.flashSize = options.flashBytes
        vm.flashLoad = () => options.flash.load()
        vm.flashSave = image =>
            options.flash.save(this.undamaged(wholeFlash(vm, image)))
        vm.dmesg = line => {
            lazy?.printed()
            options.onConsole?.(line)
        }
        vm.sendPacket = frame => {
            lazy?.sent(frame)
            options.onFrame?.(frame)
        }
        vm.log = () => {}
        vm.error = (e: unknown) => this.stopped(vm, e)
        vm.panicHandler = code => {
            this.repair()
            if (code) this.panics.push(code)
            options.onPanic?.(code)
        }
        vm.deployHandler = () => {}
        this.giveSockets(vm)
        vm.devsGcStress(!!options.gcStress)
        vm.devsSetDeviceId(options.deviceId)
        vm.devsStart()
    }

    /** Cuts the power at this instant. */
    powerOff() {
        this.options.clock.clearTimeout(this.rebootTimer)
        this.rebootTimer = undefined
        this.vm?.devsStop()
        this.vm = undefined
        this.damaged = []
        this.socket?.destroy()
        this.socket = undefined
    }

    /** Stores a program in flash and starts it. Throws when the VM refuses it. */
    deploy(bytecode: Uint8Array) {
        this.repair()
        const code = this.running().devsDeploy(bytecode)
        if (code) throw new Error(`the VM refused the program: code ${code}`)
    }

    /**
     * Makes the program die, whatever it is doing and with no code of its own taking part: its
     * code is overwritten in memory, so that the next instruction is an illegal one (panic
     * 60102). At the panic the code is put back, and the runtime starts it anew 5 s later.
     * A program that waits dies when it wakes; the device's own announcement every 500 ms does
     * that. One that has just died dies once more at its next start.
     * @returns false when there is no program, or it is damaged already
     */
    crash(): boolean {
        const memory = this.memory
        if (this.damaged.length) return false
        for (const { start, end } of codeIn(memory)) {
            this.damaged.push({ start, code: memory.slice(start, end) })
            memory.fill(ILLEGAL_OPCODE, start, end)
        }
        return this.damaged.length > 0
    }

    private repair() {
        for (const { start, code } of this.damaged) this.memory.set(code, start)
        this.damaged = []
    }

    /** The runtime's flash lies in the same memory: what it saves has the whole program. */
    private undamaged(image: Uint8Array): Uint8Array {
        if (!this.damaged.length) return image
        const whole = image.slice()
        for (const { start, end } of codeIn(image)) {
            const same = this.damaged.find(d => d.code.length === end - start)
            if (same) whole.set(same.code, start)
        }
        return whole
    }

    /** A frame from the Jacdac bus to the device; lost while it is off. */
    receiveFrame(frame: Uint8Array) {
        this.vm?.handlePacket(frame)
    }

    private running(): VmModule {
        if (!this.vm) throw new Error("the device is switched off")
        return this.vm
    }

    /** The C program ended: by `ds.reboot()`, or because the VM aborted. */
    private stopped(vm: VmModule, e: unknown) {
        if (vm !== this.vm) return
        this.powerOff()
        const { clock, onReboot, onAbort } = this.options
        this.rebootTimer = clock.setTimeout(() => {
            this.rebootTimer = undefined
            this.powerOn()
        }, REBOOT_MS)
        if ((e as Error)?.name === "ExitStatus") onReboot?.()
        else onAbort?.(String(e))
    }

    private giveSockets(vm: VmModule) {
        const { network, clock } = this.options
        vm.sockIsAvailable = () => network.isUp()
        vm.sockOpen = (hostPointer, signedPort) => {
            this.socket?.close()
            const tls = signedPort < 0
            const port = tls ? -signedPort : signedPort
            const host = readString(vm, hostPointer)
            const name = `${tls ? "tls" : "tcp"}://${host}:${port}`
            const inbox = new Inbox(clock, vm, () => socket === this.socket)
            const socket = network.open(host, port, tls, {
                open: () => inbox.put(EVENT_OPEN),
                data: bytes => inbox.put(EVENT_MESSAGE, bytes),
                error: message =>
                    inbox.put(EVENT_ERROR, Buffer.from(`${name}: ${message}`)),
                // The socket stays ours: the close may have been another's (see lateClose in the
                // lab), and the runtime ends it at the next open.
                close: () => inbox.put(EVENT_CLOSE),
            })
            this.socket = socket
            return socket === noSocket ? -1 : 0
        }
        vm.sockWrite = (pointer, bytes) =>
            this.socket
                ? this.socket.write(vm.HEAPU8.slice(pointer, pointer + bytes))
                : NO_SOCKET
        vm.sockClose = () => {
            if (!this.socket) return NO_SOCKET
            this.socket.close()
            this.socket = undefined
            return 0
        }
    }
}

/** About what an ESP32's Wi-Fi brings: one chunk of 1,024 B a millisecond. */
const CHUNK_MS = 1

/**
 * Hands a socket's events to the VM in order, data no faster than a real link would: a
 * whole window at once would fill the VM's heap before the program had a turn.
 */
class Inbox {
    private queue: {
        event: number
        bytes?: Uint8Array
    }[] = []
    private busy = false

    constructor(
        private readonly clock: Clock,
        private readonly vm: VmModule,
        private readonly isCurrent: () => boolean,
    ) {}

    put(event: number, bytes?: Uint8Array) {
        this.queue.push({ event, bytes })
        if (!this.busy) this.deliver()
    }

    private deliver() {
        const item = this.queue.shift()
        this.busy = item !== undefined
        if (!item || !this.isCurrent()) return
        this.clock.setTimeout(() => this.deliver(), CHUNK_MS)
        socketEvent(this.vm, item.event, item.bytes)
        this.vm.wake()
    }
}

/**
 * The VM leaves out what is erased at the flash's end, and one byte more: a program there would lose its last bytes, one at each
 * save. The byte is still in the VM's memory.
 */
function wholeFlash({ HEAPU8 }: VmModule, image: Uint8Array): Uint8Array {
    const [offset] = programsIn(memoryOf(image))
    if (offset === undefined) return image
    for (const address of programsIn(memoryOf(HEAPU8))) {
        const start = address - offset
        const end = start + image.length
        if (start < 0 || Buffer.compare(HEAPU8.subarray(start, end), image))
            continue
        return HEAPU8.slice(start, end + 1)
    }
    return image
}

/** Where the code of every compiled program in a VM's memory, or in a flash image of it, lies. */
function codeIn(u8: Uint8Array): { start: number; end: number }[] {
    const memory = memoryOf(u8)
    const word = (address: number) => memory.u32[address >> 2]
    const found: { start: number; end: number }[] = []
    for (const at of programsIn(memory)) {
        const start = at + word(at + CODE_SECTION)
        const end = start + word(at + CODE_SECTION + 4)
        if (end <= u8.length) found.push({ start, end })
    }
    return found
}

function readString(vm: VmModule, pointer: number): string {
    const end = vm.HEAPU8.indexOf(0, pointer)
    return Buffer.from(vm.HEAPU8.subarray(pointer, end)).toString("utf8")
}

function socketEvent(vm: VmModule, event: number, bytes?: Uint8Array) {
    if (!bytes) return vm._jd_em_tcpsock_on_event(event, 0, 0)
    const pointer = vm._malloc(bytes.length)
    vm.HEAPU8.set(bytes, pointer)
    vm._jd_em_tcpsock_on_event(event, pointer, bytes.length)
    vm._free(pointer)
}
