// Decides how long a VM on a virtual clock may sleep. The runtime asks for a turn every 10 ms to
// keep its Jacdac services going; without traffic on the bus they have nothing to do, and the program's
// own deadlines stand in its fibers. So an idle device costs a turn a second instead of a hundred.
import { findContext, idleMs, memoryOf, type Memory } from "./context"
import type { VmModule } from "./module"

/** A sleeping VM still gets a turn this often, for the runtime's housekeeping. */
const HOUSEKEEPING_MS = 1000

/** Turns at full rate after a start and after every frame: roles bind, registers are read. */
const AWAKE_TURNS = 10
const START_TURNS = 300

/** Turns between two looks for a program that is not there. */
const IDLE_TURNS = 100

/** Where a Jacdac frame has its first packet's service and command; both 0: an announcement. */
const SERVICE_INDEX = 13
const COMMAND = 14

export class LazyTurns {
    private memory: Memory | undefined
    private ctx = 0
    private awake = START_TURNS
    /** The device has printed something since no program was found: it does so when one starts. */
    private hasPrinted = true

    printed() {
        this.hasPrinted = true
    }

    /** The device speaks on the bus: no sleep for some turns, unless it only says that it is there. */
    sent(frame: Uint8Array) {
        const announces =
            frame[SERVICE_INDEX] === 0 &&
            frame[COMMAND] + frame[COMMAND + 1] === 0
        if (!announces && this.awake < AWAKE_TURNS) this.awake = AWAKE_TURNS
    }

    /** When the next turn shall be, given that the VM asks for it in `askedMs`. */
    turnMs(vm: VmModule, askedMs: number): number {
        if (this.awake > 0) {
            this.awake--
            return askedMs
        }
        const u8 = vm.HEAPU8
        if (this.memory?.u8 !== u8) this.memory = memoryOf(u8)
        const ctx = this.look(this.memory)
        if (!ctx || ctx !== this.ctx) {
            // No program, or another start of it.
            this.ctx = ctx
            // Without a program (5 s after a crash) looking again soon finds nothing, at a cost.
            this.awake = ctx ? START_TURNS : IDLE_TURNS
            return askedMs
        }
        const ms = Math.min(idleMs(this.memory, ctx), HOUSEKEEPING_MS)
        return ms > askedMs ? ms : askedMs
    }

    /** The program's context, or 0. Searching a memory without one costs a millisecond. */
    private look(memory: Memory): number {
        if (!this.ctx && !this.hasPrinted) return 0
        this.hasPrinted = false
        return findContext(memory, this.ctx)
    }
}
