// What runs in the browser: a row for each device, from the views that the server sends. All text that came from a device is
// set as text, never as HTML. Countdowns run here, by the same code as on the terminal.
import { count } from "../show"
import { strip } from "./strip"
import {
    countersOf,
    STATE_NAMES,
    statusOf,
    type DeviceView,
    type State,
} from "./view"
import type { Action, Told } from "./web"

const views = new Map<string, DeviceView>()
const rows = new Map<string, Row>()
let told: Told | undefined
/** The views' clock minus ours. */
let aheadMs = 0
let filter = "all"

/** Which states a filter shows; in the order of the buttons. */
const FILTERS: Record<string, (view: DeviceView) => boolean> = {
    all: () => true,
    connected: view => view.state === "connected",
    waiting: view => view.state === "waiting" || view.state === "connecting",
    trouble: view => isTrouble(view),
}

function isTrouble({ state, trouble, wait }: DeviceView): boolean {
    return (
        ["crashed", "halted", "held", "noLink", "away"].includes(state) ||
        trouble !== undefined ||
        wait?.lane === "slow"
    )
}

function find<T extends HTMLElement>(id: string): T {
    return document.getElementById(id) as T
}

function make<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, string> = {},
    text = "",
): HTMLElementTagNameMap[K] {
    const made = document.createElement(tag)
    for (const [name, value] of Object.entries(attributes))
        made.setAttribute(name, value)
    made.textContent = text
    return made
}

/** Changes a text only when it is another one: what reads the page aloud is not disturbed. */
function setText(element: HTMLElement, text: string) {
    if (element.textContent !== text) element.textContent = text
}

function seconds(ms: number): string {
    return `${(ms / 1000).toFixed(2).padStart(8)} s`
}

function nowMs() {
    return told?.stands ? told.nowMs : performance.now() + aheadMs
}

/** One device's row, and the row under it with what came last. */
class Row {
    readonly main = make("tr", { role: "row" })
    readonly details = make("tr", { role: "row", class: "details", hidden: "" })
    readonly button = make("button", { class: "device", type: "button" })
    private readonly state = make("span")
    private readonly now = make("div", { class: "now" })
    private readonly why = make("div", { class: "why" })
    private readonly meter = make("div", {
        class: "meter",
        "aria-hidden": "true",
    })
    private readonly bar = make("div")
    private readonly canvas = make("canvas", { role: "img" })
    private readonly count = make("td", {
        role: "cell",
        class: "c-count count",
    })
    private readonly facts = make("dl")
    private readonly lines = make("pre", {
        tabindex: "0",
        "aria-label": "What came last, newest first",
    })
    isOpen = false

    constructor(private readonly dev: string) {
        const id = `details-${rows.size}`
        this.details.id = id
        this.button.setAttribute("aria-expanded", "false")
        this.button.setAttribute("aria-controls", id)
        this.button.addEventListener("click", () => this.toggle())
        this.meter.append(this.bar)
        const cell = (kind: string, ...inside: HTMLElement[]) => {
            const made = make("td", { role: "cell", class: kind })
            made.append(...inside)
            return made
        }
        const head = make("th", {
            scope: "row",
            role: "rowheader",
            class: "c-device",
        })
        head.append(this.button)
        this.main.append(
            head,
            cell("c-state", this.state),
            cell("c-now", this.now, this.why, this.meter),
            cell("c-strip", this.canvas),
            this.count,
        )
        const wide = cell("", this.facts, this.lines)
        wide.setAttribute("colspan", "5")
        this.details.append(wide)
    }

    private toggle() {
        this.isOpen = !this.isOpen
        this.button.setAttribute("aria-expanded", `${this.isOpen}`)
        this.details.hidden = !this.isOpen
        this.show()
    }

    get isShown() {
        return !this.main.hidden
    }

    /** The view has changed. */
    show() {
        const view = views.get(this.dev)!
        this.main.hidden = !FILTERS[filter](view)
        this.details.hidden = this.main.hidden || !this.isOpen
        const { state, wait, lastError, link, trouble } = view
        setText(this.button, view.id ?? view.dev)
        this.state.className = `state s-${state}`
        setText(this.state, STATE_NAMES[state])
        setText(
            this.why,
            [
                wait?.reason ?? (state === "connected" ? "" : lastError?.text),
                wait?.proven && "overload proven",
                wait?.lane === "slow" && "slow lane",
                trouble?.text,
            ]
                .filter(Boolean)
                .join("; "),
        )
        const { attempts, losses, drops, crashes } = view.counters
        setText(
            this.count,
            [
                count(attempts, "attempt"),
                count(losses, "loss", "losses"),
                drops && count(drops, "drop"),
                crashes && count(crashes, "crash", "crashes"),
            ]
                .filter(Boolean)
                .join(", "),
        )
        if (this.isOpen)
            this.showDetails(view, link?.text ?? "not heard of yet")
        this.tick()
    }

