// Ways to break the firmware, one small patch each. `from` has to be in the file exactly once; when it
// is not, the mutant is out of date and says so.

/** One way to break the firmware. */
export interface Mutant {
    /** What it does wrong, in words. */
    name: string
    file: string
    from: string
    to: string
}

export const MUTANTS: Mutant[] = [
    {
        name: "a short session resets the backoff, with no take-back",
        file: "src/core/adaptive.ts",
        from: "const flap = this.isFlap(nowMs)",
        to: "const flap = false && this.isFlap(nowMs)",
    },
    {
        name: "the ceiling climbs past the cap on mere refusals",
        file: "src/core/adaptive.ts",
        from: "if (proves) b.proven = true",
        to: "b.proven = true || proves",
    },
    {
        name: "overload is never proven: a fixed cap",
        file: "src/core/adaptive.ts",
        from: "if (proves) b.proven = true",
        to: "b.proven = false && proves",
    },
    {
        name: "a silent attempt's own time is not counted",
        file: "src/core/adaptive.ts",
        from: "let leftMs = c - silentMs",
        to: "let leftMs = silentMs > 0 ? c : c",
    },
    {
        name: "no jitter on the ceiling",
        file: "src/core/adaptive.ts",
        from: "return ceilingMs + below(div(ceilingMs, 10) + 1, b.random)",
        to: "return ceilingMs + below(1, b.random)",
    },
    {
        name: "the same first ceiling for all devices",
        file: "src/core/adaptive.ts",
        from: "return span(minMs, minMs, limitNow(b), b.random)",
        to: "return span(minMs, 1, limitNow(b), b.random)",
    },
    {
        name: "the same first ceiling for all devices that have every strategy",
        file: "src/core/backoff.ts",
        from: "return span(low, minMs, limit, this.random)",
        to: "return span(low, 1, limit, this.random)",
    },
    {
        name: "bad credentials are retried on the schedule",
        file: "src/core/adaptive.ts",
        from: 'if (lane === "slow") {\n        if (b.slow)',
        to: 'if (lane === "slow" && p.minMs < 0) {\n        if (b.slow)',
    },
    {
        name: "an overloaded broker is not given more patience",
        file: "src/core/adaptive.ts",
        from: "b.connackWaitMs = p.connackOverloadMs",
        to: "b.connackWaitMs = p.connackMs",
    },
    {
        name: "random numbers from Math.random",
        file: "src/device/random.ts",
        from: 'return seededRandom(entropy, ds.deviceIdentifier("self"))',
        to: "return { next: () => (Math.random() * 0x7fffffff) | 0 }",
    },
    {
        name: "random numbers seeded with a constant",
        file: "src/device/random.ts",
        from: 'return seededRandom(entropy, ds.deviceIdentifier("self"))',
        to: 'return seededRandom(Buffer.alloc(8), "0000000000000000")',
    },
    {
        name: "no CONNACK timeout",
        file: "src/core/connection.ts",
        from: "nowMs + this.backoff.connackWaitMs",
        to: "nowMs + 86400000",
    },
    {
        name: "a socket is opened at once after the last was closed",
        file: "src/core/connection.ts",
        from: "const REOPEN_MS = 100",
        to: "const REOPEN_MS = 0",
    },
    {
        name: "a failed connection is not closed",
        file: "src/core/connection.ts",
        from: "    connection.port.close()\n",
        to: "",
    },
    {
        name: "a lost network is not noticed",
        file: "src/core/connection.ts",
        from: "        if (!this.hasLink) return false\n",
        to: "        if (nowMs >= 0) return false\n",
    },
    {
        name: "parser state is kept across connections",
        file: "src/mqtt/session.ts",
        from: "        resetFramer(this.codec.parser)\n",
        to: "        this.codec.parser.dead = false\n",
    },
    {
        name: "packet identifiers do not wrap",
        file: "src/mqtt/session.ts",
        from: "id = id < MAX_PACKET_ID ? id + 1 : 1",
        to: "id = id + 1",
    },
    {
        name: "a half-open connection is never noticed",
        file: "src/mqtt/session.ts",
        from: "if (this.pingedMs >= 0) return this.port.silent()",
        to: "",
    },
    {
        name: "what we send counts as a sign of life",
        file: "src/mqtt/session.ts",
        from: "    session.lastOutMs = nowMs\n    return session.port.send(\n",
        to: "    session.lastOutMs = nowMs\n    session.pingedMs = -1\n    return session.port.send(\n",
    },
    {
        name: "subscriptions are not made again after a reconnect",
        file: "src/mqtt/session.ts",
        from: '            s.state = "new"\n            ++i\n',
        to: "            ++i\n",
    },
    {
        name: "messages go to every handler",
        file: "src/mqtt/session.ts",
        from: "                    if (!s.isWild) continue\n                    if (!matches(s.topicFilter, topic)) continue\n",
        to: "",
    },
    {
        name: "a message is delivered twice",
        file: "src/mqtt/session.ts",
        from: "session.calls.push(s, packet)",
        to: "session.calls.push(s, packet, s, packet)",
    },
    {
        name: "the outbox has no limit",
        file: "src/mqtt/outbox.ts",
        from: "entries >= maxEntries || (entries > 0 && bytes + newBytes > maxBytes)",
        to: "entries < 0 && bytes + maxEntries + maxBytes < 0",
    },
    {
        name: "a socket left open by a crash stays open",
        file: "src/device/client.ts",
        from: "        socketClose() // what a crash left open\n",
        to: "",
    },
    {
        name: "a write that the socket refused is forgotten",
        file: "src/device/client.ts",
        from: 'if (code !== 0) heard(client, "native", "")',
        to: "",
    },
    {
        name: "the supervisor never lets the others run",
        file: "src/device/client.ts",
        from: "const WORK_PER_TURN = 96",
        to: "const WORK_PER_TURN = 1000000",
    },
    {
        name: "a handler that throws ends the program",
        file: "src/device/handlers.ts",
        from: "        handlers.counters.handlerErrors++\n",
        to: "        throw e\n",
    },
    {
        name: "no `lost` line",
        file: "src/core/connection.ts",
        from: 'this.port.log("lost", nowMs, judged, flap)',
        to: "",
    },
    {
        name: "the restart limit never holds a burst",
        file: "src/core/restart.ts",
        from: 'return "restart burst"',
        to: 'return ""',
    },
    {
        name: "the reason of a reboot is not written before it",
        file: "src/core/restart.ts",
        from: "    r.intent = intent\n",
        to: "",
    },
    {
        name: "an older fleet policy replaces a newer one",
        file: "src/core/fleet-policy.ts",
        from: "!now || policy.issue > now.issue || policy.issue === MAX_ISSUE",
        to: "policy.issue > 0",
    },
    {
        name: "a QoS 1 message is sent again without DUP",
        file: "src/mqtt/in-flight.ts",
        from: "else if (f.sentMs >= 0) markDup(f.packet)",
        to: "",
    },
    {
        name: "an identifier in flight is used again",
        file: "src/mqtt/in-flight.ts",
        from: "return find(this, packetId, this.held) >= 0",
        to: "return packetId < 0",
    },
    {
        name: "two devices with one client id throw each other out for ever",
        file: "src/mqtt/rivals.ts",
        from: "if (this.young >= SLOW_AFTER) return slow(reason)",
        to: "",
    },
]
