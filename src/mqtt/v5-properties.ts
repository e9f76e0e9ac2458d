// The properties of MQTT 5 (2.2.2): which there are, where each may stand, and their bytes, both ways.
// Rule of the room: pure. Of more than MAX_PROPERTIES in one packet the rest is skipped unread, because
// the VM ends a program that works too long without a pause.
import { MAX_INT, mustBe } from "../core/int"
import { copyOf, readText, sizeOf, textFault } from "./bytes"

/** Property identifiers (2.2.2.2). */
export const enum PropertyId {
    /** 0 or 1: the payload is UTF-8. */
    payloadFormat = 1,
    /** Seconds until the message is of no use any more. */
    messageExpiry = 2,
    contentType = 3,
    responseTopic = 8,
    correlationData = 9,
    /** 1..268,435,455. */
    subscriptionId = 11,
    /** Seconds the session outlives its connection; 0xffffffff: for ever. */
    sessionExpiry = 17,
    assignedClientId = 18,
    serverKeepAlive = 19,
    authMethod = 21,
    authData = 22,
    requestProblem = 23,
    /** Seconds. */
    willDelay = 24,
    requestResponse = 25,
    responseInfo = 26,
    serverReference = 28,
    reasonString = 31,
    receiveMaximum = 33,
    topicAliasMaximum = 34,
    topicAlias = 35,
    maximumQos = 36,
    retainAvailable = 37,
    userProperty = 38,
    maximumPacketSize = 39,
    wildcardAvailable = 40,
    subscriptionIdAvailable = 41,
    sharedAvailable = 42,
}

/** What properties belong to: a packet type (2.1.2), or the will inside CONNECT. */
export const enum Owner {
    will = 0,
    connect = 1,
    connack = 2,
    publish = 3,
    puback = 4,
    subscribe = 8,
    suback = 9,
    unsubscribe = 10,
    unsuback = 11,
    disconnect = 14,
}

/** One property. */
export interface Property {
    id: PropertyId
    value: number | string | Buffer
    /** A user property's name. */
    name?: string
}

/** What is wrong with a packet, with the reason code for DISCONNECT. */
export interface Fault {
    /** As in appendix B of the standard, without "MQTT-". */
    clause: string
    reason: string
    code: number
}

/** Properties read of one packet. */
export const MAX_PROPERTIES = 32

/** Reason codes for what the other side gets wrong (4.13). */
export const MALFORMED = 0x81
export const PROTOCOL_ERROR = 0x82

/** How a value is written. */
const enum Form {
    /** One byte, 0 or 1. */
    flag = 0,
    u16 = 1,
    u32 = 2,
    varint = 3,
    text = 4,
    binary = 5,
    pair = 6,
}

/** The bits of a Form in a shape; those of At begin beyond. */
const FORM_MASK = 7
const FORM_BITS = 3

const enum At {
    will = 1 << 3,
    connect = 1 << 4,
    connack = 1 << 5,
    publish = 1 << 6,
    acks = 0xf << 7, // PUBACK to PUBCOMP
    subscribe = 1 << 11,
    suback = 1 << 12,
    unsubscribe = 1 << 13,
    unsuback = 1 << 14,
    disconnect = 1 << 17,
    auth = 1 << 18,
}

