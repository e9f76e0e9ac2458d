// The page with a row for each device: served on loopback only, fed by server-sent events.
//
// Any page in the same browser can send requests to loopback. So every request must name this server in its Host header (no
// DNS rebinding), nothing is readable across origins, and an action needs the token that only our own page holds.
import { randomBytes, timingSafeEqual } from "node:crypto"
import { readFileSync } from "node:fs"
import {
    createServer,
    type IncomingMessage,
    type Server,
    type ServerResponse,
} from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import type { Clock, Timer } from "../vm/clock"
import { PROJECT } from "../vm/program"
import type { Desk } from "./desk"
import { Timeline, type Second } from "./timeline"
import type { DeviceView } from "./view"

/** What a person can do on the page, besides looking. */
export type Action =
    | { id: string; label: string; isOn: boolean }
    | { id: string; label: string; value: string; choices: [string, string][] }

export interface PageOptions {
    title: string
    desk: Desk
    clock: Clock
    /** The time of the views. */
    nowMs: () => number
    /** What is shown is over: time stands. */
    stands?: boolean
    /** How far the strips look back. */
    windowMs?: number
    /** The buttons as they stand now. */
    actions?: () => Action[]
    /** Does what a button says. Throws when it can't. */
    act?: (id: string, value: string) => void | Promise<void>
}

/** What the page is told at least once a second. */
export interface Told {
    title: string
    nowMs: number
    stands: boolean
    windowMs: number
    actions: Action[]
    seconds: readonly Second[]
    ignored: number
}

/** Views are sent at most this often. */
const SEND_MS = 250
const SECOND_MS = 1000
const MAX_CLIENTS = 16
const MAX_BODY_BYTES = 1000
const WINDOW_MS = 10 * 60_000

/** The modules that the page runs: the very files that the terminal uses. */
const MODULES: Record<string, string> = {
    "/monitor/page": "host/monitor/page.ts",
    "/monitor/view": "host/monitor/view.ts",
    "/monitor/strip": "host/monitor/strip.ts",
    "/show": "host/show.ts",
}

interface Client {
    response: ServerResponse
    /** Devices whose views it has not got yet. */
    stale: Set<string>
}

export class WebPage {
    private readonly token = randomBytes(18).toString("base64url")
    private readonly clients = new Set<Client>()
    private readonly modules = new Map<string, string>()
    private readonly timeline: Timeline
    private readonly unwatch: () => void
    private readonly timers: (Timer | undefined)[] = []
    private readonly server: Server
    private hosts: string[] = []

    constructor(private readonly options: PageOptions) {
        this.timeline = new Timeline(options.desk)
        this.unwatch = options.desk.watch(dev => {
            for (const client of this.clients) client.stale.add(dev)
        })
        this.server = createServer((request, response) => {
            this.answer(request, response).catch(() => response.destroy())
        })
        this.every(SEND_MS, 0, () => this.clients.forEach(c => this.send(c)))
        this.every(SECOND_MS, 1, () => {
            this.timeline.tick()
            for (const { response } of this.clients)
                if (!response.writableNeedDrain)
                    response.write(message("told", this.told()))
        })
    }

    private every(ms: number, slot: number, run: () => void) {
        this.timers[slot] = this.options.clock.setTimeout(() => {
            run()
            this.every(ms, slot, run)
        }, ms)
    }

    /** @param port 0: any free one. @returns the page's address. Throws when the port is taken. */
    async listen(port = 0): Promise<string> {
        const { server } = this
        await new Promise<void>((done, failed) => {
            server.once("error", failed)
            server.listen(port, "127.0.0.1", done)
        })
        const bound = (server.address() as AddressInfo).port
        this.hosts = [`127.0.0.1:${bound}`, `localhost:${bound}`]
        return `http://${this.hosts[0]}/`
    }

    async close() {
        this.unwatch()
        for (const timer of this.timers) this.options.clock.clearTimeout(timer)
        const closed = new Promise(done => this.server.close(done))
        this.server.closeAllConnections()
        if (this.hosts.length) await closed
    }

    private async answer(request: IncomingMessage, response: ServerResponse) {
        const { method, url = "", headers } = request
        response.setHeader("X-Content-Type-Options", "nosniff")
        response.setHeader("Cross-Origin-Resource-Policy", "same-origin")
        response.setHeader("Cache-Control", "no-store")
        if (!this.hosts.includes(headers.host ?? ""))
            return refuse(response, 403, "this page is served as 127.0.0.1")
        if (method === "POST" && url === "/act")
            return await this.act(request, response)
        if (method !== "GET") return refuse(response, 405, "GET only")
        if (url === "/") return this.page(response)
        if (url === "/events") return this.connect(response)
        if (Object.hasOwn(MODULES, url)) return await this.module(url, response)
        refuse(response, 404, "no such page")
    }