    private showDetails(view: DeviceView, wifi: string) {
        const { crash, complaints } = view
        const facts: [string, string | undefined][] = [
            ["from", view.dev],
            [
                "program",
                view.version && `${view.version}, started after ${view.cause}`,
            ],
            ["Wi-Fi", wifi],
            ["broker", view.broker],
            ["last error", view.lastError?.text],
            ["counted", countersOf(view)],
            [
                "exception",
                crash && [crash.reason, ...crash.frames].join("\nat "),
            ],
            ...complaints.map(({ text }): [string, string] => [
                "setting",
                text,
            ]),
        ]
        this.facts.replaceChildren(
            ...facts.flatMap(([name, text]) =>
                text ? [make("dt", {}, name), make("dd", {}, text)] : [],
            ),
        )
        setText(
            this.lines,
            view.tail
                .map(({ atMs, text }) => `${seconds(atMs)}  ${text}`)
                .reverse()
                .join("\n"),
        )
    }

    /** Time passes. */
    tick() {
        if (!this.isShown) return
        const view = views.get(this.dev)!
        const { wait } = view
        setText(this.now, statusOf(view, nowMs()))
        this.meter.hidden = !wait
        if (!wait) return
        const wholeMs = wait.untilMs - wait.fromMs || 1
        const share = Math.min(
            Math.max((nowMs() - wait.fromMs) / wholeMs, 0),
            1,
        )
        this.bar.style.width = `${Math.round(share * 100)}%`
    }

    draw(colours: Record<string, string>) {
        if (!this.isShown || !told) return
        const view = views.get(this.dev)!
        const cells = 60
        const states = strip(view, nowMs(), cells, told.windowMs)
        paint(this.canvas, (context, width, height) => {
            const step = width / cells
            states.forEach((state, i) => {
                const kind = KINDS[state]
                context.fillStyle = colours[kind]
                // Unlike heights, so that the strip can be read without colours.
                const top = height * (1 - HEIGHTS[kind])
                const left = Math.round(i * step)
                context.fillRect(
                    left,
                    top,
                    Math.max(Math.round((i + 1) * step) - left - 1, 1),
                    height - top,
                )
            })
        })
        const share = states.filter(s => s === "connected").length / cells
        const label = `connected ${Math.round(share * 100)} % of the time shown`
        if (this.canvas.getAttribute("aria-label") !== label)
            this.canvas.setAttribute("aria-label", label)
    }
}

const KINDS: Record<State, string> = {
    unknown: "none",
    away: "none",
    off: "none",
    starting: "connecting",
    noLink: "trouble",
    waiting: "waiting",
    connecting: "connecting",
    connected: "connected",
    held: "trouble",
    halted: "trouble",
    crashed: "trouble",
}

const HEIGHTS: Record<string, number> = {
    none: 0.08,
    trouble: 0.3,
    waiting: 0.45,
    connected: 0.7,
    connecting: 1,
}

/** Draws on a canvas in its own pixels. */
function paint(
    canvas: HTMLCanvasElement,
    draw: (
        context: CanvasRenderingContext2D,
        width: number,
        height: number,
    ) => void,
) {
    const scale = devicePixelRatio || 1
    const width = Math.round(canvas.clientWidth * scale)
    const height = Math.round(canvas.clientHeight * scale)
    if (!width || !height) return
    if (canvas.width !== width) canvas.width = width
    if (canvas.height !== height) canvas.height = height
    const context = canvas.getContext("2d")!
    context.clearRect(0, 0, width, height)
    draw(context, width, height)
}

function currentColours(): Record<string, string> {
    const style = getComputedStyle(document.documentElement)
    const names = [
        "connected",
        "waiting",
        "connecting",
        "trouble",
        "none",
        "line",
    ]
    return Object.fromEntries(
        names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]),
    )
}

/** Bars over two minutes, scaled to the highest, but at least to `atLeast`. */
function chart(
    id: string,
    values: number[],
    atLeast: number,
    colour: string,
    line: string,
) {
    const top = Math.max(atLeast, ...values)
    paint(find<HTMLCanvasElement>(id), (context, width, height) => {
        context.fillStyle = line
        context.fillRect(0, height - 1, width, 1)
        context.fillStyle = colour
        const step = width / 120
        values.forEach((value, i) => {
            const left = Math.round((120 - values.length + i) * step)
            const right = Math.round((121 - values.length + i) * step)
            const tall = (value / top) * (height - 2)
            context.fillRect(
                left,
                height - tall,
                Math.max(right - left - 1, 1),
                tall,
            )
        })
    })
}

