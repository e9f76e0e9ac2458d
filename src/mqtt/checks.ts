// What can't be sent, said in words: a RangeError that names the option, its value and its range. Rule of the
// room: pure. The packets of encode.ts are made without these checks, so a program that is sure of what it
// sends carries none of them.
import { mustBe } from "../core/int"
import { sizeOf, textFault } from "./bytes"
import type { ConnectOptions } from "./encode"

/** A field of a packet: `min` to 65,535 bytes and, when it is text, well-formed and without U+0000 (1.5.3). */
export function checkField(what: string, field: string | Buffer, min: number) {
    mustBe(`${what} length in bytes`, sizeOf(field), min, 65535)
    if (typeof field !== "string") return
    const fault = textFault(field)
    if (fault !== undefined) throw new RangeError(`${what} ${fault}`)
}

/**
 * CONNECT. Throws RangeError for what the options' comments forbid, for an ill-formed
 * string or one with U+0000, and for a will with QoS above 2 or an empty topic.
 */
export function checkConnect(options: ConnectOptions) {
    const clientId = options.clientId
    const cleanSession = options.cleanSession
    const will = options.will
    const username = options.username
    const password = options.password
    mustBe("keepAliveSeconds", options.keepAliveSeconds, 0, 65535)
    checkField("clientId", clientId, cleanSession ? 0 : 1)
    if (will) {
        mustBe("will.qos", will.qos, 0, 2)
        checkField("will.topic", will.topic, 1)
        mustBe("will.payload length in bytes", sizeOf(will.payload), 0, 65535)
    }
    if (username !== undefined) checkField("username", username, 0)
    if (password !== undefined) {
        if (username === undefined)
            throw new RangeError("password needs a username [MQTT-3.1.2-22]")
        mustBe("password length in bytes", sizeOf(password), 0, 65535)
    }
}
