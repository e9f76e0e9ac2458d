// Certificates made on the spot with openssl: an authority, and servers it vouches for.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** For `test(name, { skip: noOpenssl }, ...)`: why these tests can't run, or false. In CI they must. */
export const noOpenssl: string | false =
    process.env.CI || spawnSync("openssl", ["version"]).error === undefined
        ? false
        : "openssl is not installed (apt-get install openssl)"

/** One certificate and its key, as files. */
export interface Certificate {
    cert: string
    key: string
}

export class Authority {
    private readonly folder = mkdtempSync(join(tmpdir(), "herdless-ca-"))
    private readonly root: Certificate

    constructor(name: string) {
        this.root = this.files("ca")
        this.openssl(
            ["req", "-x509", "-subj", `/CN=${name}`, "-days", "2"],
            ["-newkey", "rsa:2048", "-nodes"],
            ["-keyout", this.root.key, "-out", this.root.cert],
        )
    }

    /** The authority's own certificate. */
    get pem() {
        return readFileSync(this.root.cert, "utf8")
    }

    /** A server certificate for `host`; `days` below 0 makes one that has expired. */
    issue(host: string, days = 2): Certificate {
        const files = this.files(`${host}${days}`)
        const request = files.cert + ".csr"
        const extensions = files.cert + ".ext"
        writeFileSync(extensions, `subjectAltName=DNS:${host}\n`)
        this.openssl(
            ["req", "-new", "-subj", `/CN=${host}`, "-newkey", "rsa:2048"],
            ["-nodes", "-keyout", files.key, "-out", request],
        )
        this.openssl(
            ["x509", "-req", "-in", request, "-out", files.cert],
            ["-CA", this.root.cert, "-CAkey", this.root.key, "-CAcreateserial"],
            ["-extfile", extensions, "-days", `${days}`],
        )
        return files
    }

    dispose() {
        rmSync(this.folder, { recursive: true, force: true })
    }

    private files(name: string): Certificate {
        const base = join(this.folder, name)
        return { cert: base + ".crt", key: base + ".key" }
    }

    private openssl(...parts: string[][]) {
        const run = spawnSync("openssl", parts.flat(), { encoding: "utf8" })
        if (run.status !== 0) throw new Error(`openssl: ${run.stderr}`)
    }
}