function drawAll() {
    if (!told) return
    const colours = currentColours()
    const attempts = told.seconds.map(s => s.attempts)
    const connected = told.seconds.map(s => s.connected)
    chart("attempts", attempts, 5, colours.connecting, colours.line)
    chart("connected", connected, views.size, colours.connected, colours.line)
    const peak = `most in one second: ${Math.max(0, ...attempts)}`
    setText(find("attempts-text"), peak)
    find("attempts").setAttribute("aria-label", `Attempts a second; ${peak}`)
    const now = `${connected.at(-1) ?? 0} of ${views.size} now`
    setText(find("connected-text"), now)
    find("connected").setAttribute("aria-label", `Connected devices: ${now}`)
    for (const row of rows.values()) row.draw(colours)
}

function summarize() {
    const all = [...views.values()]
    const parts = Object.entries(FILTERS)
        .slice(1)
        .map(([name, shows]): [string, number] => [
            name,
            all.filter(shows).length,
        ])
        .filter(([, n]) => n > 0)
        .map(([name, n]) => `${n} ${name === "trouble" ? "in trouble" : name}`)
    const left = told?.ignored
        ? `; events of more devices left out: ${told.ignored}`
        : ""
    setText(
        find("summary"),
        `${all.length} device${all.length === 1 ? "" : "s"}${parts.length ? ": " : ""}${parts.join(", ")}${left}`,
    )
    for (const [name, shows] of Object.entries(FILTERS)) {
        const button = find(`filter-${name}`)
        setText(button, `${name} ${all.filter(shows).length}`)
    }
    find("empty").hidden = all.length > 0
}

function makeFilters() {
    for (const name of Object.keys(FILTERS)) {
        const button = make("button", {
            id: `filter-${name}`,
            type: "button",
            "aria-pressed": `${name === filter}`,
        })
        button.addEventListener("click", () => {
            filter = name
            find("filters")
                .querySelectorAll("button")
                .forEach(other =>
                    other.setAttribute("aria-pressed", `${other === button}`),
                )
            rows.forEach(row => row.show())
        })
        find("filters").append(button)
    }
}

/** Buttons and choices; they stay the same elements, so that the focus stays where it is. */
function showActions(actions: Action[]) {
    const group = find("actions")
    for (const action of actions) {
        const known = document.getElementById(`act-${action.id}`)
        const element = known ?? makeAction(action, group)
        if ("choices" in action)
            (element as HTMLSelectElement).value = action.value
        else {
            setText(element, action.label)
            element.setAttribute("aria-pressed", `${action.isOn}`)
        }
    }
}

function makeAction(action: Action, group: HTMLElement): HTMLElement {
    const id = `act-${action.id}`
    if (!("choices" in action)) {
        const button = make("button", { id, type: "button" })
        button.addEventListener("click", () => void act(action.id, ""))
        group.append(button)
        return button
    }
    const label = make("label", { for: id }, action.label)
    const select = make("select", { id })
    for (const [value, text] of action.choices)
        select.append(make("option", { value }, text))
    select.addEventListener("change", () => void act(action.id, select.value))
    label.append(select)
    group.append(label)
    return select
}

async function act(id: string, value: string) {
    const token =
        document.querySelector<HTMLMetaElement>("meta[name=token]")!.content
    const answer = await fetch("/act", {
        method: "POST",
        headers: { "x-token": token, "content-type": "application/json" },
        body: JSON.stringify({ id, value }),
    }).catch(() => undefined)
    setText(
        find("problem"),
        answer?.ok
            ? ""
            : ((await answer?.text()) ?? "the monitor does not answer"),
    )
}

/** Up, down, home and end go from device to device. */
function moveFocus(event: KeyboardEvent) {
    const shown = [...rows.values()].filter(row => row.isShown)
    const at = shown.findIndex(row => row.button === document.activeElement)
    const steps: Record<string, number> = {
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        Home: 0,
        End: shown.length - 1,
    }
    const to = shown[steps[event.key]]
    if (at < 0 || !to) return
    event.preventDefault()
    to.button.focus()
}

function listen() {
    const events = new EventSource("/events")
    events.addEventListener("told", ({ data }) => {
        told = JSON.parse(data as string) as Told
        aheadMs = told.nowMs - performance.now()
        document.title = told.title
        setText(find("title"), told.title)
        setText(
            find("strip-head"),
            `Last ${Math.round(told.windowMs / 60000)} min`,
        )
        showActions(told.actions)
        drawAll()
        summarize()
    })
    events.addEventListener("views", ({ data }) => {
        for (const view of JSON.parse(data as string) as DeviceView[]) {
            views.set(view.dev, view)
            let row = rows.get(view.dev)
            if (!row) {
                rows.set(view.dev, (row = new Row(view.dev)))
                find("devices").append(row.main, row.details)
            }
            row.show()
        }
    })
    events.addEventListener("open", () => setText(find("problem"), ""))
    events.addEventListener("error", () =>
        setText(find("problem"), "the monitor does not answer; trying again"),
    )
}

makeFilters()
find("devices").addEventListener("keydown", moveFocus)
listen()
setInterval(() => rows.forEach(row => row.tick()), 250)