/** How a property is written and whose it may be; 0 for one that doesn't exist (table 2-4). */
function shape(id: number): number {
    switch (id) {
        case PropertyId.payloadFormat:
            return Form.flag | At.publish | At.will
        case PropertyId.messageExpiry:
            return Form.u32 | At.publish | At.will
        case PropertyId.contentType:
        case PropertyId.responseTopic:
            return Form.text | At.publish | At.will
        case PropertyId.correlationData:
            return Form.binary | At.publish | At.will
        case PropertyId.subscriptionId:
            return Form.varint | At.publish | At.subscribe
        case PropertyId.sessionExpiry:
            return Form.u32 | At.connect | At.connack | At.disconnect
        case PropertyId.assignedClientId:
        case PropertyId.responseInfo:
            return Form.text | At.connack
        case PropertyId.serverKeepAlive:
            return Form.u16 | At.connack
        case PropertyId.authMethod:
            return Form.text | At.connect | At.connack | At.auth
        case PropertyId.authData:
            return Form.binary | At.connect | At.connack | At.auth
        case PropertyId.requestProblem:
        case PropertyId.requestResponse:
            return Form.flag | At.connect
        case PropertyId.willDelay:
            return Form.u32 | At.will
        case PropertyId.serverReference:
            return Form.text | At.connack | At.disconnect
        case PropertyId.reasonString:
            return (
                Form.text |
                (At.connack | At.acks | At.suback) |
                (At.unsuback | At.disconnect | At.auth)
            )
        case PropertyId.receiveMaximum:
        case PropertyId.topicAliasMaximum:
            return Form.u16 | At.connect | At.connack
        case PropertyId.topicAlias:
            return Form.u16 | At.publish
        case PropertyId.userProperty:
            return (
                Form.pair |
                (At.will | At.connect | At.connack | At.publish | At.acks) |
                (At.subscribe | At.suback | At.unsubscribe | At.unsuback) |
                (At.disconnect | At.auth)
            )
        case PropertyId.maximumPacketSize:
            return Form.u32 | At.connect | At.connack
        case PropertyId.maximumQos:
        case PropertyId.retainAvailable:
        case PropertyId.wildcardAvailable:
        case PropertyId.subscriptionIdAvailable:
        case PropertyId.sharedAvailable:
            return Form.flag | At.connack
        default:
            return 0
    }
}

/** Whether 0 is forbidden (3.1.2.11.3, 3.1.2.11.4, 3.3.2.3.8; [MQTT-3.3.2-8]). */
function notZero(id: number): boolean {
    return (
        id === PropertyId.receiveMaximum ||
        id === PropertyId.maximumPacketSize ||
        id === PropertyId.subscriptionId ||
        id === PropertyId.topicAlias
    )
}

function belongsTo(kind: number, owner: Owner): boolean {
    return ((kind >> FORM_BITS) & (1 << owner)) !== 0
}

/** The value of the first property with this id, or undefined. */
export function propertyOf(
    properties: Property[] | undefined,
    id: PropertyId,
): number | string | Buffer | undefined {
    if (properties !== undefined)
        for (const p of properties) if (p.id === id) return p.value
    return undefined
}

/** A numeric property, or what counts when it is absent. */
export function numberOf(
    properties: Property[],
    id: PropertyId,
    otherwise: number,
): number {
    const value = propertyOf(properties, id)
    return value === undefined ? otherwise : (value as number)
}

/** Where the value of the first property with this id stands in encoded ones, or -1. Any bytes may be asked about. */
export function valueAt(encoded: Buffer, id: PropertyId): number {
    const length = encoded.length
    let at = 0
    while (at < length) {
        const own = encoded[at++]
        if (own === id) return at
        const kind = shape(own)
        if (kind === 0) return -1
        const form = kind & FORM_MASK
        if (form === Form.varint) while (at < length && encoded[at] > 127) at++
        at += form < Form.text ? valueBytes(form, 0) : fieldBytes(encoded, at)
        if (form === Form.pair) at += fieldBytes(encoded, at)
    }
    return -1
}

/** A field's two length bytes and the field (1.5.4); beyond the end there is nothing. */
export function fieldBytes(encoded: Buffer, at: number): number {
    if (at + 2 > encoded.length) return 2
    return 2 + ((encoded[at] << 8) | encoded[at + 1])
}

// ---- out ----

/** Bytes of a variable byte integer (1.5.5). */
export function varintBytes(value: number): number {
    if (value < 128) return 1
    if (value < 16384) return 2
    return value < 2097152 ? 3 : 4
}

/** Writes a variable byte integer; returns where the next field goes. */
export function putVarint(target: Buffer, at: number, value: number): number {
    let rest = value
    while (rest > 127) {
        target[at++] = (rest & 127) | 128
        rest = rest >> 7
    }
    target[at++] = rest
    return at
}

function valueBytes(form: number, value: number | string | Buffer): number {
    switch (form) {
        case Form.flag:
            return 1
        case Form.u16:
            return 2
        case Form.u32:
            return 4
        case Form.varint:
            return varintBytes(value as number)
        default:
            return 2 + sizeOf(value as string | Buffer)
    }
}

