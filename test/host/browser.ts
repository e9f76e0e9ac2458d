// Debian's Chromium for tests of pages, without a network.
import { existsSync } from "node:fs"
import { chromium, type Browser } from "playwright-core"

const PATH = "/usr/bin/chromium"

/** Why a test is skipped; false when Chromium is there. */
export const noChromium: string | false = existsSync(PATH)
    ? false
    : `${PATH} is missing: apt-get install chromium`

export function startChromium(): Promise<Browser> {
    return chromium.launch({
        executablePath: PATH,
        args: [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    })
}
