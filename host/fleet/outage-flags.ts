// The flags that say what happens to a fleet, the same for `run` and `real`.
import type { Command } from "commander"
import { whole } from "../flags"
import { decimal } from "./tool"

/** Adds them, with what differs between the tools; no outage by default when it is left out. */
export function outageFlags(
    command: Command,
    { rate, outageS }: { rate: number; outageS?: number },
): Command {
    return command
        .option(
            "--rate <c>",
            "connections the broker completes a second",
            decimal(0.01, 1e6),
            rate,
        )
        .option(
            "--backlog <s>",
            "seconds of service it queues; what comes then is dropped",
            decimal(0.01, 3600),
            20,
        )
        .option(
            "--patience <s>",
            "a device waits so long for TCP, and for CONNACK at first",
            decimal(0.1, 600),
            10,
        )
        .option(
            "--outage <s>",
            "the broker is away so long",
            decimal(0, 86_400),
            outageS,
        )
        .option("--silent", "while away it does not even refuse")
        .option("--power-on", "no outage: all are switched on together")
        .option(
            "--margin <m>",
            "fitted spreads over m devices/rate",
            decimal(1, 100),
            1.25,
        )
        .option(
            "--watch <s>",
            "after the outage (default: 10 devices/rate, at least 3600)",
            decimal(1, 1e6),
        )
        .option("--seed <n>", "of all draws", whole(0, 0x7fffffff), 1)
}
