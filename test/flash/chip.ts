// An ESP32 in download mode on a serial line, so far as esptool's write_flash needs it: the ROM's and the
// stub's commands, a flash that is written. Source: Espressif, esptool documentation, "Serial Protocol".
import { createHash } from "node:crypto"
import type { Socket } from "node:net"
import { inflateSync } from "node:zlib"

const END = 0xc0
const ESCAPE = 0xdb

const CHIP_IDS: Record<string, number> = { esp32c3: 5, esp32s3: 9 }

/** Commands, by their numbers in the protocol. */
const MEM_END = 0x06
const SYNC = 0x08
const READ_REG = 0x0a
const DEFL_BEGIN = 0x10
const DEFL_DATA = 0x11
const FLASH_MD5 = 0x13
const SECURITY_INFO = 0x14

/** SPI_MEM_W0 of the C3 and S3: what a flash chip answered; here 4 MB by Winbond. */
const SPI_W0 = 0x60002058
const FLASH_ID = 0x1640ef

export class ChipInDownloadMode {
    readonly flash = Buffer.alloc(4 * 1024 * 1024, 0xff)
    private stub = false
    private packet: number[] | undefined
    private escaped = false
    private at = 0
    private total = 0
    private pieces: Buffer[] = []

    constructor(
        private readonly chip: string,
        private readonly line: Socket,
    ) {
        line.on("data", bytes => bytes.forEach(byte => this.take(byte)))
    }

    /** SLIP (RFC 1055): packets between two END bytes. */
    private take(byte: number) {
        if (byte === END) {
            const packet = Buffer.from(this.packet ?? [])
            this.packet = []
            if (packet.length >= 8) this.command(packet)
        } else if (byte === ESCAPE) this.escaped = true
        else {
            const plain = this.escaped ? (byte === 0xdc ? END : ESCAPE) : byte
            this.packet?.push(plain)
            this.escaped = false
        }
    }

    private command(packet: Buffer) {
        const op = packet[1]
        const data = packet.subarray(8)
        switch (op) {
            case SYNC:
                // Eight times; the value tells the ROM (not 0) from the stub.
                for (let n = 0; n < 8; n++) this.answer(op, 0x20120707)
                return
            case READ_REG:
                return this.answer(
                    op,
                    data.readUInt32LE() === SPI_W0 ? FLASH_ID : 0,
                )
            case SECURITY_INFO: {
                const info = Buffer.alloc(20)
                info.writeUInt32LE(CHIP_IDS[this.chip], 12)
                return this.answer(op, 0, info)
            }
            case MEM_END:
                this.answer(op)
                this.stub = true
                return this.send(Buffer.from("OHAI"))
            case DEFL_BEGIN:
                this.total = data.readUInt32LE()
                this.at = data.readUInt32LE(12)
                this.pieces = []
                return this.answer(op)
            case DEFL_DATA:
                this.pieces.push(Buffer.from(data.subarray(16)))
                return this.answer(op)
            case FLASH_MD5:
                return this.answer(op, 0, this.md5(data))
            default:
                return this.answer(op)
        }
    }

    private md5(data: Buffer): Buffer {
        if (this.pieces.length) {
            const bytes = inflateSync(Buffer.concat(this.pieces))
            bytes.copy(this.flash, this.at, 0, this.total)
            this.pieces = []
        }
        const from = data.readUInt32LE()
        const part = this.flash.subarray(from, from + data.readUInt32LE(4))
        const digest = createHash("md5").update(part)
        return this.stub ? digest.digest() : Buffer.from(digest.digest("hex"))
    }

    private answer(op: number, value = 0, data = Buffer.alloc(0)) {
        const status = Buffer.alloc(this.stub ? 2 : 4)
        const head = Buffer.alloc(8)
        head[0] = 1
        head[1] = op
        head.writeUInt16LE(data.length + status.length, 2)
        head.writeUInt32LE(value, 4)
        this.send(Buffer.concat([head, data, status]))
    }

    private send(packet: Buffer) {
        const out = [END]
        for (const byte of packet)
            if (byte === END) out.push(ESCAPE, 0xdc)
            else if (byte === ESCAPE) out.push(ESCAPE, 0xdd)
            else out.push(byte)
        this.line.write(Buffer.from([...out, END]))
    }
}
