// So many clients of MQTT.js with its defaults (a retry every second, 30 s for CONNACK): `herd-mqttjs.ts PORT CLIENTS SEED`.
// Ends when its standard input does.
import { connect } from "mqtt"

const [port, clients] = process.argv.slice(2)

for (let i = 0; i < Number(clients); ++i)
    connect(`mqtt://127.0.0.1:${port}`, { clientId: `mqttjs-${i}` })
        // Without a listener the first refusal would end the process.
        .on("error", () => {})

process.stdin.on("end", () => process.exit())
process.stdin.resume()
