// The generator: the same words in Node and on the device, and from every seed its own.
import { Random, seededRandom, Sfc32 } from "../../src/core/random"
import { Case, equal } from "../cases"

/** The next words as text, by which golden rows are compared. */
function words(random: Random, count: number): string {
    let out = ""
    for (let i = 0; i < count; ++i) out += (i ? " " : "") + random.next()
    return out
}

function golden(a: number, b: number, c: number, d: number, expected: string) {
    return {
        name: `sfc32 from ${a} ${b} ${c} ${d} gives its known words`,
        run: () => equal(words(new Sfc32(a, b, c, d), 6), expected),
    }
}

function bytes(first: number): Buffer {
    const out = Buffer.alloc(8)
    for (let i = 0; i < 8; ++i) out[i] = first + i
    return out
}

export function cases(): Case[] {
    return [
        golden(
            0,
            0,
            0,
            0,
            "2091952393 -86461272 1017427976 941733061 1584407498 1358064631",
        ),
        golden(
            0,
            0,
            0,
            1,
            "-86461272 1017427976 941733061 1584407498 1358064631 -236867422",
        ),
        golden(
            1,
            2,
            3,
            4,
            "-164894290 840851091 266533635 -1197471737 437887416 1334799434",
        ),
        golden(
            -1,
            -1,
            -1,
            -1,
            "1659126310 -1266590223 762330931 4668394 1815055718 -973278956",
        ),
        golden(
            0x7fffffff,
            1 << 31,
            0x12345678,
            -559038737,
            "15215400 -378902401 1284979493 2002591842 1133132774 -1386722280",
        ),
        {
            name: "entropy and device id give known words",
            run: () =>
                equal(
                    words(seededRandom(bytes(1), "0123456789abcdef"), 6),
                    "-2117517406 -1734933464 889885874 -983660401 1120486499 -1397688647",
                ),
        },
        {
            name: "the seed is entropy, then id, each read as written",
            run: () =>
                equal(
                    words(seededRandom(bytes(1), "0123456789abcdef"), 4),
                    words(
                        new Sfc32(
                            0x01020304 ^ 0x5bd1e995,
                            0x05060708,
                            0x01234567,
                            -1985229329,
                        ),
                        4,
                    ),
                ),
        },
        {
            name: "simulated devices 0 and 1 are not one step apart",
            run: () => {
                const dead = Buffer.alloc(8)
                const zero = seededRandom(dead, "0000000000000000")
                const one = seededRandom(dead, "0000000000000001")
                zero.next()
                equal(words(zero, 1) === words(one, 1), false, "same word")
            },
        },
        {
            name: "an id in capitals is the same id",
            run: () =>
                equal(
                    words(seededRandom(bytes(9), "0123456789ABCDEF"), 4),
                    words(seededRandom(bytes(9), "0123456789abcdef"), 4),
                ),
        },
        {
            name: "two devices whose hardware entropy is dead diverge by id",
            run: () => {
                const dead = Buffer.alloc(8)
                const one = words(seededRandom(dead, "a1b2c3d4e5f60718"), 1)
                const two = words(seededRandom(dead, "a1b2c3d4e5f60719"), 1)
                equal(one === two, false, "same first word")
            },
        },
        {
            name: "a device that reboots diverges from itself by entropy",
            run: () => {
                const one = words(seededRandom(bytes(1), "a1b2c3d4e5f60718"), 1)
                const two = words(seededRandom(bytes(2), "a1b2c3d4e5f60718"), 1)
                equal(one === two, false, "same first word")
            },
        },
        {
            name: "no entropy and no id still make a generator",
            run: () =>
                equal(
                    words(seededRandom(Buffer.alloc(0), ""), 3),
                    words(new Sfc32(0x5bd1e995, 0, 0, 0), 3),
                ),
        },
        {
            name: "words past the eighth byte count too",
            run: () => {
                const nine = Buffer.alloc(9)
                nine[8] = 1
                equal(
                    words(seededRandom(nine, ""), 1) ===
                        words(seededRandom(Buffer.alloc(8), ""), 1),
                    false,
                    "same first word",
                )
            },
        },
    ]
}
