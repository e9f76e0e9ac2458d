// Serves commands that come as messages; core/command.ts says which and when they are refused.
import * as ds from "@devicescript/core"
import { cleanText } from "../core/line"
import { parseCommand, type Command } from "../core/command"
import type { Publish } from "../mqtt/packets"
import type { Client } from "./client"
import type { FleetPolicyControl } from "./fleet-policy"
import { reboot, type Leaves } from "./reboot"
import { messageText } from "./text"

/** To a policy-reset. */
const NO_FLEET = "follows no fleet policy"

/** After a refusal, until the commands' filter is asked for again. */
const ASK_AGAIN_MS = 60000

/**
 * Listens on `<base>/cmd/<name>` and answers each command on `<base>/res`. Returns at once.
 * @param base such as "herdless/0123456789abcdef"
 * @param limit counts the reboots that are asked for
 * @param fleet what `followFleetPolicy` returned; without it there is no fleet policy to reset
 */
export function serveCommands(
    client: Client,
    base: string,
    limit?: Leaves,
    fleet?: FleetPolicyControl,
) {
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
        const retain = !!message.retain
        const dup = !!message.dup
        const text = messageText(message)
        const upMs = ds.millis() - startMs
        const onTrial = limit ? limit.isOnTrial() : false
        const command = parseCommand(name, { retain, dup, text }, upMs, onTrial)
        await obey(client, base, name, command, fleet)
        if (command.name !== "reboot") return
        if (!(await reboot(client, limit, "command", "asked to", false)))
            await answer(client, base, {
                cmd: name,
                ok: false,
                why: "flash doesn't take the reason",
            })
    }
    listen.start()
}

async function obey(
    client: Client,
    base: string,
    cmd: string,
    command: Command,
    fleet: FleetPolicyControl,
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
            await answer(client, base, statusOf(client, cmd, fleet))
            return
        case "log":
            client.logFor(command.forMs)
            break
        case "retry":
            client.retryNow()
            break
        case "policy-reset":
            if (fleet) {
                fleet.reset()
                break
            }
            await answer(client, base, { cmd, ok: false, why: NO_FLEET })
            return
    }
    await answer(client, base, { cmd, ok: true })
}

async function answer(client: Client, base: string, what: any) {
    await client.publish(base + "/res", JSON.stringify(what))
}

function statusOf(client: Client, cmd: string, fleet: FleetPolicyControl) {
    const { connects, losses, published, received, dropped, handlerErrors } =
        client.counters
    return {
        cmd,
        ok: true,
        upMs: ds.millis(),
        state: client.state(),
        ceilingMs: client.connection.backoff.ceilingMs,
        issue: fleet ? fleet.issue() : 0,
        connects,
        losses,
        published,
        received,
        dropped,
        handlerErrors,
    }
}
