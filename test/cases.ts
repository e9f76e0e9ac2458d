// Checks for the tables that run both under Node and, compiled to bytecode, in the
// DeviceScript VM. Only what both understand: no Node modules, no @devicescript/* imports.

/** One row of a table: a fact with a name. `run` throws when the fact does not hold. */
export interface Case {
    name: string
    run: () => void
}

/** Throws unless both are the same number, string, boolean, null or undefined. */
export function equal(actual: unknown, expected: unknown, what = "value") {
    if (actual !== expected)
        throw new Error(`${what}: got ${actual}, expected ${expected}`)
}

/** Throws unless `run` throws an error whose message contains `text`. */
export function throws(run: () => void, text: string) {
    let message: string | undefined
    try {
        run()
    } catch (e) {
        message = (e as Error).message
    }
    if (message === undefined) throw new Error(`did not throw "${text}"`)
    if (message.indexOf(text) < 0)
        throw new Error(`threw "${message}", expected "${text}"`)
}

/** Bytes as lower-case hex, to compare packets by. */
export function hex(bytes: Buffer): string {
    const digits = "0123456789abcdef"
    let out = ""
    for (let i = 0; i < bytes.length; ++i)
        out += digits[bytes[i] >> 4] + digits[bytes[i] & 15]
    return out
}
