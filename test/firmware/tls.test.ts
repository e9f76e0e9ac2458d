// TLS against a real mosquitto: each way a certificate can be wrong is told by its reason.
import assert from "node:assert/strict"
import { after, before, describe, test } from "node:test"
import type { Line } from "../../src/core/line"
import { Authority, noOpenssl, type Certificate } from "../certificates"
import { freePort, Mosquitto, noMosquitto } from "../mosquitto"
import { RealDevice } from "../real-device"

/** Boots the firmware against `certificate`, until it is connected or has a reason not to be. */
async function firstLine(certificate: Certificate, trusted: string) {
    const port = await freePort()
    const broker = new Mosquitto(port, [
        `certfile ${certificate.cert}`,
        `keyfile ${certificate.key}`,
    ])
    const device = await RealDevice.make({
        id: "0011223344556677",
        settings: {
            MQTT_HOST: '"localhost"',
            MQTT_PORT: `${port}`,
            MQTT_PROTO: '"tls"',
            RETRY_MIN: "50",
        },
        network: { ca: trusted },
    })
    const next = (): Line | undefined => {
        const at = device.lines.findIndex(l => l.ev === "attempt")
        return at < 0 ? undefined : device.lines[at + 1]
    }
    try {
        await broker.start()
        device.powerOn()
        await device.until("an answer", () => next() !== undefined)
        return next()!
    } finally {
        device.powerOff()
        await broker.dispose()
    }
}

describe("TLS", { skip: noMosquitto || noOpenssl }, () => {
    let ours: Authority
    let theirs: Authority
    before(() => {
        ours = new Authority("Ours")
        theirs = new Authority("Theirs")
    })
    after(() => {
        ours.dispose()
        theirs.dispose()
    })

    test("the right name and authority: connected", async () => {
        const line = await firstLine(ours.issue("localhost"), ours.pem)
        assert.equal(line.ev, "connected")
    })

    const faults: [string, () => Certificate, string][] = [
        [
            "another host's name",
            () => ours.issue("other.example"),
            "TLS: certificate of another host",
        ],
        [
            "an authority we don't know",
            () => theirs.issue("localhost"),
            "TLS: unknown certificate authority",
        ],
        [
            "expired",
            () => ours.issue("localhost", -1),
            "TLS: certificate expired",
        ],
    ]
    for (const [name, certificate, reason] of faults)
        test(`${name}: slow lane, and the line says so`, async () => {
            const line = await firstLine(certificate(), ours.pem)
            assert.ok(line.ev === "retry", `got ${line.ev}`)
            assert.equal(line.reason, reason)
            assert.equal(line.lane, "slow")
            assert.ok(line.delayMs >= 300_000)
        })
})
