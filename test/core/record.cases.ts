// The restart record as text: golden texts, older and later versions, and everything that is no record.
import {
    emptyRecord,
    formatRecord,
    hash31,
    readRecord,
    RECORD_KEY,
    RECORD_MAX_BYTES,
    type RestartRecord,
} from "../../src/core/record"
import { type Case, equal } from "../cases"

/** Every field with a value of its own. */
function full(): RestartRecord {
    return {
        buildHash: 123456,
        upS: 86400,
        trips: 2,
        state: "trial",
        leftS: 0,
        intent: "restart",
        agesS: [0, 5, 3600],
        unknownResets: 7,
        watchdogs: 3,
        debtS: 7100,
    }
}

/** Every field at its largest, and 20 starts. */
function largest(): RestartRecord {
    const r = full()
    r.buildHash = 2147483647
    r.upS = 4294967
    r.trips = 99
    r.leftS = 3600
    r.intent = "command"
    r.agesS = []
    for (let i = 0; i < 20; ++i) r.agesS.push(3581 + i)
    r.unknownResets = 20
    r.watchdogs = 9
    r.debtS = 454500
    return r
}

const FULL = "[2,123456,86400,2,2,0,1,[0,5,3600],7,3,7100,332901180]"

function golden(name: string, make: () => RestartRecord, text: string): Case {
    return {
        name,
        run: () => {
            equal(formatRecord(make()), text)
            const { record, problem } = readRecord(text)
            equal(problem, undefined, "problem")
            equal(formatRecord(record), text, "read and written again")
        },
    }
}

function withSum(body: string): string {
    return `${body}${hash31(body)}]`
}

function isTripped(text: string, problem: string) {
    const read = readRecord(text)
    equal(read.problem, problem, text)
    equal(read.record.trips, 1, text)
    equal(read.record.state, "run", text)
    equal(read.record.agesS.length, 0, text)
}

