// Scenes of requests for the tests of test/firmware/cases; see api-app.ts.
import * as ds from "@devicescript/core"
import { messageText, request, type Client } from "../../src/index"

/** Makes `count` requests one after the other and prints what becomes of each; then one from within a handler. */
export async function requests(
    client: Client,
    count: number,
    options: any,
    say: (what: any) => void,
) {
    const ask = async (i: number) => {
        const fromMs = ds.millis()
        const { ok, status, attempts, reason, message } = await request(
            client,
            "svc",
            `q${i}`,
            options,
        )
        const text = message ? messageText(message) : ""
        const tookMs = ds.millis() - fromMs
        say({ answer: i, ok, status, attempts, reason, text, tookMs })
    }
    await client.subscribe("do/ask", async () => {
        await ask(-1)
    })
    for (let i = 0; i < count; ++i) await ask(i)
    say({ asked: count })
}
