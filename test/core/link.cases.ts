// The link as a table: what the Wi-Fi service's address means over time.
import { ipText, Link } from "../../src/core/link"
import { type Case, equal } from "../cases"

const IP = "10.0.0.7"

/** Seconds at which it asks Wi-Fi to start over, looked at every 20 s without an address. */
function asks(link: Link, fromS: number, toS: number): string {
    let out = ""
    for (let s = fromS; s <= toS; s += 20) {
        link.observe("", s * 1000)
        if (link.shouldAsk(s * 1000)) out += (out ? " " : "") + s
    }
    return out
}

/** An address of the bytes in `hex`, in words. */
function ip(hex: string): string {
    return ipText(Buffer.from(hex, "hex"))
}

export function cases(): Case[] {
    return [
        {
            name: "the first look always tells: up, or down",
            run: () => {
                equal(new Link().observe("", 0), "down")
                equal(new Link().observe(IP, 0), "up")
            },
        },
        {
            name: "after that only changes: down, up, moved",
            run: () => {
                const link = new Link()
                const seen = (address: string, expected: string) =>
                    equal(link.observe(address, 1000), expected, address)
                seen("", "down")
                seen("", "same")
                seen(IP, "up")
                seen(IP, "same")
                equal(link.ip, IP)
                seen("10.0.0.8", "moved")
                seen("10.0.0.8", "same")
                seen("", "down")
                seen("", "same")
                seen("10.0.0.8", "up")
            },
        },
        {
            name: "without an address it asks after 60 s, then 120, 240, 480, and every 600 s",
            run: () =>
                equal(
                    asks(new Link(), 0, 2800),
                    "60 180 420 900 1500 2100 2700",
                ),
        },
        {
            name: "it asks once at a time, and late when it is looked at late",
            run: () => {
                const link = new Link()
                link.observe("", 0)
                equal(link.shouldAsk(59999), false)
                equal(link.shouldAsk(60000), true)
                equal(link.shouldAsk(60000), false)
                equal(link.shouldAsk(500000), true)
                equal(link.shouldAsk(739999), false)
                equal(link.shouldAsk(740000), true)
            },
        },
        {
            name: "an address ends the asking, and the next time starts at 60 s again",
            run: () => {
                const link = new Link()
                equal(asks(link, 0, 500), "60 180 420")
                link.observe(IP, 501000)
                equal(link.shouldAsk(2000000), false)
                equal(asks(link, 2000, 2200), "2060 2180")
            },
        },
        {
            name: "with an address it never asks",
            run: () => {
                const link = new Link()
                for (let s = 0; s < 1000; s += 20) {
                    link.observe(IP, s * 1000)
                    equal(link.shouldAsk(s * 1000), false)
                }
            },
        },
        {
            name: "it asks at any time of the clock, 2^31 ms included",
            run: () => {
                const link = new Link()
                const startMs = 2147483647 - 30000
                link.observe("", startMs)
                equal(link.shouldAsk(startMs + 59999), false)
                equal(link.shouldAsk(startMs + 60000), true)
            },
        },
        {
            name: "four bytes are an address in decimal",
            run: () => {
                equal(ip("0a000007"), "10.0.0.7")
                equal(ip("ffffffff"), "255.255.255.255")
                equal(ip("00000001"), "0.0.0.1")
            },
        },
        {
            name: "sixteen bytes are an address in hexadecimal",
            run: () =>
                equal(
                    ip("fe800000000000000000000000000001"),
                    "fe800000000000000000000000000001",
                ),
        },
        {
            name: "zeros, no bytes, other lengths and nothing are no address",
            run: () => {
                equal(ip("00000000"), "")
                equal(ip("00000000000000000000000000000000"), "")
                equal(ip(""), "")
                equal(ip("0a0000"), "")
                equal(ip("0a00000701"), "")
                equal(ipText(undefined), "")
            },
        },
    ]
}