    private page(response: ServerResponse) {
        const nonce = randomBytes(12).toString("base64url")
        response.setHeader(
            "Content-Security-Policy",
            `default-src 'none'; script-src 'self'; style-src 'nonce-${nonce}'; ` +
                "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        response.setHeader("Content-Type", "text/html; charset=utf-8")
        response.end(
            readFileSync(join(PROJECT, "host/monitor/page.html"), "utf8")
                .replaceAll("%NONCE%", nonce)
                .replace("%TOKEN%", this.token),
        )
    }

    private async module(url: string, response: ServerResponse) {
        let text = this.modules.get(url)
        if (text === undefined) {
            // Loaded only for a page: it is large.
            const { default: ts } = await import("typescript")
            const source = readFileSync(join(PROJECT, MODULES[url]), "utf8")
            text = ts.transpileModule(source, {
                compilerOptions: {
                    module: ts.ModuleKind.ESNext,
                    target: ts.ScriptTarget.ES2022,
                },
            }).outputText
            this.modules.set(url, text)
        }
        response.setHeader("Content-Type", "text/javascript; charset=utf-8")
        response.end(text)
    }

    private connect(response: ServerResponse) {
        if (this.clients.size >= MAX_CLIENTS)
            return refuse(response, 503, `at most ${MAX_CLIENTS} pages at once`)
        response.writeHead(200, { "Content-Type": "text/event-stream" })
        const stale = new Set(this.options.desk.views.keys())
        const client = { response, stale }
        this.clients.add(client)
        response.on("close", () => this.clients.delete(client))
        response.write(message("told", this.told()))
        this.send(client)
    }

    /** A page that does not keep up gets the newest views when it can take them, not all in between. */
    private send({ response, stale }: Client) {
        if (!stale.size || response.writableNeedDrain) return
        const views: DeviceView[] = []
        for (const dev of stale) {
            const view = this.options.desk.views.get(dev)
            if (view) views.push(view)
        }
        stale.clear()
        response.write(message("views", views))
    }

    private told(): Told {
        const { title, desk, nowMs, windowMs, actions } = this.options
        return {
            title,
            nowMs: nowMs(),
            stands: this.options.stands === true,
            windowMs: windowMs ?? WINDOW_MS,
            actions: actions?.() ?? [],
            seconds: this.timeline.all,
            ignored: desk.ignored,
        }
    }

    private async act(request: IncomingMessage, response: ServerResponse) {
        const { origin } = request.headers
        const isOurs =
            origin === undefined ||
            this.hosts.some(host => origin === `http://${host}`)
        if (!isOurs || !this.isToken(request.headers["x-token"]))
            return refuse(response, 403, "only this page's own buttons may act")
        const body = await bodyOf(request)
        const asked = body === undefined ? undefined : askedFor(body)
        const known = this.options.actions?.().find(a => a.id === asked?.id)
        if (!asked || !known || !this.options.act)
            return refuse(response, 400, "no such action")
        if (
            "choices" in known &&
            !known.choices.some(c => c[0] === asked.value)
        )
            return refuse(response, 400, `no such choice for ${known.id}`)
        try {
            await this.options.act(asked.id, asked.value)
        } catch (e) {
            return refuse(response, 500, (e as Error).message)
        }
        for (const client of this.clients)
            client.response.write(message("told", this.told()))
        response.statusCode = 204
        response.end()
    }

    private isToken(given: unknown): boolean {
        if (typeof given !== "string" || given.length !== this.token.length)
            return false
        return timingSafeEqual(Buffer.from(given), Buffer.from(this.token))
    }
}

function message(event: string, data: unknown): string {
    return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

function refuse(response: ServerResponse, code: number, why: string) {
    response.writeHead(code, { "Content-Type": "text/plain; charset=utf-8" })
    response.end(why + "\n")
}

/** Undefined when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
    let body = ""
    for await (const piece of request) {
        body += String(piece)
        if (body.length > MAX_BODY_BYTES) return undefined
    }
    return body
}

function askedFor(body: string): { id: string; value: string } | undefined {
    try {
        const { id, value } = JSON.parse(body) as Record<string, unknown>
        if (typeof id !== "string" || typeof value !== "string")
            return undefined
        return { id, value }
    } catch {
        return undefined
    }
}
