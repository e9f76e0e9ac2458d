// Stops the client in the state that the setting STOP_AT names, and starts it again REST_MS later
// (-1: at once); with POKE_MS it also calls start() all the time. Prints every state.
import * as ds from "@devicescript/core"
import { readRaw } from "../../src/device/settings"
import { startMqtt, wifiLink } from "../../src/index"

/** A setting as a number; 0 when it is not there. */
async function number(key: string): Promise<number> {
    const raw = await readRaw(key)
    return raw ? JSON.parse(raw) : 0
}

const stopAt = JSON.parse(await readRaw("STOP_AT"))
const restMs = await number("REST_MS")
const pokeMs = await number("POKE_MS")
const client = startMqtt({ host: "broker", link: wifiLink })
let stopped = false

const stopAndStart = async () => {
    console.log("stop")
    client.stop()
    if (restMs >= 0) await ds.sleep(restMs)
    console.log("start")
    client.start()
}
const poke = async () => {
    while (true) {
        client.start()
        await ds.sleep(pokeMs)
    }
}
client.onState(state => {
    console.log("state " + state)
    if (stopped) return
    // Somebody has to say goodbye first, for a stop in the middle of it.
    if (stopAt === "disconnecting" && state === "connected") client.stop()
    if (state !== stopAt) return
    stopped = true
    stopAndStart.start()
})
if (pokeMs) poke.start()
