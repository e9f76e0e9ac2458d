// What an application gives a client, looked at before anything is made of it. In words, for `publish`
// and `subscribe` never throw. TypeScript sees most of it when the program is built.
import type * as ds from "@devicescript/core"
import type { Publish } from "../mqtt/packets"
import { checkTopicFilter, checkTopicName } from "../mqtt/topic"
import type { Checks, PublishOptions } from "./client"

/** The part of a client that says what is wrong with arguments. */
export function argumentChecks(): Checks {
    return new Arguments()
}

/** @devsWhenUsed */
class Arguments implements Checks {
    /** The last topic that passed its check: most are published to again and again. */
    private goodTopic: string

    message(
        topic: string,
        payload: string | Buffer,
        options: PublishOptions,
        hasQos1: boolean,
    ): string | undefined {
        if (typeof topic !== "string") return "topic is not text"
        if (typeof payload !== "string" && !(payload instanceof Buffer))
            return "payload is neither text nor a Buffer"
        if (topic !== this.goodTopic) {
            const fault = checkTopicName(topic)
            if (fault !== undefined) return "topic " + fault
            this.goodTopic = topic
        }
        if (options !== undefined && (typeof options !== "object" || !options))
            return "options is no object"
        if (options && options.qos && !hasQos1)
            return "qos 1 needs the option qos1, and 2 is not there"
        return undefined
    }

    subscription(
        filter: string,
        handler: (message: Publish) => ds.AsyncVoid,
        qos: 0 | 1,
    ): string | undefined {
        if (typeof filter !== "string") return "filter is not text"
        if (typeof handler !== "function") return "handler is no function"
        if (qos !== 0 && qos !== 1) return "qos must be 0 or 1"
        const fault = checkTopicFilter(filter)
        return fault === undefined ? undefined : "filter " + fault
    }
}
