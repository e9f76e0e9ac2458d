// Random properties of MQTT 5, and the same as mqtt-packet has them. Node only.
import fc from "fast-check"
import type { Property } from "../../src/mqtt/v5-properties"
import { clientText, topicName } from "./arbitrary"

const u16 = fc.integer({ min: 1, max: 65535 })
const u32 = fc.oneof(
    fc.integer({ min: 1, max: 0xffffffff }),
    fc.constantFrom(1, 0x7fffffff, 0x80000000, 0xffffffff),
)
const bytes = fc.uint8Array({ maxLength: 30 }).map(b => Buffer.from(b))
const flag = fc.nat(1)
const varint = fc.oneof(
    fc.integer({ min: 1, max: 268435455 }),
    fc.constantFrom(127, 128, 16383, 16384, 2097151, 2097152, 268435455),
)

/** Every property of table 2-4 but user properties: its name there, and its values. */
const KINDS: [
    id: number,
    name: string,
    value: fc.Arbitrary<number | string | Buffer>,
    asBoolean?: true,
][] = [
    [1, "payloadFormatIndicator", flag, true],
    [2, "messageExpiryInterval", u32],
    [3, "contentType", clientText(0)],
    [8, "responseTopic", topicName],
    [9, "correlationData", bytes],
    [11, "subscriptionIdentifier", varint],
    [17, "sessionExpiryInterval", u32],
    [18, "assignedClientIdentifier", clientText(0)],
    [19, "serverKeepAlive", u16],
    [21, "authenticationMethod", clientText(0)],
    [22, "authenticationData", bytes],
    [23, "requestProblemInformation", flag, true],
    [24, "willDelayInterval", u32],
    [25, "requestResponseInformation", flag, true],
    [26, "responseInformation", clientText(0)],
    [28, "serverReference", clientText(0)],
    [31, "reasonString", clientText(0)],
    [33, "receiveMaximum", u16],
    [34, "topicAliasMaximum", u16],
    [35, "topicAlias", u16],
    [36, "maximumQoS", flag],
    [37, "retainAvailable", flag, true],
    [39, "maximumPacketSize", u32],
    [40, "wildcardSubscriptionAvailable", flag, true],
    [41, "subscriptionIdentifiersAvailable", flag, true],
    [42, "sharedSubscriptionAvailable", flag, true],
]

/** Any selection of these properties, in any order, and now and then user properties. */
export function properties(ids: number[]): fc.Arbitrary<Property[]> {
    const users = fc.uniqueArray(clientText(0), { maxLength: 3 }).chain(names =>
        fc.tuple(
            ...names.map(name =>
                clientText(0).map((value): Property => ({
                    id: 38,
                    value,
                    // Not a number: mqtt-packet keeps them in an object, which sorts those.
                    name: `n${name}`,
                })),
            ),
        ),
    )
    const known = KINDS.filter(([id]) => ids.includes(id)).map(
        ([id, , value]) =>
            fc.option(
                value.map((v): Property => ({ id, value: v })),
                { nil: undefined },
            ),
    )
    return fc.tuple(fc.tuple(...known), users).chain(([some, own]) => {
        const all = some.filter(p => p !== undefined)
        return fc
            .shuffledSubarray(all, { minLength: all.length })
            .map(list => [...list, ...(own as Property[])])
    })
}

/** The same, as mqtt-packet writes and reads them; undefined for none. */
export function asOracle(
    list: Property[],
): Record<string, unknown> | undefined {
    const out: Record<string, unknown> = {}
    for (const { id, value, name } of list) {
        if (id === 38) {
            out.userProperties ??= {}
            ;(out.userProperties as Record<string, unknown>)[name!] = value
            continue
        }
        const [, oracleName, , asBoolean] = KINDS.find(k => k[0] === id)!
        out[oracleName] = asBoolean ? value === 1 : value
    }
    return list.length ? out : undefined
}

/** As it compares: by identifier, user properties in their order. */
export function sorted(list: Property[]): Property[] {
    return [...list].sort((a, b) => a.id - b.id)
}
