// Worker processes, one for each core, and the jobs they share. A worker that dies or hangs is
// replaced, and its job counts as failed.
import { fork, type ChildProcess } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What a worker says. */
export type Answer<Outcome> =
    | { is: "progress"; done: number }
    | { is: "outcome"; outcome: Outcome }
    | { is: "error"; text: string }

/** What came of a job: an outcome, or what kept it from having one. */
export type Result<Job, Outcome> = { job: Job } & (
    { outcome: Outcome } | { trouble: "hang" | "lab"; text: string }
)

/** A worker that says nothing for this long hangs. */
const HANG_MS = 300_000

interface Worker<Job, Outcome> {
    child: ChildProcess
    job: Job | undefined
    finished: ((result: Result<Job, Outcome>) => void) | undefined
    /** How much of the job at hand is done, in the job's own measure. */
    done: number
    timer: NodeJS.Timeout | undefined
}

export class Pool<Job extends object, Outcome> {
    private workers: Worker<Job, Outcome>[] = []
    private waiting: {
        job: Job
        finished: (result: Result<Job, Outcome>) => void
    }[] = []
    private readonly file: string

    /**
     * @param worker the worker's file, as a URL; it calls `serve` of serve.ts
     * @param size workers at a time, at least 1
     */
    constructor(
        worker: URL,
        private readonly size: number,
    ) {
        this.file = fileURLToPath(worker)
    }

    /** How much of all jobs under way is done. */
    get done() {
        return this.workers.reduce((sum, w) => sum + w.done, 0)
    }

    run(job: Job): Promise<Result<Job, Outcome>> {
        return new Promise(finished => {
            this.waiting.push({ job, finished })
            this.next()
        })
    }

    /** Ends every worker; what they were doing has no result. */
    close() {
        this.waiting = []
        for (const { child, timer } of this.workers) {
            clearTimeout(timer)
            child.removeAllListeners()
            child.kill("SIGKILL")
        }
        this.workers = []
    }

    private next() {
        if (!this.waiting.length) return
        let worker = this.workers.find(w => !w.job)
        if (!worker && this.workers.length < this.size) worker = this.hire()
        if (!worker) return
        const { job, finished } = this.waiting.shift()!
        worker.job = job
        worker.finished = finished
        worker.done = 0
        this.watch(worker)
        worker.child.send(job)
    }

    private hire(): Worker<Job, Outcome> {
        const child = fork(this.file, {
            execArgv: ["--import", "tsx"],
            stdio: ["ignore", "inherit", "inherit", "ipc"],
        })
        const worker: Worker<Job, Outcome> = {
            child,
            job: undefined,
            finished: undefined,
            done: 0,
            timer: undefined,
        }
        child.on("message", (answer: Answer<Outcome>) =>
            this.heard(worker, answer),
        )
        child.on("exit", (code, signal) => {
            const text = `the worker ended: ${signal ?? `exit code ${code}`}`
            this.lose(worker, "lab", text)
        })
        this.workers.push(worker)
        return worker
    }

    private heard(worker: Worker<Job, Outcome>, answer: Answer<Outcome>) {
        this.watch(worker)
        if (answer.is === "progress") {
            worker.done = answer.done
            return
        }
        const job = worker.job!
        if (answer.is === "outcome")
            return this.finish(worker, { job, outcome: answer.outcome })
        // Its world may be half torn down: no more from this one.
        this.lose(worker, "lab", answer.text)
    }

    private watch(worker: Worker<Job, Outcome>) {
        clearTimeout(worker.timer)
        worker.timer = setTimeout(() => {
            const text = `nothing from the worker for ${HANG_MS / 1000} s`
            this.lose(worker, "hang", text)
        }, HANG_MS)
    }

    private lose(
        worker: Worker<Job, Outcome>,
        trouble: "hang" | "lab",
        text: string,
    ) {
        const { job, child } = worker
        child.removeAllListeners()
        child.kill("SIGKILL")
        this.workers = this.workers.filter(w => w !== worker)
        if (job) this.finish(worker, { job, trouble, text })
        else this.next()
    }

    private finish(worker: Worker<Job, Outcome>, result: Result<Job, Outcome>) {
        clearTimeout(worker.timer)
        const { finished } = worker
        worker.job = undefined
        worker.finished = undefined
        worker.done = 0
        finished?.(result)
        this.next()
    }
}
