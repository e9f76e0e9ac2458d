// Serves commands that come as messages; core/command.ts says which and when they are refused.
import * as ds from "@devicescript/core"
import { cleanText } from "../core/line"
import { parseCommand, type Command } from "../core/command"
import type { Publish } from "../mqtt/parser"
import type { Client } from "./client"
import { messageText } from "./text"

/** How long a clean goodbye may take before a reboot happens without it. */
const GOODBYE_MS = 1000

/** After a refusal, until the commands' filter is asked for again. */
const ASK_AGAIN_MS = 60000

/**
 * Listens on `<base>/cmd/<name>` and answers each command on `<base>/res`. Returns at once.
 * @param base such as "herdless/0123456789abcdef"
 */
export function serveCommands(client: Client, base: string) {
    const prefix = base + "/cmd/"
    const startMs = ds.millis()
    const listen = async () => {
        // QoS 1: acknowledged by the session before the handler runs, so nothing repeats.
        const ask = async () =>
            await client.subscribe(prefix + "+", onMessage, 1)
        // A broker that refuses now may grant it later: its access rules may still be loading.
        while ((await ask()).slice(0, 7) === "refused")
            await ds.sleep(ASK_AGAIN_MS)
    }
    const onMessage = async (message: Publish) => {
        // The runtime's JSON would mangle what is not ASCII.
        const name = cleanText(message.topic.slice(prefix.length))
        const { retain, dup } = message
        const text = messageText(message)
        const upMs = ds.millis() - startMs
        const command = parseCommand(name, { retain, dup, text }, upMs)
        await obey(client, base, name, command)
    }
    listen.start()
}

async function obey(
    client: Client,
    base: string,
    cmd: string,
    command: Command,
) {
    switch (command.name) {
        case "refused":
            await answer(client, base, {
                cmd,
                ok: false,
                why: command.reason,
            })
            return
        case "status":
            await answer(client, base, statusOf(client, cmd))
            return
        case "log":
            client.logFor(command.forMs)
            break
        case "retry":
            client.retryNow()
            break
    }
    await answer(client, base, { cmd, ok: true })
    if (command.name === "reboot") await reboot(client)
}

async function answer(client: Client, base: string, what: any) {
    await client.publish(base + "/res", JSON.stringify(what))
}

function statusOf(client: Client, cmd: string) {
    const { connects, losses, published, received, dropped, handlerErrors } =
        client.counters
    return {
        cmd,
        ok: true,
        upMs: ds.millis(),
        state: client.state(),
        ceilingMs: client.connection.backoff.ceilingMs,
        connects,
        losses,
        published,
        received,
        dropped,
        handlerErrors,
    }
}

async function reboot(client: Client) {
    client.stop()
    const giveUpMs = ds.millis() + GOODBYE_MS
    while (client.state() !== "halted" && ds.millis() < giveUpMs)
        await ds.sleep(20)
    ds.reboot()
}
