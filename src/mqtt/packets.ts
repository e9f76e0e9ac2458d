// What a parser gives out: packets from the broker, of both versions of MQTT. Rule of the room: pure; types only.
import type { Reason } from "../core/reason"
import type { Property } from "./v5-properties"

/**
 * CONNACK (3.2). `code` 0 is accepted; 1..5 are the refusals of table 3.1; others are passed on as they are.
 * The rest is MQTT 5's: `level` 4 there is an answer in MQTT 3.1.1; `keepAliveSeconds` is the longest the broker waits.
 */
export interface Connack {
    type: "connack"
    sessionPresent: boolean
    code: number
    level?: number
    properties?: Property[]
    keepAliveSeconds?: number
}

/** PUBACK (3.4). A `code` of 0x80 or above, in MQTT 5: the broker has not taken the message, and never will. */
export interface Puback {
    type: "puback"
    packetId: number
    code?: number
    reason?: string
}

/**
 * PUBLISH (3.3). `payload` is a copy and the receiver's to keep. To read it as
 * text use `readText(payload, 0, payload.length)` of bytes.ts: the device's `toString` reads beyond the end of a
 * Buffer that ends inside a UTF-8 character.
 */
export interface Publish {
    type: "publish"
    topic: string
    payload: Buffer
    qos: number
    /** The broker had kept it. This and what follows is left out where it is false or 0: each field takes the device 0.2 us more. */
    retain?: boolean
    dup?: boolean
    packetId?: number
    /** MQTT 5 only; left out when there are none. */
    properties?: Property[]
}

/** A PUBLISH above `maxPacketBytes`, reported after its last byte was skipped. QoS 1 still needs its PUBACK. */
export interface Oversize {
    type: "oversize"
    /** As many whole characters of the topic as fit in `maxPacketBytes - 2` bytes. */
    topic: string
    /** Size of the whole packet in bytes, fixed header included. */
    packetBytes: number
    qos: number
    /** 0 with QoS 0. */
    packetId: number
}

/** SUBACK (3.9): one code per filter, in order: the granted QoS, or 0x80 (MQTT 5: and above) for refused. */
export interface Suback {
    type: "suback"
    packetId: number
    codes: number[]
    /** MQTT 5: in the broker's words, or "". */
    reason?: string
}

/** UNSUBACK (3.11); MQTT 5 has a code per filter. */
export interface Unsuback {
    type: "unsuback"
    packetId: number
    codes?: number[]
    reason?: string
}

/** DISCONNECT from the broker, MQTT 5 only (3.14). */
export interface Disconnect {
    type: "disconnect"
    code: number
    properties: Property[]
}

/** What the server must not send: close the connection [MQTT-4.8.0-1]. */
export interface Malformed {
    type: "malformed"
    /** The violated statement. */
    reason: Reason
    /** MQTT 5: what our DISCONNECT gives as the reason. */
    code?: number
}

/** Everything `nextPacket` returns, told apart by `type`. */
export type Packet =
    | Connack
    | Publish
    | Oversize
    | Puback
    | Suback
    | Unsuback
    | { type: "pingresp" }
    | Disconnect
    | Malformed
