// Reports of the settings service that get lost: what is read has no answer, what is written no proof.
import assert from "node:assert/strict"
import type { Bench } from "./bench"

/**
 * Loses reports of the settings service inside the device, as a full queue does.
 * @param loses by the setting's key and how many reports of it there have been, 1 up
 * @returns the keys seen, and how often
 */
export function loseReports(
    { device }: Bench,
    loses: (key: string, nth: number) => boolean,
): Map<string, number> {
    const seen = new Map<string, number>()
    device.vm.options.onFrame = frame => {
        // Flags, then at 12 the packet: size, service 4 (settings), command 0x80 (get), and the key with a zero behind it.
        const isReport = !(frame[3] & 1)
        if (!isReport || frame[13] !== 4 || frame[14] !== 0x80) return
        const key = Buffer.from(frame.subarray(16, frame.indexOf(0, 16)))
        const nth = (seen.get(`${key}`) ?? 0) + 1
        seen.set(`${key}`, nth)
        if (!loses(`${key}`, nth)) return
        // The runtime has yet to hand the frame to its own program: as another command it means nothing.
        const { memory } = device.vm
        const heap = Buffer.from(
            memory.buffer,
            memory.byteOffset,
            memory.length,
        )
        const at = heap.indexOf(frame)
        assert.ok(at >= 0 && heap.indexOf(frame, at + 1) < 0)
        heap[at + 14] = 0x7f
    }
    return seen
}
