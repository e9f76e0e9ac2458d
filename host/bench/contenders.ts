// Whom the part "core" compares: our Backoff and three retry libraries, each doing the same. What they wait
// for differs (they wait for one caller, we for a fleet), so this is about the price of a delay, not its worth.
import {
    ExponentialBackoff,
    fullJitterGenerator,
    halfJitterGenerator,
    handleAll,
    noJitterGenerator,
    decorrelatedJitterGenerator,
    retry,
    type GeneratorFn,
} from "cockatiel"
import { backOff } from "exponential-backoff"
import { DelayFactory } from "exponential-backoff/dist/delay/delay.factory"
import pRetry from "p-retry"
import { Backoff } from "../../src/core/backoff"
import { defaultPolicy, type Jitter } from "../../src/core/policy"
import { Sfc32 } from "../../src/core/random"
import { stalled } from "../../src/core/verdict"

/** Does something so many times. */
export interface Contender {
    run(count: number): void | Promise<void>
}

/** The same thing, done by us and by others. */
export interface Row {
    what: string
    ours: Contender
    others: Record<string, Contender>
}

/** Delays of one outage: the first wait and seven more. */
const OUTAGE = 8

const MIN_MS = 1000
const CAP_MS = 60_000

const VERDICT = stalled("bench")

/** What all of them draw; read by `sink` so that nothing is optimized away. */
let sum = 0
export const sink = () => sum

function policyOf(strategy: Jitter | "fitted") {
    const policy = defaultPolicy()
    policy.minMs = MIN_MS
    policy.capMs = policy.overloadCapMs = CAP_MS
    if (strategy === "fitted") policy.spreadMs = CAP_MS / 2
    else policy.jitter = strategy
    return policy
}

function ourDelays(strategy: Jitter | "fitted"): Contender {
    const backoff = new Backoff(policyOf(strategy), new Sfc32(1, 2, 3, 4))
    return {
        run(count) {
            for (let i = 0; i < count; ++i)
                sum = (sum + delayOf(backoff, i % OUTAGE)) | 0
        },
    }
}

const delayOf = (backoff: Backoff, n: number) =>
    n === 0 ? backoff.begin() : backoff.failed(VERDICT, 0)

function cockatielDelays<S>(generator: GeneratorFn<S>): Contender {
    const policy = new ExponentialBackoff({
        generator,
        initialDelay: MIN_MS,
        maxDelay: CAP_MS,
    })
    return {
        run(count) {
            for (let i = 0; i < count; i += OUTAGE) {
                let backoff = policy.next()
                sum = (sum + backoff.duration) | 0
                for (let n = 1; n < OUTAGE; ++n) {
                    backoff = backoff.next(undefined)
                    sum = (sum + backoff.duration) | 0
                }
            }
        },
    }
}

function exponentialBackoffDelays(jitter: "none" | "full"): Contender {
    const options = {
        delayFirstAttempt: true,
        jitter,
        maxDelay: CAP_MS,
        numOfAttempts: OUTAGE,
        retry: () => true,
        startingDelay: MIN_MS,
        timeMultiple: 2,
    }
    return {
        run(count) {
            for (let i = 0; i < count; ++i) {
                // What its `apply` waits for.
                const delay = DelayFactory(options, i % OUTAGE)
                const { jitteredDelay } = delay as unknown as {
                    jitteredDelay: number
                }
                sum = (sum + jitteredDelay) | 0
            }
        },
    }
}

/** Asking for a delay and nothing else. p-retry has no such function. */
export const DELAYS: Row[] = [
    {
        what: "a delay, none",
        ours: ourDelays("none"),
        others: {
            cockatiel: cockatielDelays(noJitterGenerator),
            "exponential-backoff": exponentialBackoffDelays("none"),
        },
    },
    {
        what: "a delay, full",
        ours: ourDelays("full"),
        others: {
            cockatiel: cockatielDelays(fullJitterGenerator),
            "exponential-backoff": exponentialBackoffDelays("full"),
        },
    },
    {
        what: "a delay, equal",
        ours: ourDelays("equal"),
        others: { cockatiel: cockatielDelays(halfJitterGenerator) },
    },
    {
        what: "a delay, decorrelated",
        ours: ourDelays("decorrelated"),
        others: { cockatiel: cockatielDelays(decorrelatedJitterGenerator) },
    },
    {
        what: "a delay, proportional",
        ours: ourDelays("proportional"),
        others: {},
    },
    { what: "a delay, fitted", ours: ourDelays("fitted"), others: {} },
]

/** Thrown again and again: making an error costs more than all else. */
const FAILURE = new Error("bench")

/** A function that fails seven times and then does not, so many times that `count` attempts are made. */
function attempts(
    outage: (task: () => Promise<void>) => Promise<void>,
): Contender {
    return {
        async run(count) {
            for (let done = 0; done < count; done += OUTAGE) {
                let n = 0
                await timersAtOnce(() =>
                    outage(async () => {
                        if (++n < OUTAGE) throw FAILURE
                    }),
                )
            }
        },
    }
}

/** Runs with a setTimeout that waits for nothing: what is left is the library. */
async function timersAtOnce(run: () => Promise<void>) {
    const { setTimeout } = globalThis
    const timer = { unref() {} }
    globalThis.setTimeout = ((callback: () => void) => {
        queueMicrotask(callback)
        return timer
    }) as never
    try {
        await run()
    } finally {
        globalThis.setTimeout = setTimeout
    }
}

function ourRetries(): Contender {
    const backoff = new Backoff(policyOf("full"), new Sfc32(1, 2, 3, 4))
    return attempts(async task => {
        for (;;)
            try {
                return await task()
            } catch {
                const waitMs = backoff.failed(VERDICT, 0)
                await new Promise<void>(done => setTimeout(done, waitMs))
            }
    })
}

/** A whole retry: attempt, failure, delay, timer. Of ours the loop around the delay is the bench's own. */
export const RETRIES: Row[] = [
    {
        what: "a whole retry, full",
        ours: ourRetries(),
        others: {
            cockatiel: attempts(
                (() => {
                    const policy = retry(handleAll, {
                        maxAttempts: OUTAGE,
                        backoff: new ExponentialBackoff({
                            generator: fullJitterGenerator,
                            initialDelay: MIN_MS,
                            maxDelay: CAP_MS,
                        }),
                    })
                    return task => policy.execute(task)
                })(),
            ),
            "exponential-backoff": attempts(task =>
                backOff(task, {
                    jitter: "full",
                    maxDelay: CAP_MS,
                    startingDelay: MIN_MS,
                }),
            ),
            "p-retry": attempts(task =>
                pRetry(task, {
                    randomize: true,
                    minTimeout: MIN_MS,
                    maxTimeout: CAP_MS,
                }),
            ),
        },
    },
]
