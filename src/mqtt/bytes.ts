// Bytes and UTF-8: the only file of this room that knows that Buffer differs between the
// device and Node. Rule of the room: pure; nothing here keeps state or does I/O.
//
// On the device `slice` copies and `blitAt` moves bytes or a string's UTF-8 natively, with no
// garbage; in Node `slice` is a view and a string is written through Buffer.from. Loops over
// bytes would be slow, and above some 5,000 rounds the VM panics, so there are none here.

/** What a DeviceScript Buffer and string have and Node's have not. */
interface DeviceBuffer {
    blitAt(
        at: number,
        source: Buffer | string,
        from: number,
        bytes: number,
    ): void
}
interface NodeBuffer {
    copy(target: Buffer, at: number): void
    subarray(from: number, to: number): NodeBuffer
}

interface DeviceArray {
    insert(at: number, count: number): void
}
interface NodeArray {
    splice(at: number, count: number): void
}

interface DeviceString {
    byteLength: number
}

/** True in the DeviceScript VM, where strings are UTF-8 inside and so never ill-formed. */
const onDevice = ("" as unknown as DeviceString).byteLength !== undefined

/** Length of `text` in UTF-8, in bytes. */
export function utf8Bytes(text: string): number {
    return onDevice
        ? (text as unknown as DeviceString).byteLength
        : Buffer.from(text).length
}

/** Length in bytes of what `copy` would write. */
export function sizeOf(source: string | Buffer): number {
    if (typeof source !== "string") return source.length
    // As utf8Bytes, which would be one call more: this is asked for each publish.
    return onDevice
        ? (source as unknown as DeviceString).byteLength
        : Buffer.from(source).length
}

/** Writes `bytes` bytes of `source` (a string counts as its UTF-8), from `from` on, to `target[at]` on. */
export function copy(
    target: Buffer,
    at: number,
    source: string | Buffer,
    from: number,
    bytes: number,
) {
    if (onDevice) {
        const device = target as unknown as DeviceBuffer
        device.blitAt(at, source, from, bytes)
    } else {
        const all = typeof source === "string" ? Buffer.from(source) : source
        const part = (all as unknown as NodeBuffer).subarray(from, from + bytes)
        part.copy(target, at)
    }
}

/** A copy, on both platforms, of `bytes` bytes of `source` from `from` on. */
export function copyOf(source: Buffer, from: number, bytes: number): Buffer {
    const target = Buffer.alloc(bytes)
    // As copy, which would be one call more: two of these for each message in.
    if (onDevice)
        (target as unknown as DeviceBuffer).blitAt(0, source, from, bytes)
    else copy(target, 0, source, from, bytes)
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
 * [MQTT-1.5.3-1]. U+FFFE and U+FFFF are refused too: the spec lets a receiver close on them
 * (1.5.3) and the device's strings cannot hold them.
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
    return onDevice || !hasNoncharacter(text) ? text : undefined
}

function hasNoncharacter(text: string): boolean {
    return (
        text.indexOf(String.fromCharCode(0xfffe)) >= 0 ||
        text.indexOf(String.fromCharCode(0xffff)) >= 0
    )
}

/**
 * What makes `text` impossible to send as an MQTT string, in words with the clause, or undefined:
 * U+0000 [MQTT-1.5.3-2], a lone surrogate [MQTT-1.5.3-1] (Node only), more than 65,535 bytes (1.5.3).
 */
export function textFault(text: string): string | undefined {
    const bytes = utf8Bytes(text)
    if (bytes > 65535) return `is ${bytes} bytes: at most 65535 [MQTT-4.7.3-3]`
    if (text.indexOf("\u0000") >= 0)
        return "holds the character U+0000 [MQTT-1.5.3-2]"
    if (!onDevice && Buffer.from(text).toString() !== text)
        return "holds half a surrogate pair [MQTT-1.5.3-1]"
    return undefined
}

/** Removes one element in place. */
export function removeAt(list: any[], at: number) {
    // Each platform has one way, and neither the other's. The device's library has `pop` and its like, but every array
    // and buffer that looks for what is its own looks through those first.
    if (onDevice) (list as unknown as DeviceArray).insert(at, -1)
    else (list as unknown as NodeArray).splice(at, 1)
}
