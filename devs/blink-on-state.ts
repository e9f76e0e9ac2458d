// The board's light shows the connection: green connected, yellow while it tries, red when it has given up, dark
// without Wi-Fi. It needs no pins: the board file says where the light is.
import * as ds from "@devicescript/core"
import { startMqtt, wifiLink } from "../src/index"

const light = new ds.Control("control[int:0]")
const mqtt = startMqtt({ host: "broker.example", link: wifiLink })

async function show(state: string) {
    if (state === "connected") await light.setStatusLight(0, 40, 0, 0)
    else if (state === "halted") await light.setStatusLight(40, 0, 0, 0)
    else if (state === "noLink") await light.setStatusLight(0, 0, 0, 0)
    else await light.setStatusLight(30, 20, 0, 0)
}

mqtt.onState(show)
