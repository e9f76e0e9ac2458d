// A console for the fleet's tools that keeps what it is told.
import type { Io } from "../../host/fleet/tool"

export class FakeIo implements Io {
    printed = ""
    complaints = ""
    statuses: string[] = []
    /** Pressed Ctrl-C, once so many lines of progress were shown. */
    stopAfter = Infinity

    out = (text: string) => {
        this.printed += text
    }

    err = (text: string) => {
        this.complaints += text
    }

    status = (text: string) => {
        this.statuses.push(text)
    }

    stopped = () => {
        return this.statuses.length >= this.stopAfter
    }
}
