// The library as its users get it: packed, installed into a fresh project without a network, used by a program of
// ten lines that compiles, runs in the VM and comes back after an outage.
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import {
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, test } from "node:test"
import { runDevsSync } from "../../host/flash/devs"
import { World } from "../../host/lab/world"
import { PROJECT, withLock } from "../../host/vm/program"

const PROGRAM = `import { messageText, startMqtt } from "devicescript-herdless"

const mqtt = startMqtt({ host: "broker" })

await mqtt.subscribe("lamp/set", async message => {
    const state = messageText(message)
    console.log("lamp is " + state)
    await mqtt.publish("lamp/state", state, { retain: true })
})
`

const folder = mkdtempSync(join(tmpdir(), "herdless-"))
after(() => rmSync(folder, { recursive: true, force: true }))

function npm(args: string[], cwd: string): string {
    const quiet = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
    const run = spawnSync("npm", [...args, ...quiet], { cwd, encoding: "utf8" })
    assert.equal(run.status, 0, run.stdout + run.stderr)
    return run.stdout.trim()
}

/** `devs init`, with the compiler that is installed here instead of a download. */
function freshProject(): string {
    const project = join(folder, "lamp")
    const { code, output } = runDevsSync(
        ["init", "--no-install", project],
        PROJECT,
    )
    assert.equal(code, 0, output)
    const file = join(project, "package.json")
    const about = JSON.parse(readFileSync(file, "utf8"))
    const cli = join(PROJECT, "node_modules/@devicescript/cli")
    about.devDependencies["@devicescript/cli"] = `file:${cli}`
    writeFileSync(file, JSON.stringify(about))
    return project
}

test("pack, install, compile, run, reconnect", async () => {
    const tarball = npm(["pack", "--pack-destination", folder], PROJECT)
    const project = freshProject()
    npm(["install", "--offline", join(folder, tarball)], project)

    const installed = join(project, "node_modules")
    assert.deepEqual(
        readdirSync(installed).filter(name => !name.startsWith(".")),
        ["@devicescript", "devicescript-herdless"],
        "nothing but the compiler and the library",
    )
    assert.deepEqual(
        readdirSync(join(installed, "devicescript-herdless")).sort(),
        [
            ...["CHANGELOG.md", "LICENSE", "README.md", "boards", "devs"],
            ...["devsconfig.json", "docs", "package.json", "src"],
        ],
    )

    writeFileSync(join(project, "src/main.ts"), PROGRAM)
    let built = { code: 1, output: "" }
    withLock(() => (built = runDevsSync(["build"], project)))
    assert.equal(built.code, 0, built.output)
    const bytecode = readFileSync(
        join(project, ".devicescript/bin/bytecode.devs"),
    )

    const world = new World()
    const broker = world.broker()
    const device = await world.device({ bytecode })
    device.powerOn()
    const lampIs = (state: string) => () =>
        `${broker.retained.get("lamp/state")?.payload}` === state
    await world.until("connected", 60_000)
    await world.run(1000)
    broker.publish("lamp/set", "on")
    await world.until(lampIs("on"), 1000)

    broker.crash()
    await world.run(30_000)
    broker.start()
    await world.until("connected", 120_000)
    await world.run(1000)
    broker.publish("lamp/set", "off")
    await world.until(lampIs("off"), 1000)
    assert.deepEqual(broker.violations, [])
    await world.close()
})
