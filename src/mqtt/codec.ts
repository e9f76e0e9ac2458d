// The seam between a session and a version of MQTT: packets in, packets out, and what a refusal
// means. Rule of the room: pure; one object for each session, with what it knows of the connection.
//
// Everything here speaks in the packets of encode.ts, which are MQTT 3.1.1. They are also what waits:
// in the outbox, in flight, in flash. Another version rewrites one as it leaves (`wire`), so that a message
// queued under one version can leave under another.
import type { Endpoint, Reviewer } from "../core/connection"
import { connackVerdict311, type Verdict } from "../core/verdict"
import { connectPacket, type ConnectOptions } from "./encode"
import type { Framer } from "./framing"
import type { Entry } from "./outbox"
import { Parser } from "./parser"
import type { Packet } from "./packets"

/** Takes the time a message has waited off its expiry, in steps of a second; true when none is left. */
export type Expires = (entry: Entry, nowMs: number) => boolean

/** One version of MQTT. */
export interface Codec extends Reviewer {
    /** The protocol level in CONNECT: 5 is MQTT 5; 4, or left out, MQTT 3.1.1. May change from one CONNECT to the next. */
    level?: number
    /** Bytes in, packets out; may change from one CONNECT to the next too. */
    parser: Framer
    /** QoS 1 messages that the broker lets us have without PUBACK, 1..65535; known from CONNACK on. */
    receiveMaximum: number
    /** CONNECT for a new connection; forgets what the last broker said. Throws as `connectPacket`. */
    connect(options: ConnectOptions): Buffer
    /**
     * A packet of encode.ts as this version writes it; left out where that is the same.
     * `properties` go into a PUBLISH, encoded and without their length.
     */
    wire?(packet: Buffer, properties?: Buffer): Buffer
    /** The highest QoS the broker takes, where it has said so. */
    maximumQos?: number
    /** The largest packet the broker takes, where it has said so. */
    maximumPacketBytes?: number
    /** Why the broker would not take a PUBLISH, in words, as far as it has said; undefined: it would. */
    refuses?(packet: Buffer, properties?: Buffer): string | undefined
    /** Left out where messages don't expire, and without `refuses`. */
    expires?: Expires
    /** Takes note of a packet, before the session does; what it returns is sent at once. */
    heard?(packet: Packet, nowMs: number): Buffer | undefined
    /** What a code that is not 0 means: in CONNACK or, `inDisconnect`, in the broker's DISCONNECT. */
    verdict(code: number, inDisconnect: boolean): Verdict
}

/**
 * Makes the codec of one session; `maxPacketBytes` as for `Parser`. It may change host and port of the
 * endpoint, which is the connection's own.
 */
export type MakeCodec = (maxPacketBytes: number, endpoint: Endpoint) => Codec

/** MQTT 3.1.1, which needs no rewriting. */
export function mqtt311(maxPacketBytes: number, _endpoint?: Endpoint): Codec {
    return {
        parser: new Parser(maxPacketBytes),
        receiveMaximum: 65535,
        connect: connectPacket,
        verdict: connackVerdict311,
        // Not left out: what isn't there takes the VM longest to find, and these are asked for at each packet.
        wire: undefined,
        refuses: undefined,
        heard: undefined,
    }
}
