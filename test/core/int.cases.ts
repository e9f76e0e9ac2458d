// Integer arithmetic, at the edges where int32, doubles and the two languages differ.
import { below, div, mulDiv, umod } from "../../src/core/int"
import type { Random } from "../../src/core/random"
import { Case, equal, throws } from "../cases"

const MAX = 0x7fffffff

/** Gives the words in turn, then the last one for ever; counts them. */
class Words implements Random {
    taken = 0
    words: number[]
    constructor(words: number[]) {
        this.words = words
    }
    next(): number {
        const last = this.words.length - 1
        const i = this.taken < last ? this.taken : last
        this.taken++
        return this.words[i]
    }
}

function mulDivRow(a: number, b: number, c: number, expected: number): Case {
    return {
        name: `floor(${a} * ${b} / ${c}) is ${expected}`,
        run: () => {
            equal(mulDiv(a, b, c), expected, "a b")
            equal(mulDiv(b, a, c), expected, "b a")
        },
    }
}

function umodRow(a: number, n: number, expected: number): Case {
    return {
        name: `the word ${a} modulo ${n} is ${expected}`,
        run: () => equal(umod(a, n), expected),
    }
}

function belowRow(n: number, words: number[], draw: number, taken: number) {
    return {
        name: `a draw below ${n} takes ${taken} words and is ${draw}`,
        run: () => {
            const random = new Words(words)
            equal(below(n, random), draw, "draw")
            equal(random.taken, taken, "words")
        },
    }
}

export function cases(): Case[] {
    return [
        mulDivRow(0, 5, 3, 0),
        mulDivRow(7, 3, 2, 10),
        mulDivRow(1, 1, 2, 0),
        mulDivRow(MAX, 1, 1, MAX),
        mulDivRow(MAX, 1, MAX, 1),
        mulDivRow(MAX, MAX, MAX, MAX),
        mulDivRow(MAX, 3, 2, MAX),
        mulDivRow(MAX, MAX, 1, MAX),
        mulDivRow(1431655764, 3, 2, 2147483646),
        mulDivRow(1431655765, 3, 2, 2147483647),
        mulDivRow(1431655766, 3, 2, MAX),
        mulDivRow(2147483646, 2147483645, 2147483647, 2147483644),
        mulDivRow(65536, 65536, 65535, 65537),
        mulDivRow(46341, 46341, 1, MAX),
        mulDivRow(46340, 46340, 1, 2147395600),
        mulDivRow(94906267, 94906267, 94906265, 94906269),
        mulDivRow(1 << 30, 1 << 30, (1 << 30) - 1, (1 << 30) + 1),
        {
            name: "division rounds down and is exact to 2^31 - 1",
            run: () => {
                equal(div(MAX, 10), 214748364)
                equal(div(MAX, 11), 195225786)
                equal(div(MAX, MAX), 1)
                equal(div(MAX - 1, MAX), 0)
                equal(div(0, 7), 0)
            },
        },
        umodRow(-1, 10, 5),
        umodRow(-1, MAX, 1),
        umodRow(-2, MAX, 0),
        umodRow(-1, 1, 0),
        umodRow(0, 7, 0),
        umodRow(MAX, MAX, 0),
        umodRow(1 << 31, 10, 8),
        umodRow(1 << 31, MAX, 1),
        umodRow(1 << 31, (1 << 30) + 1, (1 << 30) - 1),
        umodRow(9, 10, 9),
        belowRow(1, [123], 0, 0),
        belowRow(6, [13], 5, 1),
        belowRow(6, [6, 7, 14, 15, 4], 4, 5),
        belowRow(256, [-1], 255, 1),
        belowRow(MAX, [-1, MAX, 1 << 31], 0, 3),
        belowRow(MAX, [MAX - 1], MAX - 1, 1),
        {
            name: "a stuck source ends a draw after 64 words, in range",
            run: () => {
                const random = new Words([-1])
                equal(below(10, random), 7)
                equal(random.taken, 64, "words")
            },
        },
        {
            name: "a draw below nothing, below a fraction or below 2^31 is refused",
            run: () => {
                const random = new Words([0])
                throws(() => below(0, random), "below(0)")
                throws(() => below(-5, random), "below(-5)")
                throws(() => below(NaN, random), "below(NaN)")
                throws(() => below(MAX + 1, random), "below(2147483648)")
                throws(() => below(1 / 2, random), "below(0.5)")
            },
        },
    ]
}
