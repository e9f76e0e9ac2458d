// UTF-8, and the device's own methods as Node is given them, behave alike in the VM and under Node.
import { type Case, equal } from "../cases"
import { copyOf, readText, sizeOf, wholeCharacters } from "../../src/mqtt/bytes"

function text(hex: string): string | undefined {
    const source = Buffer.from(hex, "hex")
    return readText(source, 0, source.length)
}

function whole(hex: string): number {
    const source = Buffer.from(hex, "hex")
    return wholeCharacters(source, 0, source.length)
}

export function cases(): Case[] {
    return [
        {
            name: "lengths are bytes of UTF-8: 1, 2, 3 and 4 a character",
            run: () => {
                equal("".byteLength, 0)
                equal("aü€😀".byteLength, 10)
                equal(sizeOf("ü"), 2)
                equal(sizeOf(Buffer.alloc(3)), 3)
            },
        },
        {
            name: "blitAt takes a part of a string's bytes or of a Buffer",
            run: () => {
                const target = Buffer.alloc(6)
                target.blitAt(1, "xü€", 1, 2)
                target.blitAt(4, Buffer.from("0102030405", "hex"), 2, 2)
                equal(target.toString("hex"), "00c3bc000304")
            },
        },
        {
            name: "insert with a negative count takes elements out",
            run: () => {
                const list = [1, 2, 3, 4]
                list.insert(1, -2)
                equal(list.length, 2)
                equal(list[1], 4)
                list.insert(0, -1)
                equal(list[0], 4)
            },
        },
        {
            name: "copyOf is no view of its source",
            run: () => {
                const source = Buffer.from("0102030405", "hex")
                const part = copyOf(source, 1, 3)
                source[2] = 9
                equal(part.toString("hex"), "020304")
                equal(copyOf(source, 2, 0).length, 0)
            },
        },
        {
            name: "text of no bytes is the empty text",
            run: () => equal(text(""), ""),
        },
        {
            name: "text with U+FFFD in it is text, bytes that decode to U+FFFD are not",
            run: () => {
                equal(text("61efbfbd"), "a\uFFFD")
                equal(text("61ff"), undefined)
                equal(text("efbfbdff"), undefined)
                equal(text("ff61"), undefined)
            },
        },
        {
            name: "text that ends inside a character is no text, wherever the memory behind it leads",
            run: () => {
                // the device's own decoder looks at the bytes behind the last one
                const source = Buffer.from("61f09f9880", "hex")
                equal(readText(source, 0, 5), "a😀")
                equal(readText(source, 0, 4), undefined)
                equal(readText(source, 0, 3), undefined)
                equal(readText(source, 0, 2), undefined)
                equal(readText(source, 0, 1), "a")
            },
        },
        {
            name: "a cut text is cut back to its last whole character",
            run: () => {
                equal(whole("6162"), 2)
                equal(whole("61c3"), 1)
                equal(whole("61c3bc"), 3)
                equal(whole("61e282"), 1)
                equal(whole("61e2"), 1)
                equal(whole("61e282ac"), 4)
                equal(whole("61f09f98"), 1)
                equal(whole("61f09f9880"), 5)
                equal(whole("f0"), 0)
                equal(whole(""), 0)
            },
        },
        {
            name: "bytes that are no UTF-8 at all are left for the decoder to refuse",
            run: () => {
                equal(whole("6180"), 2)
                equal(whole("8080808080"), 5)
                equal(whole("c3bcbc"), 3)
            },
        },
    ]
}
