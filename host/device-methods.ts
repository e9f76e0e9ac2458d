// Gives Node's Buffer, String and Array what the device's have and src/mqtt uses, so that its files run under Node as they
// are. Whoever imports one of them under Node imports this too. Strings differ in one thing: the device's can't hold
// U+FFFE and U+FFFF, nor half a surrogate pair.
declare global {
    interface Buffer {
        /** Writes `bytes` bytes of `source` (a string counts as its UTF-8), from `from` on, to `at` on. */
        blitAt(
            at: number,
            source: Buffer | string,
            from: number,
            bytes: number,
        ): void
    }
    interface String {
        /** Length in UTF-8. */
        readonly byteLength: number
    }
    // eslint-disable-next-line @typescript-eslint/no-unused-vars
    interface Array<T> {
        /** Inserts so many undefined, or takes so many out when `count` is negative. */
        insert(at: number, count: number): void
    }
}

// Not enumerable, so that a `for in` of some library does not meet them.
Object.defineProperty(Buffer.prototype, "blitAt", {
    value: function (
        this: Buffer,
        at: number,
        source: Buffer | string,
        from: number,
        bytes: number,
    ) {
        const all = typeof source === "string" ? Buffer.from(source) : source
        all.copy(this, at, from, from + bytes)
    },
})

Object.defineProperty(String.prototype, "byteLength", {
    get: function (this: string) {
        return Buffer.byteLength(String(this))
    },
})

Object.defineProperty(Array.prototype, "insert", {
    value: function (this: unknown[], at: number, count: number) {
        if (count < 0) this.splice(at, -count)
        else this.splice(at, 0, ...new Array(count).fill(undefined))
    },
})

export {}
