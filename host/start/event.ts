// Everything `npm start` tells: the device's own lines and what happens around the device.
import { describe, plain, span } from "../show"
import type { Line } from "../../src/core/line"

/** What happens around the device, in the manner of the log's lines. */
export type HostLine =
    /** The broker went away or came (back). */
    | { ev: "broker"; up: boolean; host: string; port: number }
    /** A client that the embedded broker accepted or lost. */
    | { ev: "client"; id: string; up: boolean }
    /** A message that reached the embedded broker; `text` is cut to 200 characters. */
    | {
          ev: "publish"
          topic: string
          text: string
          bytes: number
          retain: boolean
      }
    | { ev: "power"; on: boolean }
    | { ev: "wifi"; up: boolean }
    /** The program died; 0: it asked for a restart; -1: the VM itself died. */
    | { ev: "panic"; code: number; reason: string }
    /** How the outage went that was played. Times count from when the broker was back. */
    | {
          ev: "outage"
          ok: boolean
          reason: string
          outageMs: number
          /** The waits chosen since the loss. */
          delaysMs: number[]
          /** Until CONNACK; left out when there was none. */
          backMs?: number
      }

/** One event, with the time since the start of the command. */
export interface Happening {
    tMs: number
    /** The device's id, or "host". */
    dev: string
    line: Line | HostLine
}

/** The event as one line of JSON. */
export function toJsonLine({ tMs, dev, line }: Happening): string {
    return JSON.stringify({ t: tMs, dev, ...line })
}

/** The event in words. */
export function inWords(line: Line | HostLine): string {
    switch (line.ev) {
        case "broker":
            return `broker ${line.up ? "up" : "down"}: ${line.host}:${line.port}`
        case "client":
            return plain(
                `client ${line.id} ${line.up ? "connected" : "disconnected"}`,
            )
        case "publish":
            return plain(
                `${line.topic}: ${line.text}${line.retain ? " (retained)" : ""}`,
            )
        case "power":
            return line.on ? "power on" : "power off"
        case "wifi":
            return line.up ? "access point is there" : "access point is gone"
        case "panic":
            return panic(line.code, line.reason)
        case "outage":
            return (line.ok ? "passed: " : "FAILED: ") + plain(line.reason)
        default:
            return describe(line)
    }
}

function panic(code: number, reason: string): string {
    if (code === 0) return `the program asked for a restart: in ${span(1000)}`
    if (code < 0) return plain(`the VM died, the chip resets: ${reason}`)
    return `the program crashed (panic ${code}): starts again in ${span(5000)}`
}
