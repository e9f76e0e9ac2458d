// Any restart record that can be, for property tests.
import fc from "fast-check"
import type { RestartRecord } from "../../src/core/record"

/** Any record that can be. */
export const anyRecord: fc.Arbitrary<RestartRecord> = fc.record(
    {
        buildHash: fc.nat(),
        upS: fc.oneof(fc.nat(4294967), fc.nat(2), fc.nat(10000)),
        trips: fc.oneof(fc.nat(99), fc.nat(3)),
        state: fc.constantFrom("run", "held", "trial"),
        leftS: fc.nat(3600),
        intent: fc.constantFrom(
            ...(["none", "none", "restart"] as const),
            ...(["watchdog", "planned", "command"] as const),
        ),
        agesS: fc
            .array(fc.nat(3600), { maxLength: 20, size: "max" })
            .map(ages => ages.sort((a, b) => a - b)),
        unknownResets: fc.nat(20),
        watchdogs: fc.nat(9),
        debtS: fc.oneof(fc.nat(454500), fc.nat(3600)),
    },
    { noNullPrototype: true },
)