/** Throws unless a property can stand where it is wanted and has a possible value. */
function check(owner: Owner, p: Property) {
    const id = p.id
    const value = p.value
    const name = p.name
    const kind = shape(id)
    const form = kind & FORM_MASK
    const what = `property ${id}`
    if (!belongsTo(kind, owner))
        throw new RangeError(`${what} is not for packet type ${owner}`)
    if (form < Form.text) {
        const least = notZero(id) ? 1 : 0
        const n = value as number
        // Whole, and beyond the 31 bits that mustBe takes; 2^32 itself would be a float literal.
        if (form === Form.u32) {
            if (!(
                n >= least &&
                n - MAX_INT - 1 <= MAX_INT &&
                Math.floor(n) === n
            ))
                throw new RangeError(
                    `${what} is ${n}: must be ${least}..2^32-1`,
                )
            return
        }
        let most = 268435455
        if (form === Form.flag) most = 1
        else if (form === Form.u16) most = 65535
        mustBe(what, n, least, most)
        return
    }
    const isText = typeof value === "string"
    if (form === Form.binary ? !isText && !(value instanceof Buffer) : !isText)
        throw new RangeError(`${what} is ${value}: must be text`)
    mustBe(`${what} length in bytes`, sizeOf(value as string), 0, 65535)
    if (form === Form.binary) return
    if (form === Form.pair && typeof name !== "string")
        throw new RangeError(`${what} has the name ${name}: must be text`)
    const fault = textFault(value as string)
    const faultOfName = form === Form.pair ? textFault(name as string) : fault
    if (fault !== undefined) throw new RangeError(`${what} ${fault}`)
    if (faultOfName !== undefined)
        throw new RangeError(`name of ${what} ${faultOfName}`)
}

/**
 * Properties as bytes, without their length, for `owner`.
 * @throws RangeError for one that can't stand there, that is there twice, or has no possible value
 */
export function encodeProperties(owner: Owner, list: Property[]): Buffer {
    let bytes = 0
    for (let i = 0; i < list.length; ++i) {
        const p = list[i]
        check(owner, p)
        if (p.id !== PropertyId.userProperty)
            for (let k = 0; k < i; ++k)
                if (list[k].id === p.id)
                    throw new RangeError(`property ${p.id} is there twice`)
        const form = shape(p.id) & FORM_MASK
        bytes += 1 + valueBytes(form, p.value)
        if (form === Form.pair) bytes += valueBytes(form, p.name as string)
    }
    const target = Buffer.alloc(bytes)
    let at = 0
    for (const p of list) {
        target[at++] = p.id
        const form = shape(p.id) & FORM_MASK
        if (form === Form.pair) at = putText(target, at, p.name as string)
        at = putValue(target, at, form, p.value)
    }
    return target
}

function putValue(
    target: Buffer,
    at: number,
    form: number,
    value: number | string | Buffer,
): number {
    switch (form) {
        case Form.flag:
            target[at] = value as number
            return at + 1
        case Form.u16:
            return putU16(target, at, value as number)
        case Form.u32:
            return putU32(target, at, value as number)
        case Form.varint:
            return putVarint(target, at, value as number)
        default:
            return putText(target, at, value as string | Buffer)
    }
}

function putU16(target: Buffer, at: number, value: number): number {
    target[at] = (value >> 8) & 255
    target[at + 1] = value & 255
    return at + 2
}

export function putU32(target: Buffer, at: number, value: number): number {
    const high = Math.floor(value / 0x10000)
    return putU16(target, putU16(target, at, high), value - high * 0x10000)
}

function putText(target: Buffer, at: number, value: string | Buffer): number {
    const bytes = sizeOf(value)
    target.blitAt(at + 2, value, 0, bytes)
    return putU16(target, at, bytes) + bytes
}

// ---- in ----

function malformed(clause: string, reason: string): Fault {
    return { clause, reason, code: MALFORMED }
}

/** For what the standard calls a protocol error without a statement of its own. */
function protocolError(reason: string): Fault {
    return { clause: "4.13.1-1", reason, code: PROTOCOL_ERROR }
}

/** Reads the fields of a packet one after the other; nothing is read once there is a fault. */
export class FieldReader {
    fault: Fault | undefined = undefined
    private source: Buffer | undefined = undefined
    at = 0
    private end = 0

    /** Starts with `bytes` bytes at `source[at]`. */
    begin(source: Buffer, at: number, bytes: number) {
        this.source = source
        this.at = at
        this.end = at + bytes
        this.fault = undefined
    }

