// A real mosquitto for tests, and when they have to do without.
import { PROGRAM } from "../host/lab/mosquitto"

export { freePort, Mosquitto } from "../host/lab/mosquitto"

/**
 * For `test(name, { skip: noMosquitto }, ...)`: why these tests can't run, or false. In CI they must.
 */
export const noMosquitto: string | false =
    PROGRAM || process.env.CI
        ? false
        : "mosquitto is not installed (apt-get install mosquitto)"
