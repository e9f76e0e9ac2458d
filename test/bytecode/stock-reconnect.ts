// The stock MQTTClient, connected and publishing now and then: what a fleet of it does in an outage.
import { startMQTTClient } from "@devicescript/net"

await startMQTTClient({ host: "10.0.0.1", proto: "tcp", port: 1883 })
