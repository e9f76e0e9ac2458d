// Where a broker may send the device: MQTT 5's Server Reference (4.11), followed only to servers that the
// settings name. Pure: it changes the host and port of the endpoint it was given, never whether that is TLS.
//
// - A reference is a list of host or host:port, separated by spaces; the first one allowed counts. What has
//   a scheme, or more than is allowed, is none.
// - "Use another server" holds for one session; "server moved" until the new one fails.
// - An attempt that fails there leads back to the configured host.
// - Of MAX_MOVES moves with no session that lasts between them, no further one is followed: then the
//   refusal counts as what it is, and after its long wait moves are followed again.
import type { Endpoint } from "../core/connection"

/** One server that may be moved to. */
export interface Server {
    host: string
    port: number
}

/** Moves in a row. */
const MAX_MOVES = 3

/** References looked at. */
const MAX_REFERENCES = 4

/** `host` or `host:port` (IPv6 in brackets); undefined for anything else. `port` is what is meant without one. */
export function parseServer(text: string, port: number): Server | undefined {
    let host = text
    const colon =
        text.indexOf("]:") >= 0 ? text.indexOf("]:") + 1 : text.indexOf(":")
    if (text.indexOf("[") === 0 && text.indexOf("]:") < 0) {
        if (text.indexOf("]") !== text.length - 1) return undefined
    } else if (colon >= 0) {
        host = text.slice(0, colon)
        port = parsePort(text.slice(colon + 1))
    }
    if (host === "" || port < 0 || host.indexOf("/") >= 0) return undefined
    return { host, port }
}

/** 1..65535, or -1. */
function parsePort(text: string): number {
    let port = 0
    for (let i = 0; i < text.length; ++i) {
        const digit = text.charCodeAt(i) - 48
        if (i > 4 || digit < 0 || digit > 9) return -1
        port = port * 10 + digit
    }
    return port >= 1 && port <= 65535 ? port : -1
}

/** The servers in a setting, separated by spaces or commas; undefined when one of them is none. */
export function parseServers(text: string, port: number): Server[] | undefined {
    const list: Server[] = []
    for (const word of words(text)) {
        const server = parseServer(word, port)
        if (server === undefined) return undefined
        list.push(server)
    }
    return list
}

/** What stands between spaces and commas. */
function words(text: string): string[] {
    const list: string[] = []
    let from = 0
    for (let i = 0; i <= text.length; ++i) {
        const code = i < text.length ? text.charCodeAt(i) : 32
        if (code !== 32 && code !== 44) continue
        if (i > from) list.push(text.slice(from, i))
        from = i + 1
    }
    return list
}

/** Moves among these servers; for `Mqtt5Options.servers`. */
export function serverMoves(
    allowed: Server[],
): (endpoint: Endpoint) => ServerMoves {
    return endpoint => new ServerMoves(endpoint, allowed)
}

export class ServerMoves {
    private readonly host: string
    private readonly port: number
    private moves = 0
    /** The move holds for one session only. */
    private once = false

    /**
     * @param endpoint where the device connects; its host and port are changed
     * @param allowed where it may be sent
     */
    constructor(
        private readonly endpoint: Endpoint,
        private readonly allowed: Server[],
    ) {
        this.host = endpoint.host
        this.port = endpoint.port
    }

    /**
     * Follows a reference, at most MAX_MOVES times in a row.
     * @param forGood "server moved", and not "use another server"
     * @returns whether the endpoint is another now
     */
    follow(reference: string, forGood: boolean): boolean {
        if (this.moves >= MAX_MOVES) {
            this.moves = 0
            this.goHome()
            return false
        }
        const { host, port } = this.endpoint
        let looked = 0
        // A hostile one may be long; what is looked at is not.
        for (const word of words(reference.slice(0, 256))) {
            if (++looked > MAX_REFERENCES) break
            const to = this.find(word)
            if (to === undefined || (to.host === host && to.port === port))
                continue
            this.moves++
            this.once = !forGood
            this.endpoint.host = to.host
            this.endpoint.port = to.port
            return true
        }
        this.goHome()
        return false
    }

    /** The server allowed that this reference names; without a port, whatever port is allowed. */
    private find(word: string): Server | undefined {
        const named = parseServer(word, 0)
        if (named === undefined) return undefined
        const host = named.host
        const port = named.port
        if (host === this.host && (port === 0 || port === this.port))
            return { host, port: this.port }
        for (const s of this.allowed)
            if (s.host === host && (port === 0 || s.port === port)) return s
        return undefined
    }

    /** An attempt has failed, or a session has ended without lasting. */
    failed() {
        this.goHome()
    }

    /** A session that lasted has ended. */
    lasted() {
        this.moves = 0
        if (this.once) this.goHome()
    }

    private goHome() {
        this.once = false
        this.endpoint.host = this.host
        this.endpoint.port = this.port
    }
}
