// `npm run mutants`: breaks the firmware in every way of mutants/list.ts, one at a time in a copy of the
// project, and runs the suite on it, the quick parts first. Prints which test caught each mutant; one that
// nothing catches is a test that is missing.
import { readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Command, InvalidArgumentError } from "commander"
import pc from "picocolors"
import { readFlags, toConsole, whole } from "./flags"
import { MUTANTS, type Mutant } from "./mutants/list"
import { Tree } from "./mutants/tree"
import { span } from "./show"
import { PROJECT } from "./vm/program"

const { stdout, stderr } = process

/** A part of the suite. */
interface Stage {
    name: string
    /** Node's arguments for this mutant, or for none; undefined: it has nothing to say about it. */
    args(mutant?: Mutant): string[] | undefined
}

/** Far above what a part takes beside other work; a mutant that hangs is caught by this. */
const STAGE_LIMIT_MS = 900_000

/** The tests of a folder. */
function testsIn(folder: string): string[] {
    return readdirSync(join(PROJECT, folder))
        .filter(name => name.endsWith(".test.ts"))
        .map(name => `${folder}/${name}`)
}

const runTests = (files: string[]) => [
    "--import",
    "tsx",
    "--test",
    "--test-reporter=tap",
    "--test-timeout=300000",
    ...files,
]

const tables = (rooms: string[]) =>
    runTests(rooms.flatMap(room => testsIn(`test/${room}`)))

/** The parts of the suite, the quick ones first. */
const STAGES: Stage[] = [
    {
        name: "tables",
        args(mutant) {
            if (!mutant) return tables(["core", "mqtt"])
            const room = /^src\/(core|mqtt)\//.exec(mutant.file)?.[1]
            return room ? tables([room]) : undefined
        },
    },
    {
        name: "soak",
        args: () => [
            ..."--import tsx host/soak.ts --seeds 3 --hours 4 --jobs 1".split(
                " ",
            ),
        ],
    },
    {
        name: "cases",
        args: () =>
            runTests([
                "test/firmware/herd.test.ts",
                ...testsIn("test/firmware/cases"),
            ]),
    },
]

/** What caught a mutant in a stage: a test's name; "" for nothing. */
function catcher(stage: string, output: string): string {
    if (stage === "soak")
        return (
            /^seed \d+: (.*)$/m.exec(output)?.[1] ??
            /^.*error.*$/im.exec(output)?.[0] ??
            "it failed"
        )
    const failed = [...output.matchAll(/^( *)not ok \d+ - (.+)$/gm)]
        .map(m => m[2])
        .filter(name => !name.endsWith(".test.ts"))
    return failed[0] ?? "it failed"
}

/** What happened to one mutant. */
interface Row {
    mutant: Mutant
    /** By stage: what caught it, "" when it passed; stages after the first catch are left out. */
    caught: Record<string, string>
    problem?: string
}

/** What fails although nothing is broken, by stage. */
async function baseline(trees: Tree[], stages: Stage[]): Promise<string[]> {
    const waiting = [...stages]
    const failing: string[] = []
    await Promise.all(
        trees.map(async tree => {
            for (let s = waiting.shift(); s; s = waiting.shift()) {
                const { code, output } = await tree.node(
                    s.args()!,
                    STAGE_LIMIT_MS,
                )
                if (code === 0) continue
                failing.push(`${s.name}: ${catcher(s.name, output)}`)
            }
        }),
    )
    return failing
}

