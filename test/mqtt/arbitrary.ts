// Random texts, names and payloads for the property tests of this room. Node only.
import fc from "fast-check"

/** No U+0000, and not what the device's strings can't hold. */
const character = fc
    .oneof(
        {
            weight: 6,
            arbitrary: fc.string({
                unit: "grapheme-ascii",
                minLength: 1,
                maxLength: 1,
            }),
        },
        {
            weight: 1,
            arbitrary: fc.string({
                unit: "binary",
                minLength: 1,
                maxLength: 1,
            }),
        },
        {
            weight: 1,
            arbitrary: fc.constantFrom("/", "ü", "€", "😀", "\uFFFD"),
        },
    )
    .map(c => (/[\u0000\uFFFE\uFFFF]/.test(c) ? "/" : c))

function text(minLength: number): fc.Arbitrary<string> {
    return fc
        .array(character, { minLength, maxLength: 40 })
        .map(c => c.join(""))
}

/** A client id or user name. */
export const clientText = text

/** A topic name: at least one character, no wildcard. */
export const topicName = text(1).map(t => t.replace(/[+#]/g, "/"))

/** A valid topic filter over few levels, so that filters and topics often meet. */
export const filter = fc
    .tuple(
        fc.array(fc.constantFrom("a", "b", "", "+", "ü", "$s"), {
            minLength: 1,
            maxLength: 4,
        }),
        fc.boolean(),
    )
    .map(([levels, hash]) => levels.join("/") + (hash ? "/#" : ""))
    .map(f => (f === "" ? "#" : f))

export const packetId = fc.integer({ min: 1, max: 65535 })

/** Text or bytes, now and then long enough for a two-byte remaining length. */
export const payload = fc.oneof(
    { weight: 3, arbitrary: text(0) },
    {
        weight: 3,
        arbitrary: fc.uint8Array({ maxLength: 60 }).map(b => Buffer.from(b)),
    },
    {
        weight: 1,
        arbitrary: fc.nat(20000).map(bytes => Buffer.alloc(bytes, 0x5a)),
    },
)
