// `npm run fleet`: what a fleet of devices does to its broker after an outage, simulated and real,
// and which policy suits it. Each tool is one file, host/fleet/cmd-*.ts.
import { Command } from "commander"
import { readFlags } from "./flags"
import { gridTool } from "./fleet/cmd-grid"
import { measureTool } from "./fleet/cmd-measure"
import { planTool } from "./fleet/cmd-plan"
import { realTool } from "./fleet/cmd-real"
import { runTool } from "./fleet/cmd-run"
import { consoleIo, type Tool } from "./fleet/tool"

const TOOLS: Tool[] = [measureTool, planTool, runTool, realTool, gridTool]

async function main([name, ...args]: string[]): Promise<number> {
    const io = consoleIo()
    const tool = TOOLS.find(t => t.name === name)
    if (tool) return tool.run(args, io)
    const list = TOOLS.map(t => `  ${t.name.padEnd(8)} ${t.summary}`)
    const help = new Command("npm run fleet --")
        .usage("<tool> [flags]")
        .description("A fleet of devices and its broker, after an outage.")
        .addHelpText("after", `\nTools:\n${list.join("\n")}`)
        .addHelpText(
            "after",
            "\nnpm run fleet -- <tool> --help lists the flags",
        )
        .argument("[tool]")
    const print = (text: string, isError: boolean) =>
        (isError ? io.err : io.out)(text)
    if (name === undefined || name.startsWith("-")) {
        const code = readFlags(help, name ? [name] : ["--help"], print)
        return typeof code === "number" && name !== undefined ? code : 2
    }
    const allowed = TOOLS.map(t => t.name).join(", ")
    io.err(`error: tool '${name}' is unknown. Allowed: ${allowed}.\n`)
    return 2
}

// Not process.exit: what was printed may still be on its way through a pipe.
void main(process.argv.slice(2)).then(code => (process.exitCode = code))