async function judge(
    tree: Tree,
    mutant: Mutant,
    stages: Stage[],
    all: boolean,
): Promise<Row> {
    const row: Row = { mutant, caught: {} }
    let restore: () => void
    try {
        restore = tree.apply(mutant)
    } catch (e) {
        return { ...row, problem: (e as Error).message }
    }
    for (const stage of stages) {
        const args = stage.args(mutant)
        if (!args) continue
        const { code, output } = await tree.node(args, STAGE_LIMIT_MS)
        const plain = output.replace(/\x1b\[[\d;]*m/g, "")
        const built = /devs build .* failed:\n([^]*?)\n\s+at /.exec(plain)
        if (built) {
            row.problem = `does not build: ${built[1]}`
            break
        }
        row.caught[stage.name] = code === 0 ? "" : catcher(stage.name, plain)
        if (code !== 0 && !all) break
    }
    restore()
    return row
}

/** What the flags say. */
interface Options {
    all?: boolean
    stage?: string[]
    jobs: number
    json?: boolean
}

const NAMES = STAGES.map(s => s.name).join(", ")

function stageNames(name: string, before: string[] = []): string[] {
    if (!STAGES.some(s => s.name === name))
        throw new InvalidArgumentError(`Allowed: ${NAMES}.`)
    return [...before, name]
}

function word(text: string, before: string[] = []): string[] {
    if (!MUTANTS.some(m => m.name.includes(text))) {
        const names = MUTANTS.map(m => `\n  ${m.name}`).join("")
        throw new InvalidArgumentError(`Allowed: a part of one of${names}`)
    }
    return [...before, text]
}

const COMMAND = new Command("npm run mutants --")
    .description(
        "Breaks the firmware in many ways and shows which test catches each.",
    )
    .argument("[words...]", "only mutants whose name has one of these", word)
    .option("--all", "run every part of the suite, not up to the first catch")
    .option("--stage <names...>", `only these parts: ${NAMES}`, stageNames)
    .option("--jobs <n>", "at a time", whole(1, 999), availableParallelism())
    .option("--json", "print the result as one JSON object")
    .addHelpText(
        "after",
        "\nExit codes: 0 each was caught; 1 one was not, or is out of date; 2 a flag can't be used; 130 Ctrl-C.",
    )

/** Caught, and nothing went wrong on the way. */
const isCaught = (row: Row) =>
    !row.problem && Object.values(row.caught).some(what => what)

function describe({ mutant, caught, problem }: Row): string {
    const by = Object.entries(caught)
        .filter(([, what]) => what)
        .map(([stage, what]) => `${stage}: ${what}`)
    const result = problem
        ? pc.red(problem)
        : by.length
          ? by.join("\n    ")
          : pc.red("NOT CAUGHT")
    return `${mutant.name}\n    ${result}`
}

async function run(
    { all = false, jobs, json, stage }: Options,
    words: string[],
) {
    const stages = STAGES.filter(s => !stage || stage.includes(s.name))
    const startMs = performance.now()
    const chosen = MUTANTS.filter(
        m => !words.length || words.some(w => m.name.includes(w)),
    )
    const waiting = [...chosen]
    const rows: Row[] = []
    const trees = Array.from(
        { length: Math.min(jobs, chosen.length) },
        () => new Tree(),
    )
    const finish = (code: number) => {
        for (const tree of trees) tree.close()
        const caught = rows.filter(isCaught).length
        const wallMs = performance.now() - startMs
        if (json)
            stdout.write(
                `${JSON.stringify({
                    mutants: rows.length,
                    caught,
                    rows: rows.map(({ mutant, ...more }) => ({
                        name: mutant.name,
                        ...more,
                    })),
                })}\n`,
            )
        else
            stdout.write(
                `${caught} of ${rows.length} mutants caught in ${span(wallMs)}\n`,
            )
        process.exit(code)
    }
    process.on("SIGINT", () => finish(130))
    process.on("SIGTERM", () => finish(143))
    const failing = await baseline(trees, stages)
    if (failing.length) {
        stderr.write(
            `the suite fails with nothing broken:\n  ${failing.join("\n  ")}\n`,
        )
        finish(1)
    }
    await Promise.all(
        trees.map(async tree => {
            for (let m = waiting.shift(); m; m = waiting.shift()) {
                const row = await judge(tree, m, stages, all)
                rows.push(row)
                ;(json ? stderr : stdout).write(`${describe(row)}\n`)
            }
        }),
    )
    finish(rows.every(isCaught) ? 0 : 1)
}

const given = readFlags(COMMAND, process.argv.slice(2), toConsole)
if (typeof given === "number") process.exit(given)
else void run(given as Options, COMMAND.args)
