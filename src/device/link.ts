// The Wi-Fi link. The runtime's Wi-Fi service associates by itself; here it is watched, and asked to
// start over when it is stuck. A device without such a service (the simulator) has a network.
import * as ds from "@devicescript/core"
import { ipText, Link, type LinkChange } from "../core/link"
import type { Client, LinkPart } from "./client"
import { log } from "./log"

/** Told of every change of the link. */
export type LinkHandler = (change: LinkChange) => void

/** How often the service is looked at even if no event came: events can be lost. */
const POLL_MS = 15000

/** The runtime answers from a cache this old, so an event is looked at once more after it. */
const CACHE_MS = 600

let theWifi: ds.Wifi

/** One for all: a service is given to one role only. */
function wifiRole(): ds.Wifi {
    if (!theWifi) theWifi = new ds.Wifi()
    return theWifi
}

/** Has Wi-Fi join again, which ends every socket; without a Wi-Fi service nothing happens. */
export function rejoinWifi() {
    const wifi = wifiRole()
    const ask = async () => {
        await wifi.reconnect()
    }
    if (wifi.isBound) ask.start()
}

/**
 * Watches Wi-Fi; pass it to `startMqtt` as `link`. The first change is reported once the service
 * is found, about a second after power-on.
 */
export function wifiLink(changed: LinkHandler) {
    const wifi = wifiRole()
    const link = new Link()
    let failed = ""
    let reported = false
    let event = false
    let fiber: ds.Fiber

    const look = async () => {
        const ip = ipText(await wifi.ipAddress.read())
        const nowMs = ds.millis()
        const change = link.observe(ip, nowMs)
        if (ip) reported = false
        // Once, not at each of the service's own tries.
        const why = failed && !reported ? `cannot join ${failed}` : undefined
        if (why) reported = true
        failed = ""
        if (change !== "same" || why)
            log({ ev: "link", up: !!ip, ip: ip || undefined, why })
        if (change !== "same") changed(change)
        if (!link.shouldAsk(nowMs)) return
        log({ ev: "link", up: false, why: "no address: joining again" })
        await wifi.reconnect()
    }
    const watch = async () => {
        fiber = ds.Fiber.self()
        while (true) {
            const again = event
            event = false
            try {
                if (wifi.isBound) await look()
            } catch (e) {
                // A service that went away while it was asked; the next look tells.
            }
            await ds.suspend(again || event ? CACHE_MS : POLL_MS)
        }
    }
    const wake = () => {
        event = true
        if (fiber.suspended) fiber.resume(undefined)
    }
    watch.start()
    wifi.binding().subscribe(wake)
    wifi.gotIp.subscribe(wake)
    wifi.lostIp.subscribe(wake)
    wifi.connectionFailed.subscribe(ssid => {
        failed = ssid || "the network"
        wake()
    })
}

/** The part of a client that follows a network: `wifiLink`, or another function of its kind. */
export function followLink(watch: (changed: LinkHandler) => void): LinkPart {
    return client =>
        watch(change => client.post(() => linkChanged(client, change)))
}

function linkChanged({ connection }: Client, change: LinkChange) {
    const nowMs = ds.millis()
    if (change !== "up") connection.linkDown(nowMs)
    if (change !== "down") connection.linkUp(nowMs)
}
