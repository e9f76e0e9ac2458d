// What every tool has by reading its flags: help that fits the terminal, and an end when nobody reads any more.
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { test } from "node:test"
import { fold } from "../../host/flags"
import { PROJECT } from "../../host/vm/program"

test("lines are broken between words and keep their indentation; what fits stays", () => {
    const text = "one two three\n\n  four five six\nshort\nunbreakableword x\n"
    assert.equal(
        fold(text, 9),
        "one two\nthree\n\n  four\n  five\n  six\nshort\nunbreakableword x\n",
    )
    assert.equal(fold(text, Infinity), text)
})

for (const args of [["--help"], ["--hours", "1", "--json"]])
    test(`crashes ${args.join(" ")} | head -0: ends at once, without a word`, async () => {
        const child = spawn(
            process.execPath,
            ["--import", "tsx", "host/crashes.ts", ...args],
            { cwd: PROJECT, stdio: ["ignore", "pipe", "pipe"] },
        )
        child.stdout.destroy()
        let complaints = ""
        child.stderr.on("data", text => (complaints += text))
        const code = await new Promise(done => child.on("close", done))
        assert.equal(complaints, "")
        assert.equal(code, args[0] === "--help" ? 0 : 130)
    })
