// Bytes and UTF-8. Rule of the room: pure; nothing here keeps state or does I/O.
//
// `blitAt` moves bytes or a string's UTF-8 natively, with no garbage. Loops over bytes would be slow, and above some 5,000
// rounds the VM panics, so there are none here. Elements are taken out of lists by `insert` with a negative count: of the
// library's `shift`, `pop` or `splice` each array and buffer that looks for what is its own would look through the names first.
// These are the device's; host/device-methods.ts gives them to Node.

/** Length in bytes of what `blitAt` would write. */
export function sizeOf(source: string | Buffer): number {
    return typeof source === "string" ? source.byteLength : source.length
}

/** A copy of `bytes` bytes of `source` from `from` on; `slice` is one on the device, and a view in Node. */
export function copyOf(source: Buffer, from: number, bytes: number): Buffer {
    const target = Buffer.alloc(bytes)
    target.blitAt(0, source, from, bytes)
    return target
}

/**
 * The longest head, in bytes, of `source[at .. at+bytes)` that does not end inside a UTF-8
 * character. Equal to `bytes` unless the last character is cut. Looks at three bytes at most.
 */
export function wholeCharacters(
    source: Buffer,
    at: number,
    bytes: number,
): number {
    for (let back = 1; back <= 3 && back <= bytes; ++back) {
        const b = source[at + bytes - back]
        if (b >= 0xc0) {
            const need = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2
            return need > back ? bytes - back : bytes
        }
        if (b < 0x80) return bytes
    }
    return bytes
}

/**
 * The text in `source[at .. at+bytes)`, or undefined when it is not well-formed UTF-8
 * [MQTT-1.5.3-1]. U+FFFE and U+FFFF are refused by the device too, whose strings can't hold them: the spec lets a receiver
 * close on them (1.5.3).
 *
 * Both decoders turn what is ill-formed into U+FFFD, so only a text that holds one needs a closer
 * look. The last character is checked first, because the device's decoder reads beyond the end of
 * a Buffer that ends inside a character.
 */
export function readText(
    source: Buffer,
    at: number,
    bytes: number,
): string | undefined {
    if (
        source[at + bytes - 1] >= 0x80 &&
        wholeCharacters(source, at, bytes) !== bytes
    )
        return undefined
    const raw = copyOf(source, at, bytes)
    const text = raw.toString()
    if (
        text.indexOf("\uFFFD") >= 0 &&
        Buffer.from(text).toString("hex") !== raw.toString("hex")
    )
        return undefined
    return text
}

/**
 * What makes `text` impossible to send as an MQTT string, in words with the clause, or undefined:
 * U+0000 [MQTT-1.5.3-2], more than 65,535 bytes (1.5.3). Half a surrogate pair [MQTT-1.5.3-1] the device's strings can't hold.
 */
export function textFault(text: string): string | undefined {
    const bytes = text.byteLength
    if (bytes > 65535) return `is ${bytes} bytes: at most 65535 [MQTT-4.7.3-3]`
    if (text.indexOf("\u0000") >= 0)
        return "holds the character U+0000 [MQTT-1.5.3-2]"
    return undefined
}
