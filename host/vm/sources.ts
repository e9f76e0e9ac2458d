// Which files of a project a DeviceScript program is made of: itself, what it imports, what that imports.
import { readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"

/** A relative path behind `from`, `import` or `require`. One in a comment counts, too: that costs a compile, no mistake. */
const IMPORTED =
    /\b(?:from|import|require)\b\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g

/** Where TypeScript looks for `./name`. */
const ENDINGS = [".ts", "/index.ts", ""]

/**
 * The program's own files; packages are not followed.
 * @param project the folder of package.json
 * @param file the program, from there
 * @returns text by path from there, in the order of the paths
 */
export function sourcesOf(project: string, file: string): Map<string, string> {
    const texts = new Map<string, string>()
    const waiting = [file]
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
        if (texts.has(path)) continue
        const text = readFileSync(join(project, path), "utf8")
        texts.set(path, text)
        for (const [, name] of text.matchAll(IMPORTED)) {
            const base = join(dirname(path), name)
            const found = ENDINGS.map(ending => base + ending).find(name =>
                isFile(join(project, name)),
            )
            if (found !== undefined) waiting.push(found)
        }
    }
    return new Map([...texts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function isFile(path: string): boolean {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}
