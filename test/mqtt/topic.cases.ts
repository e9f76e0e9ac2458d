// Topic names and filters (MQTT 3.1.1, section 4.7): the field case S8, the examples of the spec, and more.
import { type Case, equal } from "../cases"
import { checkTopicFilter, checkTopicName, matches } from "../../src/mqtt/topic"

function yes(filter: string, topic: string) {
    equal(matches(filter, topic), true, `"${filter}" ~ "${topic}"`)
}

function no(filter: string, topic: string) {
    equal(matches(filter, topic), false, `"${filter}" ~ "${topic}"`)
}

function fault(problem: string | undefined, expected: string) {
    if (problem === undefined || problem.indexOf(expected) < 0)
        throw new Error(`got ${problem}, expected ${expected}`)
}

export function cases(): Case[] {
    return [
        {
            name: "S8: # includes its parent, and only whole levels",
            run: () => {
                yes("s/#", "s")
                no("foo/#", "foobar")
            },
        },
        {
            name: "S8: + stands for one level, an empty one too",
            run: () => {
                yes("a/+/c", "a/x/c")
                no("+", "/x")
                yes("a/+", "a/")
            },
        },
        {
            name: "S8: a plain filter is no prefix",
            run: () => no("a/b", "a/bc"),
        },
        {
            name: "S8: a leading wildcard does not see $SYS",
            run: () => {
                no("#", "$SYS/x")
                no("+/x", "$SYS/x")
            },
        },
        {
            name: "$SYS is seen by a filter that names it",
            run: () => {
                yes("$SYS/#", "$SYS/x")
                yes("$SYS/#", "$SYS")
                yes("$SYS/monitor/+", "$SYS/monitor/Clients")
                yes("$SYS/x", "$SYS/x")
                no("+/monitor/Clients", "$SYS/monitor/Clients")
                no("+", "$SYS")
            },
        },
        {
            name: "a $ that is not the first character is ordinary",
            run: () => {
                yes("#", "a/$SYS")
                yes("+/$x", "a/$x")
                yes("+/+", "a/$x")
            },
        },
        {
            name: "# at the end sees every depth",
            run: () => {
                yes("sport/tennis/player1/#", "sport/tennis/player1")
                yes("sport/tennis/player1/#", "sport/tennis/player1/ranking")
                yes("sport/#", "sport/tennis/player1/score/wimbledon")
                yes("#", "a")
                yes("#", "/a/b")
                yes("#", "/")
                no("sport/tennis/#", "sport")
                no("a/#", "b/a")
            },
        },
        {
            name: "/# sees only what starts with /",
            run: () => {
                yes("/#", "/")
                yes("/#", "/a/b")
                no("/#", "a")
            },
        },
        {
            name: "+ sees exactly one level",
            run: () => {
                yes("sport/tennis/+", "sport/tennis/player1")
                no("sport/tennis/+", "sport/tennis/player1/ranking")
                no("sport/+", "sport")
                yes("sport/+", "sport/")
                yes("+", "finance")
                no("+", "finance/x")
                yes("+/+", "/finance")
                yes("/+", "/finance")
                no("+", "/finance")
            },
        },
        {
            name: "+ in the middle, several of them, empty levels",
            run: () => {
                yes("+/tennis/+", "sport/tennis/player1")
                yes("a/+/+/d", "a/b/c/d")
                no("a/+/+/d", "a/b/d")
                no("a/+/c", "a/b/x/c")
                no("a/+/c", "a/b")
                no("a/+/c", "a/b/")
                yes("a/+/c", "a//c")
                yes("+/+/+", "//")
                no("+/+", "//")
                yes("a//+", "a//b")
                no("a//+", "a/b")
            },
        },
        {
            name: "+ and # together",
            run: () => {
                yes("+/#", "a")
                yes("+/#", "a/b/c")
                yes("+/#", "/")
                no("+/#", "$SYS/a")
                yes("a/+/#", "a/b")
                yes("a/+/#", "a/b/c/d")
                no("a/+/#", "a")
                yes("a/+/#", "a/")
            },
        },
        {
            name: "a shorter or longer topic does not match a plain filter",
            run: () => {
                yes("a/b", "a/b")
                no("a/b", "a")
                no("a/b", "a/b/")
                no("a/b/", "a/b")
                no("a", "ab")
                no("ab", "a")
                no("/a", "a")
                no("A", "a")
                no("a/b/c", "a/b/d")
            },
        },
        {
            name: "the topic may end anywhere in the filter",
            run: () => {
                no("ab/#", "a")
                no("a/b/#", "a/")
                no("a/", "a")
            },
        },
        {
            name: "characters beyond ASCII match by character",
            run: () => {
                yes("ü/+/€", "ü/😀/€")
                no("ü/+/€", "ü/😀/£")
                yes("ü/#", "ü")
                yes("😀/+", "😀/ü")
                no("😀", "😁")
                no("ü", "u")
                no("éé/+", "é/x")
            },
        },
        {
            name: "an empty filter or topic matches nothing",
            run: () => {
                no("", "a")
                no("#", "")
                no("+", "")
            },
        },
        {
            name: "ordinary names are allowed: spaces, slashes, $, beyond ASCII",
            run: () => {
                equal(checkTopicName("a"), undefined)
                equal(checkTopicName("/"), undefined)
                equal(checkTopicName("a//b/ c/$d/ü€😀"), undefined)
                equal(checkTopicName("$SYS/x"), undefined)
            },
        },
        {
            name: "a name that is empty, has a wildcard or U+0000 is refused",
            run: () => {
                fault(checkTopicName(""), "empty [MQTT-4.7.3-1]")
                fault(checkTopicName("a/+"), "[MQTT-3.3.2-2]")
                fault(checkTopicName("a/#"), "[MQTT-3.3.2-2]")
                fault(checkTopicName("#"), "[MQTT-3.3.2-2]")
                fault(checkTopicName("a+b"), "[MQTT-3.3.2-2]")
                fault(checkTopicName("a\u0000b"), "[MQTT-1.5.3-2]")
                fault(checkTopicName("ü\u0000"), "[MQTT-1.5.3-2]")
            },
        },
        {
            name: "the filters of the spec are allowed",
            run: () => {
                equal(checkTopicFilter("#"), undefined)
                equal(checkTopicFilter("+"), undefined)
                equal(checkTopicFilter("/#"), undefined)
                equal(checkTopicFilter("sport/tennis/#"), undefined)
                equal(checkTopicFilter("+/tennis/#"), undefined)
                equal(checkTopicFilter("sport/+/player1"), undefined)
                equal(checkTopicFilter("+/+/+"), undefined)
                equal(checkTopicFilter("/+"), undefined)
                equal(checkTopicFilter("a/"), undefined)
                equal(checkTopicFilter("ü/+/€/#"), undefined)
            },
        },
        {
            name: "# not last or not alone in its level is refused",
            run: () => {
                fault(checkTopicFilter("sport/tennis#"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("sport/tennis/#/x"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("#/"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("##"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("a/##"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("a#"), "[MQTT-4.7.1-2]")
                fault(checkTopicFilter("+#"), "[MQTT-4.7.1-2]")
            },
        },
        {
            name: "+ not alone in its level is refused",
            run: () => {
                fault(checkTopicFilter("sport+"), "[MQTT-4.7.1-3]")
                fault(checkTopicFilter("+a"), "[MQTT-4.7.1-3]")
                fault(checkTopicFilter("a/+b/c"), "[MQTT-4.7.1-3]")
                fault(checkTopicFilter("++"), "[MQTT-4.7.1-3]")
                fault(checkTopicFilter("+/x+"), "[MQTT-4.7.1-3]")
                fault(checkTopicFilter("+/a+/#"), "[MQTT-4.7.1-3]")
            },
        },
        {
            name: "an empty filter and one with U+0000 are refused",
            run: () => {
                fault(checkTopicFilter(""), "empty [MQTT-4.7.3-1]")
                fault(checkTopicFilter("a/\u0000/#"), "[MQTT-1.5.3-2]")
            },
        },
    ]
}
