// Bytes from a serial port in, console lines out. Pure but for what it holds of an unfinished line.
//
// A board's port carries more than text. The runtime mixes Jacdac frames into it (microsoft/jacdac-c, source/jd_usb.c: FE FC
// begins one, FE FD ends it, FE F8 is a literal FE, FE FB a gap); a chip that resets talks at another
// rate; with a wrong rate everything is noise. FE is never part of UTF-8, so frames can be told from text.
import { stripVTControlCharacters } from "node:util"

/** The longest line that is kept; the runtime's own are at most 300 bytes. */
export const MAX_LINE_BYTES = 1000

/** A frame is at most 252 bytes; what goes on longer is none. */
const MAX_FRAME_BYTES = 300

/** A line with a larger share of bytes that are no text is noise. */
const MAX_BAD_SHARE = 0.25

const MAGIC = 0xfe
const LITERAL_MAGIC = 0xf8
const FRAME_START = 0xfc
const FRAME_END = 0xfd

export interface SplitterEvents {
    /** A line without its end, and without anything that a terminal would act on. */
    line: (text: string) => void
    /** Bytes that are no text, as they are met. */
    noise: (bytes: number) => void
}

export class LineSplitter {
    private readonly kept = Buffer.alloc(MAX_LINE_BYTES)
    private length = 0
    /** Bytes of the current line that did not fit. */
    private overflow = 0
    private wasMagic = false
    /** Bytes of the frame we are in; -1: in none. */
    private frame = -1

    constructor(private readonly events: SplitterEvents) {}

    /** The next bytes, in pieces of any size. */
    push(bytes: Uint8Array) {
        const chunk = Buffer.from(
            bytes.buffer,
            bytes.byteOffset,
            bytes.byteLength,
        )
        if (this.frame >= 0 || this.wasMagic || chunk.includes(MAGIC))
            this.pushText(this.withoutFrames(chunk))
        else this.pushText(chunk)
    }

    /** Nothing more comes. @param mark what is put behind the line that has no end */
    end(mark: string) {
        this.finish(mark)
        this.frame = -1
        this.wasMagic = false
    }

    private pushText(chunk: Buffer) {
        let from = 0
        for (;;) {
            const at = chunk.indexOf(0x0a, from)
            this.keep(chunk.subarray(from, at < 0 ? chunk.length : at))
            if (at < 0) return
            this.finish("")
            from = at + 1
        }
    }

    private keep(bytes: Buffer) {
        const room = MAX_LINE_BYTES - this.length
        const fits = Math.min(room, bytes.length)
        bytes.copy(this.kept, this.length, 0, fits)
        this.length += fits
        this.overflow += bytes.length - fits
        // Noise may never hold a line's end.
        if (this.overflow > MAX_LINE_BYTES && isNoise(this.text(), this.length))
            this.finish("")
    }

    private text() {
        return this.kept.toString("utf8", 0, this.length)
    }

    private finish(mark: string) {
        const { length, overflow } = this
        if (!length) return
        const text = this.text()
        this.length = 0
        this.overflow = 0
        if (isNoise(text, length)) return this.events.noise(length + overflow)
        const end = overflow ? ` … ${overflow} bytes more` : mark
        const shown = shownText(text) + end
        if (shown) this.events.line(shown)
    }

    /** What is not in a frame. Frames that make no sense end, and count as noise. */
    private withoutFrames(chunk: Buffer): Buffer {
        const out = Buffer.alloc(chunk.length + 1)
        let length = 0
        for (const byte of chunk) {
            let literal = byte
            if (this.wasMagic) {
                // A second FE quotes what follows, too.
                this.wasMagic = byte === MAGIC
                if (byte === FRAME_START) this.frame = 0
                else if (byte === FRAME_END) this.frame = -1
                if (byte !== LITERAL_MAGIC) {
                    if (byte >= LITERAL_MAGIC) continue
                    // No such quotation: both bytes are data.
                    if (this.frame < 0) out[length++] = MAGIC
                } else literal = MAGIC
            } else if (byte === MAGIC) {
                this.wasMagic = true
                continue
            }
            if (this.frame < 0) out[length++] = literal
            else if (++this.frame > MAX_FRAME_BYTES) {
                this.events.noise(this.frame)
                this.frame = -1
            }
        }
        return out.subarray(0, length)
    }
}

/** Printable ASCII only: the common case. */
const CLEAN = /^[\x20-\x7e]*$/

/** The text without escape sequences, line ends, and all else that a terminal would act on. */
function shownText(text: string): string {
    if (CLEAN.test(text)) return text
    return stripVTControlCharacters(text.replace(/\r+$/, ""))
        .replace(/\t/g, " ")
        .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "")
        .trimEnd()
}

/** Whether a line of `bytes` bytes, decoded to `text`, is something else than text. */
function isNoise(text: string, bytes: number): boolean {
    if (CLEAN.test(text)) return false
    let bad = 0
    for (let i = 0; i < text.length; ++i) {
        const code = text.charCodeAt(i)
        if (code === 0xfffd || code === 0x7f || (code >= 0x80 && code < 0xa0))
            bad++
        else if (code < 0x20 && code !== 9 && code !== 13 && code !== 27) bad++
    }
    return bad > bytes * MAX_BAD_SHARE
}
