// Which version of MQTT the next CONNECT speaks, when it is the broker that decides. Pure.
//
// | tried     | what came of it                              | next           |
// |-----------|----------------------------------------------|----------------|
// | home      | CONNACK: this version is not supported       | the other      |
// | home      | closed before CONNACK, for the second time   | the other      |
// | the other | not supported, or closed before CONNACK      | home           |
// | either    | a session that lasted                        | it is home now |
// | either    | anything else                                | the same       |
//
// Home is MQTT 5 at first. It is kept in RAM only: a restart costs one refusal, a broker that has learnt
// MQTT 5 is noticed by then, and flash is spared. Not the first CONNACK makes a home but a session that lasted: an
// overloaded broker closes before CONNACK too, and takes a CONNECT of any version now and then.

/** Protocol levels as in CONNECT: 5, and 4 for MQTT 3.1.1. */
export type Level = 4 | 5

/** Closed so often before CONNACK, and the other version is tried once. */
const MAX_CLOSES = 2

/** @devsWhenUsed */
export class VersionChoice {
    /** What the next CONNECT speaks. */
    level: Level
    private home: Level
    /** Times closed before CONNACK in a row. */
    private closes = 0
    /** Levels refused since a CONNACK 0. */
    private no4 = false
    private no5 = false

    /** @param only the one version there is to be; left out: both, MQTT 5 first */
    constructor(private readonly only?: Level) {
        this.home = only === undefined ? 5 : only
        this.level = this.home
    }

    /** The broker does not support this version. Returns whether there is another to try. */
    refused(): boolean {
        if (this.level === 5) this.no5 = true
        else this.no4 = true
        this.turn()
        return this.only === undefined && !(this.no4 && this.no5)
    }

    /** The broker closed the connection before CONNACK. */
    closed() {
        this.closes++
        if (this.level !== this.home || this.closes >= MAX_CLOSES) this.turn()
    }

    /** CONNACK 0 came. */
    accepted() {
        this.closes = 0
        this.no4 = false
        this.no5 = false
    }

    /** A session in this version has lasted. */
    stable() {
        this.home = this.level
    }

    private turn() {
        this.closes = 0
        if (this.only === undefined) this.level = this.level === 5 ? 4 : 5
    }
}
