// One self-contained HTML file: words, charts, a table and the settings that made it. It needs no network.
// ECharts draws SVG, has dashes and text for screen readers; uPlot is smaller, but its canvas says nothing.
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Comparison } from "../compare"
import {
    COLUMNS,
    jsonOf,
    scenarioText,
    seconds,
    type ComparisonJson,
} from "../results"
import { adviceOf } from "./advice"
import { curvesOf, xMaxOf, type Curve } from "./curves"

/** Curves that are shown at first; the others are a check box away. */
const SHOWN = 8

export function pageOf(comparison: Comparison, command: string): string {
    const curves = curvesOf(comparison)
    const { scenario } = comparison
    const limitS = scenario.devices / scenario.rate
    const data = {
        ...jsonOf(comparison),
        limitText: `${seconds(limitS)} s`,
        xMaxS: xMaxOf(comparison),
        ideal: [
            [0, 0],
            [limitS, 100],
        ],
        curves,
    }
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>How ${scenario.devices} devices come back</title>
<link rel="icon" href="data:,">
<style>${asset("style.css")}</style>
</head>
<body>
<main>
<h1>How ${scenario.devices} devices come back</h1>
${adviceOf(comparison)
    .map(text => `<p>${marked(text)}</p>`)
    .join("\n")}
${figure("recovered", "Devices that are back, %", "Seconds from the broker's return. The dotted line is a broker that is never idle; the upright one the limit, devices by connections a second.")}
${figure("attempts", "Attempts at the broker, per second", "The fullest second of each step, on a logarithmic scale; a dot is a second alone, and nothing is drawn where there was no attempt.")}
<h2 id="figures">Figures</h2>
<p><button type="button" id="all">Show all curves</button><button type="button" id="none">Hide all curves</button></p>
<p id="figures-note">Seconds are from the broker's return; p99 is when 99 % of the devices are back. A check box shows or hides its curve.</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="figures">
${table(comparison, data, curves)}
</div>
<h2>Made with</h2>
<p>${marked(scenarioText(scenario))}.</p>
<dl>${settings(comparison)}<dt>command</dt><dd><code>${escaped(command)}</code></dd></dl>
</main>
<script type="application/json" id="data">${JSON.stringify(data).replace(/</g, "\\u003c")}</script>
<script>${echarts()}</script>
<script>${asset("page.js")}</script>
</body>
</html>
`
}

function figure(id: string, title: string, caption: string): string {
    return `<h2 id="${id}-title">${title}</h2>
<figure aria-labelledby="${id}-title">
<div class="chart" id="${id}" role="img"></div>
<figcaption>${caption} The figures are in the table below.</figcaption>
</figure>`
}

function table(
    { results }: Comparison,
    json: ComparisonJson,
    curves: Curve[],
): string {
    const head = COLUMNS.map(c => `<th scope="col">${c.title}</th>`).join("")
    const rows = results.map((result, i) => {
        const cells = COLUMNS.slice(1).map(
            c =>
                `<td data-key="${c.key}" data-value="${json.policies[i][c.key]}">${c.text(result)}</td>`,
        )
        return `<tr><th scope="row">${choice(curves[i], i < SHOWN)}</th>${cells.join("")}</tr>`
    })
    // The note is outside of what scrolls sideways on a phone.
    return `<table aria-labelledby="figures" aria-describedby="figures-note">
<thead><tr>${head}</tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>`
}

/** The check box of a curve, with a sample of its line. */
function choice(curve: Curve, isShown: boolean): string {
    const dash =
        curve.dash === "solid" ? "" : ` stroke-dasharray="${curve.dash.join()}"`
    const sample = (color: string, when: string) =>
        `<line x1="0" y1="5" x2="34" y2="5" stroke="${color}" stroke-width="3"${dash} class="${when}"/>`
    return (
        `<label><input type="checkbox" data-policy="${escaped(curve.name)}"${isShown ? " checked" : ""}>` +
        `<svg width="34" height="10" aria-hidden="true">${sample(curve.color, "by-day")}${sample(curve.darkColor, "by-night")}</svg>` +
        `${escaped(curve.name)}</label>`
    )
}

function settings({ scenario, interrupted }: Comparison): string {
    const list: [string, string | number][] = [
        ["devices", scenario.devices],
        ["connections a second", scenario.rate],
        ["broker", scenario.broker],
        ["backlog", `${scenario.backlogS} s of service`],
        [
            "outage",
            scenario.powerOn
                ? "none: all switched on together"
                : `${scenario.outageS} s, ${scenario.silent ? "silent" : "refused"}`,
        ],
        ["watched", `${scenario.limitS} s`],
        ["seed", scenario.seed],
    ]
    if (interrupted) list.push(["interrupted", "the last policy is unfinished"])
    return list.map(([k, v]) => `<dt>${k}</dt><dd>${v}</dd>`).join("")
}

function asset(name: string): string {
    return readFileSync(new URL(name, import.meta.url), "utf8")
}

/** With nothing in it that would end the script early. */
function echarts(): string {
    const path = createRequire(import.meta.url).resolve(
        "echarts/dist/echarts.common.min.js",
    )
    return readFileSync(path, "utf8").replace(/<\/script/gi, "<\\/script")
}

function escaped(text: string): string {
    return text
        .replace(/&/g, "&amp;")
        .replace(/</g, "&lt;")
        .replace(/"/g, "&quot;")
}

function marked(text: string): string {
    return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>")
}
