// What the network's address says about the link. Pure: it is told the address and the time, and
// answers with what changed and whether Wi-Fi should be asked to start over.

/** What an observation means. */
export type LinkChange =
    | "same"
    | "up"
    | "down"
    /** Another address: what is open on the old one is dead without knowing it. */
    | "moved"

/**
 * Without an address for this long: the access point or its DHCP may be stuck. Whether the device is
 * associated cannot be told: the ESP32's service names its network only once there is an address.
 */
const ASK_AFTER_MS = 60000

/** Asking again waits twice as long each time, up to this. */
const ASK_MAX_MS = 600000

export class Link {
    /** The address in words, "" when there is none or nothing is known yet. */
    ip = ""
    private known = false
    private askWaitMs = ASK_AFTER_MS
    /** When to ask Wi-Fi to start over; -1 while there is an address. */
    private askMs = -1

    /** Takes what the Wi-Fi service says now. */
    observe(ip: string, nowMs: number): LinkChange {
        if (ip !== "") {
            this.askMs = -1
            this.askWaitMs = ASK_AFTER_MS
        } else if (this.askMs < 0) this.askMs = nowMs + this.askWaitMs
        const before = this.ip
        const first = !this.known
        this.known = true
        this.ip = ip
        if (ip === "") return first || before !== "" ? "down" : "same"
        if (before === "") return "up"
        return before === ip ? "same" : "moved"
    }

    /** Whether it is time to ask Wi-Fi to start over; true once for each time. */
    shouldAsk(nowMs: number): boolean {
        if (this.askMs < 0 || nowMs < this.askMs) return false
        const wait = this.askWaitMs + this.askWaitMs
        this.askWaitMs = wait < ASK_MAX_MS ? wait : ASK_MAX_MS
        this.askMs = nowMs + this.askWaitMs
        return true
    }
}

/**
 * The bytes of the Wi-Fi service's address register in words: "10.0.0.7", hexadecimal for an IPv6
 * address, "" for none and for the unspecified address, which is as good as none.
 */
export function ipText(ip: Buffer | undefined): string {
    if (!ip || (ip.length !== 4 && ip.length !== 16)) return ""
    let any = 0
    for (let i = 0; i < ip.length; ++i) any |= ip[i]
    if (any === 0) return ""
    if (ip.length === 16) return ip.toString("hex")
    return `${ip[0]}.${ip[1]}.${ip[2]}.${ip[3]}`
}
