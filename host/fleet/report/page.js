// The report's page: draws the two charts from the data in the page and lets the table's check boxes
// choose the curves. Plain browser JavaScript, inlined by page.ts after ECharts.
/* global echarts, document, window, matchMedia */
{
    const data = JSON.parse(document.getElementById("data").textContent)
    const dark = matchMedia("(prefers-color-scheme: dark)")
    const boxes = [...document.querySelectorAll("input[data-policy]")]
    const charts = []

    const css = name =>
        window.getComputedStyle(document.documentElement).getPropertyValue(name)

    /** What both charts share. */
    function base(title, yAxis) {
        const text = css("--text").trim()
        const line = css("--line").trim()
        const axis = {
            axisLabel: { color: text, showMaxLabel: true },
            nameTextStyle: { color: text },
            axisLine: { lineStyle: { color: line } },
            splitLine: { lineStyle: { color: line, opacity: 0.5 } },
        }
        return {
            animation: false,
            aria: { enabled: true, label: { description: title } },
            textStyle: { fontFamily: "system-ui, sans-serif", color: text },
            grid: {
                left: 12,
                right: 24,
                top: 36,
                bottom: 36,
                containLabel: true,
            },
            tooltip: {
                trigger: "axis",
                confine: true,
                order: "valueDesc",
                valueFormatter: v => (v == null ? "none" : String(v)),
            },
            xAxis: {
                type: "value",
                name: "s after the broker is back",
                nameLocation: "middle",
                nameGap: 28,
                min: 0,
                max: data.xMaxS,
                ...axis,
                axisLabel: { color: text, showMaxLabel: false },
                splitLine: { show: false },
            },
            yAxis: {
                ...yAxis,
                ...axis,
            },
        }
    }

    /** The limit N/C, upright, in both charts. */
    function limitLine() {
        const color = css("--text").trim()
        return {
            silent: true,
            symbol: "none",
            lineStyle: { color, type: "solid", width: 1.5 },
            label: {
                color,
                formatter: `limit ${data.limitText}`,
                position: "end",
            },
            data:
                data.limitSeconds <= data.xMaxS
                    ? [{ xAxis: data.limitSeconds }]
                    : [],
        }
    }

    function isAlone(points, at) {
        const isNull = i => !points[i] || points[i][1] === null
        return isNull(at - 1) && isNull(at + 1)
    }

    function series(key) {
        return data.curves.map((curve, i) => ({
            name: curve.name,
            type: "line",
            // A second alone among empty ones has no line: it is a dot.
            showSymbol: true,
            symbol: "circle",
            symbolSize: (_, { dataIndex: at }) =>
                isAlone(curve[key], at) ? 6 : 0,
            data: curve[key],
            color: dark.matches ? curve.darkColor : curve.color,
            lineStyle: { width: curve.width, type: curve.dash },
            emphasis: { disabled: true },
            // Where two curves are the same, the first is to be seen.
            z: 100 - i,
            ...(i === 0 ? { markLine: limitLine() } : {}),
        }))
    }

    function draw() {
        for (const chart of charts.splice(0)) chart.dispose()
        const make = (id, option) => {
            const chart = echarts.init(document.getElementById(id), undefined, {
                renderer: "svg",
            })
            chart.setOption(option)
            charts.push(chart)
        }
        const ideal = {
            name: "limit",
            type: "line",
            showSymbol: false,
            silent: true,
            data: data.ideal,
            color: css("--faint").trim(),
            lineStyle: { width: 1.5, type: "dotted" },
        }
        make("recovered", {
            ...base("Devices that are back, in percent, over time", {
                type: "value",
                min: 0,
                max: 100,
            }),
            series: [...series("recovered"), ideal],
        })
        make("attempts", {
            ...base("Attempts in the fullest second, over time", {
                type: "log",
                min: 1,
            }),
            series: series("attempts"),
        })
        choose()
    }

    /** Shows the curves whose boxes are checked. */
    function choose() {
        const selected = { limit: true }
        for (const box of boxes) selected[box.dataset.policy] = box.checked
        for (const chart of charts)
            chart.setOption({ legend: { show: false, selected } })
    }

    for (const box of boxes) box.addEventListener("change", choose)
    for (const [id, checked] of [
        ["all", true],
        ["none", false],
    ])
        document.getElementById(id).addEventListener("click", () => {
            for (const box of boxes) box.checked = checked
            choose()
        })
    dark.addEventListener("change", draw)
    window.addEventListener("resize", () => {
        for (const chart of charts) chart.resize()
    })
    draw()
}
