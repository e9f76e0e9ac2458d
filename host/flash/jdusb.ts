// Jacdac frames on a board's serial port, between the text it prints: what the runtime calls its USB bridge.
// Pure. Source: microsoft/jacdac-c, source/jd_usb.c: FE FC begins a frame, FE FD ends it, FE F8 is a literal FE.
import {
    crc,
    JD_DEVICE_IDENTIFIER_BROADCAST_HIGH_MARK,
    JD_FRAME_FLAG_COMMAND,
    JD_FRAME_FLAG_IDENTIFIER_IS_SERVICE_CLASS,
    JD_FRAME_FLAG_LOOPBACK,
    JD_SERVICE_INDEX_BROADCAST,
    SRV_USB_BRIDGE,
    type UsbBridgeCmd,
} from "jacdac-ts"

const MAGIC = 0xfe
const LITERAL = 0xf8
const START = 0xfc
const END = 0xfd

/** A header of 12 bytes and at most 240 of payload (Jacdac, "Frame structure"). */
const HEADER_BYTES = 12
const MAX_FRAME_BYTES = 252

/** Takes the frames out of what a port brings; text, noise and broken frames are passed over. */
export class FrameDecoder {
    private readonly frame = Buffer.alloc(MAX_FRAME_BYTES)
    /** Bytes of the frame so far; -1: between frames. */
    private length = -1
    private wasMagic = false

    constructor(private readonly onFrame: (frame: Uint8Array) => void) {}

    push(bytes: Uint8Array) {
        for (const byte of bytes) {
            if (this.wasMagic) {
                this.wasMagic = false
                this.quoted(byte)
            } else if (byte === MAGIC) this.wasMagic = true
            else this.take(byte)
        }
    }

    private quoted(byte: number) {
        if (byte === START) this.length = 0
        else if (byte === END) this.end()
        else if (byte === LITERAL) this.take(MAGIC)
        else if (byte === MAGIC) this.wasMagic = true
    }

    private take(byte: number) {
        if (this.length < 0) return
        if (this.length === MAX_FRAME_BYTES) this.length = -1
        else this.frame[this.length++] = byte
    }

    private end() {
        const { length } = this
        this.length = -1
        if (length < HEADER_BYTES) return
        const bytes = HEADER_BYTES + this.frame[2]
        if (length < bytes) return
        const frame = new Uint8Array(this.frame.subarray(0, bytes))
        const sum = crc(frame.slice(2))
        if (frame[0] === (sum & 0xff) && frame[1] === sum >> 8)
            this.onFrame(frame)
    }
}

/** A frame as it goes over the wire. */
export function encodeFrame(frame: Uint8Array): Uint8Array {
    const out = [MAGIC, START]
    for (const byte of frame) {
        out.push(byte)
        if (byte === MAGIC) out.push(LITERAL)
    }
    out.push(MAGIC, END)
    return Uint8Array.from(out)
}

/** A command to the bridge itself, not to a service behind it; it answers with the same command. */
export function bridgeCommand(command: UsbBridgeCmd): Uint8Array {
    const frame = Buffer.alloc(16)
    frame[2] = 4
    frame[3] =
        JD_FRAME_FLAG_IDENTIFIER_IS_SERVICE_CLASS |
        JD_FRAME_FLAG_COMMAND |
        JD_FRAME_FLAG_LOOPBACK
    frame.writeUInt32LE(SRV_USB_BRIDGE, 4)
    frame.writeUInt32LE(JD_DEVICE_IDENTIFIER_BROADCAST_HIGH_MARK >>> 0, 8)
    frame[13] = JD_SERVICE_INDEX_BROADCAST
    frame.writeUInt16LE(command, 14)
    frame.writeUInt16LE(crc(new Uint8Array(frame.subarray(2))), 0)
    return new Uint8Array(frame)
}

/** The command when a frame is the bridge's own, undefined when it is for the bus. */
export function bridgeCommandOf(frame: Uint8Array): number | undefined {
    const view = Buffer.from(frame)
    const isBridge =
        frame[3] & JD_FRAME_FLAG_IDENTIFIER_IS_SERVICE_CLASS &&
        view.readUInt32LE(4) === SRV_USB_BRIDGE
    return isBridge ? view.readUInt16LE(14) : undefined
}
