// The rules beside MQTT 5 as timelines: which version next, where a broker may send the device, and when sessions
// that die young mean a second device with the same client id.
import { type Case, equal } from "../cases"
import type { Verdict } from "../../src/core/verdict"
import { Rivals } from "../../src/mqtt/rivals"
import { parseServers, ServerMoves } from "../../src/mqtt/servers"
import { VersionChoice, type Level } from "../../src/mqtt/version"

/** Plays events: r refused, c closed before CONNACK, a CONNACK 0, s a session that lasted; the level after each. */
function versions(
    name: string,
    events: string,
    expected: string,
    only?: Level,
): Case {
    return {
        name: `version: ${name}`,
        run: () => {
            const choice = new VersionChoice(only)
            let levels = `${choice.level}`
            for (let i = 0; i < events.length; ++i) {
                const event = events.slice(i, i + 1)
                if (event === "r") {
                    // Marked where there is nothing else to try.
                    if (!choice.refused()) levels += "!"
                } else if (event === "c") choice.closed()
                else if (event === "a") choice.accepted()
                else choice.stable()
                levels += choice.level
            }
            equal(levels, expected, events)
        },
    }
}

function versionRows(): Case[] {
    return [
        versions("refused, so the other", "ra", "544"),
        versions("closed twice, so the other, once", "cccc", "55455"),
        versions(
            "a CONNACK in between starts the count anew",
            "cacac",
            "555555",
        ),
        versions(
            "the other becomes home after a session that lasted",
            "rascc",
            "544445",
        ),
        versions("and home again is what lasts", "rascrasr", "544445554"),
        versions(
            "not after a CONNACK alone: a close leads home",
            "rac",
            "5445",
        ),
        versions("refused both ways: nothing else to try", "rrrr", "54!5!4!5"),
        versions("a CONNACK forgets the refusals", "rrar", "54!554"),
        versions("only 5", "rccra", "5!555!55", 5),
        versions("only 3.1.1", "rccrs", "4!444!44", 4),
    ]
}

function verdict(evidence: "reset" | "refused" | "stalled"): Verdict {
    return { lane: "overload", evidence, reason: "connection closed" }
}

/** How sessions end: y young and closed, o after 50 min, h after an hour, a digit after 15 min and so many 10 s, n by the network, L after 2 h; what comes of each. */
function rivals(name: string, ends: string, expected: string): Case {
    return {
        name: `rivals: ${name}`,
        run: () => {
            const watch = new Rivals()
            let out = ""
            for (let i = 0; i < ends.length; ++i) {
                const end = ends.slice(i, i + 1)
                const upMs =
                    end === "L"
                        ? 7200000
                        : end === "y"
                          ? 1000
                          : end === "o"
                            ? 3000000 + i * 6000
                            : end === "h"
                              ? 3595000
                              : end === "n"
                                ? 3600000
                                : 900000 + parseInt(end) * 10000
                const is = verdict(end === "n" ? "refused" : "reset")
                const to = watch.ended(is, end === "y", upMs)
                const said = to.reason === "connection closed" ? "." : "?"
                out += to.lane === "slow" ? "S" : said
            }
            equal(out, expected, ends)
        },
    }
}

function rivalRows(): Case[] {
    return [
        rivals("three in a row are said, six are slow", "yyyyyyy", "..???SS"),
        rivals("one that lasted starts the count anew", "yyoyyoyy", "........"),
        rivals(
            "the network's endings don't count, nor forget",
            "yynyny",
            "...?.?",
        ),
        rivals("once slow, 50 min are no proof", "yyyyyyoooo", "..???SSSSS"),
        rivals(
            "a limit of an hour is: the third time",
            "yyyyyyhhhhyy",
            "..???SSS....",
        ),
        rivals("and one of 15 min: the fourth", "yyyyyy11111", "..???SSSS.."),
        rivals(
            "sessions 10 s apart, or with a young one among them, prove nothing",
            "yyyyyy1212hhyhh",
            "..???SSSSSSSSSS",
        ),
        rivals("two hours are", "yyyyyyoLyy", "..???SS..."),
    ]
}

/** Steps: a reference to follow (`!` before it: for good), `-` a failure, `+` a session that lasted; where it is after each. */
function moves(name: string, steps: string[], expected: string): Case {
    return {
        name: `servers: ${name}`,
        run: () => {
            const endpoint = { host: "home", port: 1883, tls: true }
            const allowed = parseServers("a:1884 b, [::1]:99", 1883) || []
            const servers = new ServerMoves(endpoint, allowed)
            let where = ""
            for (const step of steps) {
                if (step === "-") servers.failed()
                else if (step === "+") servers.lasted()
                else {
                    const forGood = step.slice(0, 1) === "!"
                    servers.follow(forGood ? step.slice(1) : step, forGood)
                }
                where += `${endpoint.host}:${endpoint.port} `
            }
            equal(where, expected)
            equal(endpoint.tls, true, "TLS")
        },
    }
}

function parsed(text: string, expected: string): Case {
    return {
        name: `servers: the setting "${text}"`,
        run: () => {
            const list = parseServers(text, 1883)
            let out = list === undefined ? "no" : ""
            for (const s of list || []) out += `${s.host}:${s.port} `
            equal(out, expected)
        },
    }
}

function serverRows(): Case[] {
    return [
        moves(
            "an allowed one is followed, with its own port",
            ["!a"],
            "a:1884 ",
        ),
        moves("the first allowed of a list", ["x y:1 b a"], "b:1883 "),
        moves(
            "at most four of a list are looked at",
            ["x y z w a"],
            "home:1883 ",
        ),
        moves(
            "the wrong port, a scheme, a path, nothing",
            ["a:1", "tls://a:1884", "a/b", ""],
            "home:1883 home:1883 home:1883 home:1883 ",
        ),
        moves("an IPv6 address", ["[::1]:99"], "[::1]:99 "),
        moves("a failure leads home", ["!a", "-"], "a:1884 home:1883 "),
        moves("for good: kept after a session", ["!a", "+"], "a:1884 a:1884 "),
        moves(
            "for once: home after a session",
            ["a", "+"],
            "a:1884 home:1883 ",
        ),
        moves(
            "where it is already is no move: home",
            ["!a", "!a"],
            "a:1884 home:1883 ",
        ),
        moves(
            "in a circle: three moves, then home, then three more",
            ["!a", "!b", "!home", "!a", "!a"],
            "a:1884 b:1883 home:1883 home:1883 a:1884 ",
        ),
        moves(
            "a session that lasted begins the count anew",
            ["!a", "!b", "+", "!a", "!b", "!home"],
            "a:1884 b:1883 b:1883 a:1884 b:1883 home:1883 ",
        ),
        parsed("", ""),
        parsed("a", "a:1883 "),
        parsed(" a:1, b  c:65535", "a:1 b:1883 c:65535 "),
        parsed("a:0", "no"),
        parsed("a:65536", "no"),
        parsed("a:x", "no"),
        parsed(":1", "no"),
        parsed("mqtt://a", "no"),
        parsed("[::1]", "[::1]:1883 "),
        parsed("[::1", "no"),
    ]
}

export function cases(): Case[] {
    const list = versionRows()
    for (const row of rivalRows()) list.push(row)
    for (const row of serverRows()) list.push(row)
    return list
}
