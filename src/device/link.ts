// The Wi-Fi link. The runtime's Wi-Fi service associates by itself; here is only watched
// whether there is an address. A device without such a service (the simulator) counts as connected.
import * as ds from "@devicescript/core"

/** How often the address is read even if no event came: events can be lost. */
const POLL_MS = 30000

/** Told of every change: the address in words, or "" when there is none. */
export type LinkHandler = (ip: string) => void

/** Starts to watch; `changed` is called once the Wi-Fi service is found, and then at every change. */
export function watchLink(changed: LinkHandler) {
    const wifi = new ds.Wifi()
    let last: string
    let fiber: ds.Fiber
    const wake = () => {
        if (fiber.suspended) fiber.resume(undefined)
    }
    const watch = async () => {
        fiber = ds.Fiber.self()
        while (true) {
            if (wifi.isBound) {
                const ip = ipText(await wifi.ipAddress.read())
                if (ip !== last) {
                    last = ip
                    changed(ip)
                }
            }
            await ds.suspend(POLL_MS)
        }
    }
    watch.start()
    wifi.binding().subscribe(wake)
    wifi.gotIp.subscribe(wake)
    wifi.lostIp.subscribe(wake)
}

/** An address as text; "" for none and for 0.0.0.0, which is as good as none. */
function ipText(ip: Buffer): string {
    if (!ip || ip.length < 4) return ""
    if (ip.length > 4) return ip.toString("hex")
    const text = `${ip[0]}.${ip[1]}.${ip[2]}.${ip[3]}`
    return text === "0.0.0.0" ? "" : text
}
