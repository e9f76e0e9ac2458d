// A budget for retries, so that they can't multiply load: when a service is down and each request is tried five
// times, five times the traffic is what keeps it down. Pure: a bucket of tokens, no clock.
//
// Each request puts a fifth of a token in, each retry takes one out, and the bucket holds ten. So a device that asks now
// and then has its five attempts, and in the long run retries are at most a fifth of the requests.

/** Fifths of a token. */
const CAPACITY = 50
const PER_RETRY = 5

/** One for all requests to one service, or for a whole program. */
export class RetryBudget {
    /** Starts full. */
    private fifths = CAPACITY

    /** A request begins. */
    request() {
        if (this.fifths < CAPACITY) this.fifths++
    }

    /** Takes a token for one retry; false when there is none, and then it is not to be made. */
    retry(): boolean {
        if (this.fifths < PER_RETRY) return false
        this.fifths -= PER_RETRY
        return true
    }
}