export function cases(): Case[] {
    return [
        golden(
            "an empty record's text",
            emptyRecord,
            "[2,0,0,0,0,0,0,[],0,0,0,846317629]",
        ),
        golden("a full record's text", full, FULL),
        golden(
            "the longest record's text is 159 bytes",
            largest,
            "[2,2147483647,4294967,99,2,3600,4,[3581,3582,3583,3584,3585,3586,3587,3588,3589,3590,3591,3592,3593,3594,3595,3596,3597,3598,3599,3600],20,9,454500,2072423990]",
        ),
        {
            name: "key and text fit the runtime's settings",
            run: () => {
                equal(RECORD_KEY.length <= 13, true, "key")
                equal(RECORD_MAX_BYTES, 200)
                equal(formatRecord(largest()).length, 159)
            },
        },
        {
            name: "each state and each intent has its own number",
            run: () => {
                const seen: string[] = []
                for (const state of ["run", "held", "trial"])
                    for (const intent of [
                        "none",
                        "restart",
                        "watchdog",
                        "planned",
                        "command",
                    ]) {
                        const r = emptyRecord()
                        r.state = state as RestartRecord["state"]
                        r.intent = intent as RestartRecord["intent"]
                        const text = formatRecord(r)
                        equal(seen.indexOf(text), -1, text)
                        seen.push(text)
                        const back = readRecord(text).record
                        equal(back.state, state)
                        equal(back.intent, intent)
                    }
            },
        },
        {
            name: "what the fields mean stays: each lands where it was",
            run: () => {
                const { record } = readRecord(FULL)
                equal(record.buildHash, 123456)
                equal(record.upS, 86400)
                equal(record.trips, 2)
                equal(record.state, "trial")
                equal(record.leftS, 0)
                equal(record.intent, "restart")
                equal(record.agesS.join(","), "0,5,3600")
                equal(record.unknownResets, 7)
                equal(record.watchdogs, 3)
                equal(record.debtS, 7100)
            },
        },
        {
            name: "a record of version 1 migrates: what it did not have is zero",
            run: () => {
                const { record, problem } = readRecord(
                    "[1,123456,86400,2,2,0,1,[0,5,3600],2122042430]",
                )
                equal(problem, undefined, "problem")
                const expected = full()
                expected.unknownResets = 0
                expected.watchdogs = 0
                expected.debtS = 0
                equal(formatRecord(record), formatRecord(expected))
            },
        },
        {
            name: "nothing stored is a new device",
            run: () => {
                const { record, problem } = readRecord(undefined)
                equal(problem, "missing")
                equal(formatRecord(record), formatRecord(emptyRecord()))
            },
        },
        {
            name: "garbage, NaN, a negative, a string: tripped once, and said so",
            run: () => {
                for (const text of [
                    ...["", " ", "NaN", "Infinity", "-1", "0", "5", "1e400"],
                    ...["null", "true", '"5"', '"[2]"', "{}", '{"v":2}', "[]"],
                    ...["[", "]", ",", "[,]", "[2]", "[2,", "[null]", "[[]]"],
                    ...["[NaN]", "[-1]", "\u0000\u0001", "grün", "undefined"],
                ])
                    isTripped(text, "unreadable")
            },
        },
        {
            name: "huge or deeply nested: tripped once, without parsing it",
            run: () => {
                let deep = ""
                for (let i = 0; i < 200; ++i) deep += "["
                isTripped(deep, "unreadable")
                isTripped(deep + "1", "unreadable")
                let nested = ""
                for (let i = 0; i < 60; ++i) nested += "[1,"
                isTripped(nested, "unreadable")
                isTripped(
                    "[2,0,0,0,0,0,0,[],0,0,0,846317629]" + deep,
                    "unreadable",
                )
            },
        },
        {
            name: "a record cut anywhere is not one",
            run: () => {
                for (let i = 0; i < FULL.length; ++i)
                    isTripped(FULL.slice(0, i), "unreadable")
            },
        },
        {
            name: "a record with a digit changed is not one",
            run: () => {
                // Every third place; the test beside this table does all.
                for (let i = 1; i < FULL.length; i += 3) {
                    const code = FULL.charCodeAt(i)
                    if (code < 0x30 || code > 0x39) continue
                    const other = code === 0x31 ? "3" : "1"
                    isTripped(
                        FULL.slice(0, i) + other + FULL.slice(i + 1),
                        "unreadable",
                    )
                }
            },
        },
        {
            name: "the same numbers written otherwise are not a record",
            run: () => {
                const sum = "846317629]"
                for (const text of [
                    " [2,0,0,0,0,0,0,[],0,0,0," + sum,
                    "[2,0,0,0,0,0,0,[],0,0,0, " + sum,
                    "[2,0,0,0,0,0,0,[],0,0,0,0" + sum,
                    "[2,0,0,0,0,0,0,[],0,0,00," + sum,
                    "[2,0,0,0,0,0,0,[],0,0,0,-" + sum,
                ])
                    isTripped(text, "unreadable")
            },
        },
        {
            name: "a right checksum does not excuse a field out of its range",
            run: () => {
                for (const body of [
                    "[2,",
                    "[[2],1,0,0,0,0,0,0,0,0,0,",
                    "[2,2147483648,0,0,0,0,0,[],0,0,0,",
                    "[2,1,4294968,0,0,0,0,[],0,0,0,",
                    "[2,1,0,100,0,0,0,[],0,0,0,",
                    "[2,1,0,0,3,0,0,[],0,0,0,",
                    "[2,1,0,0,0,3601,0,[],0,0,0,",
                    "[2,1,0,0,0,0,5,[],0,0,0,",
                    "[2,1,0,0,0,0,0,[3,2],0,0,0,",
                    "[2,1,0,0,0,0,0,[3601],0,0,0,",
                    "[2,1,0,0,0,0,0,5,0,0,0,",
                    "[2,1,0,0,0,0,0,[],21,0,0,",
                    "[2,1,0,0,0,0,0,[],0,10,0,",
                    "[2,1,0,0,0,0,0,[],0,0,454501,",
                    "[2,1,0,0,0,0,0,[],0,0,",
                    "[2,1,0,0,0,0,0,[],0,0,0,0,",
                    "[1,1,0,0,0,0,0,[],0,0,",
                ])
                    isTripped(withSum(body), "unreadable")
            },
        },
        {
            name: "a sound record of a version that is not known says so",
            run: () => {
                isTripped("[3,1,2,3,1,2,3,262478556]", "foreign version")
                isTripped("[0,1,2,3,1,2,3,417222636]", "foreign version")
                isTripped(withSum("[2147483647,1,[2,3],4,"), "foreign version")
                isTripped("[3,1,2,3,1,2,3,262478557]", "unreadable")
            },
        },
        {
            name: "hash31 of known texts",
            run: () => {
                equal(hash31(""), 0)
                equal(hash31("a"), 1244566594)
                equal(hash31("1.0.0"), 2122689161)
                equal(hash31("1122334455667788"), 1021536124)
            },
        },
    ]
}
