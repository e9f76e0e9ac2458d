// Why something failed or a wait began, as numbers, and their words for people. Numbers travel and
// are compared; only a program that logs carries the words. Pure.
//
// A reason that only its own part can name (a TLS fault, an MQTT 5 code, the broker's text) is text from the start.

/** A code of `Why` or, from parts that bring words of their own, text: ASCII, at most 40 characters. */
export type Reason = number | string

/** The codes. Those from `badLength` on are what no correct broker sends, with the packet's first byte in bits 8 to 15. */
export const enum Why {
    none,
    // what began a wait or ended a connection on our side
    start,
    networkUp,
    stopped,
    lent,
    socketBack,
    retryNow,
    networkLost,
    internalError,
    // the socket
    notOpened,
    writeFailed,
    refused,
    closedBeforeOpen,
    noTcp,
    noTls,
    noConnack,
    closedBeforeConnack,
    noPingresp,
    closed,
    noPuback,
    flooded,
    // CONNACK, MQTT 3.1.1: 1 to 5 in order
    unknownCode,
    badVersion,
    badClientId,
    unavailable,
    badCredentials,
    notAuthorised,
    // what breaks MQTT 3.1.1
    badLength,
    wrongType,
    badFlags,
    wrongSize,
    tooLarge,
    qos3,
    qos2,
    dupQos0,
    connackFlags,
    presentAndRefused,
    ackOfZero,
    subackOfZero,
    subackCode,
    noTopic,
    topicTooLong,
    emptyTopic,
    noPacketId,
    packetIdZero,
    badUtf8,
    nulInTopic,
    wildcard,
    secondConnack,
    notConnack,
    subackCount,
}

/** A reason in words. */
export function wordsOf(reason: Reason): string {
    if (typeof reason === "string") return reason
    const type = reason >> 12
    switch (reason & 255) {
        case Why.start:
            return "start"
        case Why.networkUp:
            return "network is up"
        case Why.stopped:
            return "stopped"
        case Why.lent:
            return "the socket is lent out"
        case Why.socketBack:
            return "socket is back"
        case Why.retryNow:
            return "asked to retry now"
        case Why.networkLost:
            return "network lost"
        case Why.internalError:
            return "internal error"
        case Why.notOpened:
            return "socket not opened"
        case Why.writeFailed:
            return "socket write failed"
        case Why.refused:
            return "connection refused"
        case Why.closedBeforeOpen:
            return "closed before it opened"
        case Why.noTcp:
            return "no TCP connection in time"
        case Why.noTls:
            return "no TLS connection in time"
        case Why.noConnack:
            return "no CONNACK in time"
        case Why.closedBeforeConnack:
            return "closed before CONNACK"
        case Why.noPingresp:
            return "no PINGRESP in time"
        case Why.closed:
            return "connection closed"
        case Why.noPuback:
            return "no PUBACK in time"
        case Why.flooded:
            return "input too fast"
        case Why.badVersion:
            return "unacceptable protocol version"
        case Why.badClientId:
            return "client identifier rejected"
        case Why.unavailable:
            return "server unavailable"
        case Why.badCredentials:
            return "bad user name or password"
        case Why.notAuthorised:
            return "not authorised"
        case Why.unknownCode:
            return "unknown return code"
        case Why.none:
            return ""
        default:
            return "MQTT-" + clauseOf(reason & 255, type, (reason >> 8) & 15)
    }
}

/** The violated statement, as in appendix B of MQTT 3.1.1 (4.8.0-1 for what has none of its own), and how. */
function clauseOf(why: number, type: number, flags: number): string {
    switch (why) {
        case Why.badLength:
            return "4.8.0-1 remaining length of more than 4 bytes"
        case Why.wrongType:
            return wrongType(type)
        case Why.badFlags:
            return `2.2.2-2 packet type ${type} with flags ${flags}, must be 0`
        case Why.wrongSize:
            return `4.8.0-1 packet type ${type} of a wrong size`
        case Why.tooLarge:
            return `4.8.0-1 packet type ${type} above the packet limit`
        case Why.qos3:
            return "3.3.1-4 PUBLISH with QoS 3"
        case Why.qos2:
            return "3.8.4-6 PUBLISH with QoS 2, above any QoS asked for"
        case Why.dupQos0:
            return "3.3.1-2 PUBLISH with DUP and QoS 0"
        case Why.connackFlags:
            return "4.8.0-1 CONNACK with reserved flags set"
        case Why.presentAndRefused:
            return "3.2.2-4 CONNACK with session present and a refusal"
        case Why.ackOfZero:
            return `2.3.1-6 packet type ${type} with packet identifier 0`
        case Why.subackOfZero:
            return `2.3.1-7 packet type ${type} with packet identifier 0`
        case Why.subackCode:
            return "3.9.3-2 SUBACK with an unknown return code"
        case Why.noTopic:
            return "3.3.2-1 PUBLISH without a topic"
        case Why.topicTooLong:
            return "3.3.2-1 topic longer than its packet"
        case Why.emptyTopic:
            return "4.7.3-1 empty topic"
        case Why.noPacketId:
            return "2.3.1-1 PUBLISH without a packet identifier"
        case Why.packetIdZero:
            return "2.3.1-1 PUBLISH with packet identifier 0"
        case Why.badUtf8:
            return "1.5.3-1 topic isn't well-formed UTF-8"
        case Why.nulInTopic:
            return "1.5.3-2 topic holds U+0000"
        case Why.wildcard:
            return "3.3.2-2 topic holds a wildcard"
        case Why.secondConnack:
            return "3.2.0-2 second CONNACK"
        case Why.notConnack:
            return "3.2.0-1 first was not CONNACK"
        case Why.subackCount:
            return "3.8.4-5 SUBACK for another number of filters"
        default:
            return "4.8.0-1 protocol violation"
    }
}

function wrongType(type: number): string {
    if (type === 0 || type === 15) return `4.8.0-1 reserved packet type ${type}`
    return type >= 5 && type <= 7
        ? `4.8.0-1 packet type ${type} belongs to QoS 2, which nothing here uses`
        : `4.8.0-1 packet type ${type} is for clients to send`
}
