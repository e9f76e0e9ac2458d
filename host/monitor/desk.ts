// All devices that are watched: events go in, each device's view is kept, and who shows them is told which changed.
import type { MonitorEvent } from "./event"
import { newView, powered, take, type DeviceView } from "./view"

/** Devices kept at most; a recording may name any number. What comes of more is counted and left out. */
export const MAX_DEVICES = 1000

export class Desk {
    readonly views = new Map<string, DeviceView>()
    /** Events of devices beyond MAX_DEVICES. */
    ignored = 0
    private readonly watchers = new Set<(dev: string) => void>()

    /** Calls `changed` whenever a device's view is another one. @returns how to stop it */
    watch(changed: (dev: string) => void): () => void {
        this.watchers.add(changed)
        return () => this.watchers.delete(changed)
    }

    /** The device of this name, before anything is heard of it. */
    add(dev: string) {
        if (!this.views.has(dev)) this.put(newView(dev))
    }

    take(event: MonitorEvent) {
        const view = this.views.get(event.dev)
        if (!view && this.views.size >= MAX_DEVICES) this.ignored++
        else this.put(take(view ?? newView(event.dev), event))
    }

    /** The simulator switched a device on or off. */
    power(dev: string, on: boolean, tMs: number) {
        this.put(powered(this.views.get(dev) ?? newView(dev), on, tMs))
    }

    private put(view: DeviceView) {
        this.views.set(view.dev, view)
        for (const changed of this.watchers) changed(view.dev)
    }
}
