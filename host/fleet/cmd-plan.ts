// `npm run fleet -- plan`: the policy for a fleet of N devices whose broker completes C connections a
// second, as settings and as the message that retunes a fleet, with what to expect of it.
import { Command } from "commander"
import { readFlags, whole } from "../flags"
import {
    planFor,
    QUICK_S,
    RESTART_S,
    type Plan,
    type PlanOptions,
    type Prediction,
} from "./plan"
import { seconds, tableText } from "./results"
import { decimal, type Io, type Tool } from "./tool"

const HELP = `
The margin has to exceed the error in C: 1.25 unless you measured C (then 1.05).
Predictions are simulated with the device's own policy code: a queue of 20 s at the broker, first come
first served; more than 200000 devices are simulated as 200000.

Exit codes: 0 done; 2 a flag can't be used.

Example:
  npm run fleet -- plan --devices 100000 --rate 100`

export function readPlanOptions(
    args: string[],
    io: Io,
): (PlanOptions & { json: boolean }) | number {
    const command = new Command("npm run fleet -- plan")
        .description("Which numbers suit a fleet, and what to expect of them.")
        .requiredOption("--devices <n>", "in the fleet", whole(1, 5_000_000))
        .requiredOption(
            "--rate <c>",
            "connections the broker completes a second",
            decimal(0.01, 1e6),
        )
        .option(
            "--patience <s>",
            "a device waits so long for CONNACK at first",
            decimal(0.1, 600),
            10,
        )
        .option(
            "--margin <m>",
            "spread over m devices/rate",
            decimal(1, 100),
            1.25,
        )
        .option("--seed <n>", "of all draws", whole(0, 0x7fffffff), 1)
        .option("--json", "print the plan as one JSON object")
        .addHelpText("after", HELP)
        .allowExcessArguments(false)
    const given = readFlags(command, args, (text, isError) =>
        (isError ? io.err : io.out)(text),
    )
    if (typeof given === "number") return given
    const { devices, rate, patience, margin, seed, json } = given
    const patienceMs = Math.round(patience * 1000)
    return { devices, rate, patienceMs, margin, seed, json: json === true }
}

/** Seconds; null for never. */
function predictedJson({ p50, p99, last, peakPerSecond, wasted }: Prediction) {
    const known = (s: number) => (Number.isFinite(s) ? s : null)
    return {
        p50: known(p50),
        p99: known(p99),
        last: known(last),
        peakPerSecond,
        wasted,
    }
}

/** `predicted` is after a broker's restart. */
export function planJson(plan: Plan) {
    const { policy, env, warnings, blip, limitS } = plan
    return {
        policy,
        env,
        limitSeconds: limitS,
        predicted: predictedJson(plan.restart),
        powerOn: predictedJson(plan.powerOn),
        rateTwentyPercentLower: predictedJson(plan.slower),
        quickRestart: predictedJson(plan.quick),
        blipSeconds: blip.plainS,
        fastFirst: {
            env: { FAST_FIRST: "1" },
            predicted: predictedJson(plan.fastFirst.restart),
            quickRestart: predictedJson(plan.fastFirst.quick),
            blipSeconds: blip.fastFirstS,
        },
        warnings,
    }
}

function row(what: string, p: Prediction): string[] {
    return [
        what,
        seconds(p.p50),
        seconds(p.p99),
        seconds(p.last),
        String(p.peakPerSecond),
        String(p.wasted),
    ]
}

export function planText(plan: Plan): string {
    const { options, policy, env, blip, limitS } = plan
    const middle = ([low, high]: [number, number]) => seconds((low + high) / 2)
    return [
        ...plan.warnings.map(text => `warning: ${text}`),
        `# ${options.devices} devices, ${options.rate} connections/s, margin ${options.margin}: as settings (.env.local)`,
        ...Object.entries(env).map(([key, value]) => `${key}=${value}`),
        "",
        "# or for a fleet in the field: retained on <prefix>/policy, issue one more than the last",
        JSON.stringify(policy),
        "",
        `What to expect (nobody can be faster than ${seconds(limitS)} s):`,
        ...tableText([
            ["", "p50 s", "p99 s", "last s", "peak /s", "wasted"],
            row(`after a restart of ${RESTART_S} s`, plan.restart),
            row("after a power cut", plan.powerOn),
            row("the restart, with C 20 % lower", plan.slower),
            row(`after a restart of ${QUICK_S} s`, plan.quick),
            row(`  with FAST_FIRST=1`, plan.fastFirst.quick),
            row(
                `restart of ${RESTART_S} s, FAST_FIRST=1`,
                plan.fastFirst.restart,
            ),
        ]),
        "",
        `One device that loses its connection alone is back after ${middle(blip.plainS)} s on average ` +
            `(up to ${seconds(blip.plainS[1])} s); with FAST_FIRST=1 after ${seconds(blip.fastFirstS[0])} to ${seconds(blip.fastFirstS[1])} s.`,
        `FAST_FIRST=1 makes one attempt at once, then spreads: it costs nothing while the broker is away for 3 s or more,`,
        `and brings the whole fleet in a second to one that drops its connections and is there at once.`,
    ].join("\n")
}

export const planTool: Tool = {
    name: "plan",
    summary: "which numbers suit a fleet, and what to expect of them",
    async run(args, io) {
        const options = readPlanOptions(args, io)
        if (typeof options === "number") return options
        const plan = planFor(options)
        io.out(
            (options.json ? JSON.stringify(planJson(plan)) : planText(plan)) +
                "\n",
        )
        return 0
    },
}
