// What keeps a command from doing its work and a person can cure: said in plain words, exit code 1 or 2.

/** An error whose message is all the user needs to read. */
export class Trouble extends Error {
    /** @param exitCode 1: it could not be done; 2: it was asked for in a way that can't be done */
    constructor(
        message: string,
        readonly exitCode: 1 | 2 = 1,
    ) {
        super(message)
    }
}
