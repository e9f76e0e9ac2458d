// What must hold whatever happens, in words. The watches find out; this is only the list.

/** Every invariant by name, with what it says. */
export const INVARIANTS = {
    "no panic": "the program never dies unless the soak made it die",
    "no hang": "no program goes on for ever without letting time pass",
    "no reset": "the chip never resets unless the soak made it reset",
    "one socket": "no dial before the last connection is closed for 100 ms",
    "CONNECT first": "nothing before CONNACK but one CONNECT",
    "DISCONNECT last": "nothing after DISCONNECT",
    standard: "the strict broker has nothing to complain about",
    gap: "the next dial comes when the policy says, within its bounds",
    ceiling:
        "the ceiling grows and goes back to the start by the policy's rules, and only by them",
    apart: "no two program starts draw the same waits",
    patience: "CONNACK and TCP are waited for as long as the policy says",
    silence: "a silent peer is left after keep alive and ping",
    "gives up": "it never gives up",
    held: "a hold begins at a start and gets shorter, to its end",
    line: "every change of state has its line, and every line its change",
    delivery: "a message reaches only handlers whose filter matches, unharmed",
    twice: "no message twice at QoS 0, at QoS 1 only with DUP",
    once: "a message accepted with QoS 1 arrives while the power stays on, again only as the same message, and past a receiver's Dedup once",
    "flash outbox":
        "a message of QoS 1 that is in flash when the program dies arrives after the restart",
    order: "messages of QoS 1 arrive in order on each topic",
    subscriptions: "each subscription is made once on each connection",
    heap: "the heap does not grow",
    fibers: "the number of fibers is bounded",
    flash: "flash is written within its budget",
    convergence:
        "once all is healed: connected, subscribed and publishing in the time that the policy promises",
} as const

export type Invariant = keyof typeof INVARIANTS

/** Called when an invariant does not hold. */
export type Report = (invariant: Invariant, what: string) => void

/** How late the VM may do what it has to, ms: its turn, two hops and a busy moment. */
export const SLACK_MS = 300
