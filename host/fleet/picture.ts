// The picture in the README, measured: `tsx host/fleet/picture.ts docs/fleet.svg`. ECharts draws it without a browser.
import { createRequire } from "node:module"
import { writeFileSync } from "node:fs"
import { curvesOf } from "./report/curves"
import { preset } from "./presets"
import { FleetSim, type Scenario } from "./sim"

const NAMES = ["adaptive", "fitted", "hivemq", "none-60s", "full-60s"]

const scenario: Scenario = {
    ...{ devices: 20_000, rate: 100, backlogS: 20, broker: "queue" },
    ...{ outageS: 60, silent: false, powerOn: false, seed: 1, limitS: 1000 },
}

function picture(): string {
    const { devices, rate } = scenario
    const fleet = { devices, rate, patienceMs: 10_000, margin: 1.25 }
    const results = NAMES.map(name => {
        const sim = new FleetSim(scenario, preset(name, fleet)!)
        while (sim.run(1e6));
        return sim.result()
    })
    const curves = curvesOf({ scenario, results, interrupted: false })
    const echarts = createRequire(import.meta.url)("echarts")
    const chart = echarts.init(null, null, {
        ...{ renderer: "svg", ssr: true, width: 760, height: 300 },
    })
    const text = { color: "#6a737d" }
    chart.setOption({
        animation: false,
        textStyle: { fontFamily: "sans-serif" },
        legend: { top: 0, textStyle: text, itemWidth: 36 },
        grid: { left: 48, right: 24, top: 36, bottom: 40 },
        xAxis: {
            ...{ type: "value", min: 0, max: 700, axisLabel: text },
            name: `s after the broker is back: ${devices} devices, ${rate} connections/s, limit ${devices / rate} s`,
            ...{ nameLocation: "middle", nameGap: 26, nameTextStyle: text },
            splitLine: { show: false },
        },
        yAxis: {
            ...{ type: "value", min: 0, max: 100 },
            axisLabel: { ...text, formatter: "{value} %" },
            splitLine: { lineStyle: { color: "#8888", width: 0.5 } },
        },
        series: curves.map((c, i) => ({
            ...{ name: c.name, type: "line", data: c.recovered },
            ...{ showSymbol: false, color: c.color },
            lineStyle: { type: c.dash, width: c.width },
            ...(i === 0
                ? {
                      markLine: {
                          ...{ silent: true, symbol: "none" },
                          lineStyle: { color: "#6a737d", type: "solid" },
                          label: { formatter: "limit", ...text },
                          data: [{ xAxis: devices / rate }],
                      },
                  }
                : {}),
        })),
    })
    const svg = chart.renderToSVGString()
    // Or its timers keep the process.
    chart.dispose()
    return svg
}

writeFileSync(process.argv[2], picture() + "\n")