    /** Bytes that are left. */
    left(): number {
        return this.fault === undefined ? this.end - this.at : 0
    }

    /** Notes what is wrong; the first counts. */
    fail(fault: Fault) {
        if (this.fault === undefined) this.fault = fault
        this.at = this.end
    }

    /** Whether so many bytes are left; if not, that is the fault. */
    private has(bytes: number): boolean {
        if (this.fault === undefined && this.end - this.at >= bytes) return true
        this.fail(malformed("4.13.1-1", "packet ends inside a field"))
        return false
    }

    u8(): number {
        return this.has(1) ? (this.source as Buffer)[this.at++] : 0
    }

    u16(): number {
        if (!this.has(2)) return 0
        const source = this.source as Buffer
        const at = this.at
        this.at = at + 2
        return (source[at] << 8) | source[at + 1]
    }

    u32(): number {
        const high = this.u16()
        return high * 0x10000 + this.u16()
    }

    varint(): number {
        let value = 0
        for (let shift = 0; shift <= 21; shift += 7) {
            const b = this.u8()
            value |= (b & 127) << shift
            if (b >= 128) continue
            if (b === 0 && shift > 0)
                this.fail(malformed("1.5.5-1", "integer longer than needed"))
            return value
        }
        this.fail(malformed("1.5.5-1", "integer of more than 4 bytes"))
        return 0
    }

    text(): string {
        const bytes = this.u16()
        if (!this.has(bytes)) return ""
        const text = readText(this.source as Buffer, this.at, bytes)
        this.at += bytes
        if (text === undefined)
            this.fail(malformed("1.5.4-1", "text isn't well-formed UTF-8"))
        else if (text.indexOf("\u0000") >= 0)
            this.fail(malformed("1.5.4-2", "text holds U+0000"))
        else return text
        return ""
    }

    /** The next `bytes` bytes, copied. */
    bytes(bytes: number): Buffer {
        if (!this.has(bytes)) return Buffer.alloc(0)
        const at = this.at
        this.at = at + bytes
        return copyOf(this.source as Buffer, at, bytes)
    }

    /**
     * A property section with its length; undefined when it is empty. Text is checked, each
     * property's place and value too, and that none comes twice that must not.
     */
    properties(owner: Owner): Property[] | undefined {
        const bytes = this.varint()
        if (bytes === 0 || !this.has(bytes)) return undefined
        const outerEnd = this.end
        const end = this.at + bytes
        this.end = end
        const list: Property[] = []
        while (this.left() > 0 && list.length < MAX_PROPERTIES)
            this.property(owner, list)
        if (this.fault !== undefined) return undefined
        this.at = end
        this.end = outerEnd
        return list
    }

    private property(owner: Owner, list: Property[]) {
        const id = this.u8()
        const kind = shape(id)
        if (kind === 0)
            return this.fail(malformed("4.13.1-1", `unknown property ${id}`))
        if (!belongsTo(kind, owner)) return this.fail(misplaced(owner, id))
        if (id !== PropertyId.userProperty && id !== PropertyId.subscriptionId)
            for (const p of list)
                if (p.id === id)
                    return this.fail(protocolError(`property ${id} twice`))
        const form = kind & FORM_MASK
        if (form === Form.pair) {
            const name = this.text()
            list.push({ id, value: this.text(), name })
            return
        }
        const value = this.value(form)
        if (form === Form.flag && (value as number) > 1)
            return this.fail(protocolError(`property ${id} is ${value}`))
        if (value === 0 && notZero(id)) return this.fail(zero(id))
        list.push({ id, value })
    }

    private value(form: number): number | string | Buffer {
        switch (form) {
            case Form.flag:
                return this.u8()
            case Form.u16:
                return this.u16()
            case Form.u32:
                return this.u32()
            case Form.varint:
                return this.varint()
            case Form.text:
                return this.text()
            default:
                return this.bytes(this.u16())
        }
    }
}

function misplaced(owner: Owner, id: number): Fault {
    return protocolError(`property ${id} in packet type ${owner}`)
}

function zero(id: number): Fault {
    const fault = protocolError(`property ${id} is 0`)
    if (id === PropertyId.topicAlias) fault.clause = "3.3.2-8"
    return fault
}
