import { type Digest, type Id, type IdMaker, isPaddockError } from '../../core/index.ts'
import type { ClaimRequest, HandInAnswer, Lease, Queue } from '../../trajectory/index.ts'

/** What became of a job here. `back`: nothing, and somebody else may do it. */
export type JobOutcome = { readonly next: 'done' | 'again'; readonly digest: Digest } | { readonly next: 'back' }

export interface JobRunnerParts {
  readonly queue: Pick<Queue, 'join' | 'beat' | 'leave' | 'retire' | 'handIn' | 'giveBack'>
  readonly claim: Queue['claim']
  readonly topic: string
  /** Earlier sessions of this name are over. */
  readonly nodeName: string
  /** Jobs under way at once, those not counted that have left their place. */
  readonly places: number
  readonly newId: IdMaker
  readonly signal: AbortSignal
  /** Does a job until its signal aborts. `leave` gives its place to the next one. Throws only what ends the whole run. */
  readonly work: (job: Lease, signal: AbortSignal, leave: () => void) => Promise<JobOutcome>
  /** After the hand-in. */
  readonly onEnded: (job: Lease, answer: HandInAnswer | null) => Promise<void>
}

interface AtWork {
  readonly stop: AbortController
  /** Of its last claim. */
  lease: Lease
}

const ttlMs = 60_000
const beatMs = 10_000
/** Wake-ups are hints; what can be claimed is asked this often all the same. */
const pollMs = 1_000

/** A node within this process: claims jobs of one topic, does them, hands them in. */
export class JobRunner {
  readonly #parts: JobRunnerParts
  /** Another one where it was over time, as after the sleep of a laptop; what is under way keeps its own. */
  #session: Id
  readonly #running = new Map<Id, AtWork>()
  /** Of all that is under way or is being seen to after its hand-in. */
  readonly #ends = new Set<Promise<void>>()
  #taken = 0
  #failure: { readonly error: unknown } | null = null
  #wake: () => void = () => undefined

  constructor(parts: JobRunnerParts) {
    this.#parts = parts
    this.#session = parts.newId()
  }

  /** Does a job here that somebody else claimed: its lease stays as it is. One that is under way here goes on, and is handed in under this lease. */
  adopt(job: Lease): void {
    const one = this.#running.get(job.jobId)
    if (one === undefined) this.#start(job)
    else one.lease = job
  }

  /** There may be something to claim. */
  wake(): void {
    this.#wake()
  }

  /** Stops jobs that are under way here; they are handed in with what they have. */
  stop(jobIds: readonly Id[], reason: unknown): void {
    for (const id of jobIds) this.#running.get(id)?.stop.abort(reason)
  }

  /** What went wrong outside of a job ends the run too. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#wake()
  }

  /**
   * Works until `isOver`, or until the run's signal aborts; then waits for what is under way and leaves. Throws `STORE_*` and
   * what {@link JobRunner.fail} was told.
   */
  async run(isOver: () => boolean): Promise<void> {
    const { queue, nodeName, places, newId, signal } = this.#parts
    await queue.retire(nodeName)
    await this.#join()
    const beating = setInterval(() => void this.#beat(), beatMs)
    const onAbort = () => this.#wake()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      while (!isOver() && !signal.aborted && this.#failure === null) {
        const woken = this.#nextWake()
        const free = places - this.#taken
        const request = { requestId: newId(), limit: free, capacity: {} }
        if (free > 0) for (const job of await this.#claim(request)) this.adopt(job)
        await woken
      }
    } catch (error) {
      this.fail(error)
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (this.#failure !== null) this.stop([...this.#running.keys()], this.#failure.error)
      while (this.#ends.size > 0) await Promise.all(this.#ends)
      clearInterval(beating)
    }
    if (this.#failure !== null) throw this.#failure.error
    await queue.leave(this.#session)
  }

  async #join(): Promise<void> {
    const { queue, nodeName } = this.#parts
    await queue.join({ id: this.#session, name: nodeName, labels: [`arch=${process.arch}`] }, ttlMs)
  }

  async #claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const { claim, topic, newId } = this.#parts
    try {
      return await claim(topic, this.#session, request)
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'NODE_SESSION_GONE') throw error
      this.#session = newId()
      await this.#join()
      return claim(topic, this.#session, request)
    }
  }

  #start(job: Lease): void {
    const { signal, work } = this.#parts
    const stop = new AbortController()
    // What was claimed elsewhere may come while the run fails.
    if (this.#failure !== null) stop.abort(this.#failure.error)
    let left = false
    const leave = () => {
      if (left) return
      left = true
      this.#taken -= 1
      this.#wake()
    }
    this.#taken += 1
    const one: AtWork = { stop, lease: job }
    this.#running.set(job.jobId, one)
    const ended = work(job, AbortSignal.any([signal, stop.signal]), leave)
      .then((outcome) => this.#handIn(one, outcome))
      .catch((error: unknown) => this.fail(error))
      .finally(() => {
        this.#over(one)
        this.#ends.delete(ended)
        leave()
      })
    this.#ends.add(ended)
  }

  async #handIn(one: AtWork, outcome: JobOutcome): Promise<void> {
    const { queue, onEnded } = this.#parts
    for (;;) {
      const job = one.lease
      if (outcome.next === 'back') {
        await queue.giveBack(job, 'drain')
        this.#over(one)
        return onEnded(job, null)
      }
      const answer = await queue.handIn(job, { ...outcome, made: null })
      const next = one.lease
      // Somebody may have claimed it meanwhile, whose lease it goes on under.
      if (!answer.accepted && next !== job) continue
      this.#over(one)
      // Or has claimed what is to be done again, before the answer was here.
      if (next !== job) this.#start(next)
      return onEnded(job, answer)
    }
  }

  /** From here on the same job may be under way once more. */
  #over(one: AtWork): void {
    if (this.#running.get(one.lease.jobId) === one) this.#running.delete(one.lease.jobId)
  }

  async #beat(): Promise<void> {
    try {
      const { cancel } = await this.#parts.queue.beat(this.#session, ttlMs)
      this.stop(cancel, new Error('its job was cancelled'))
    } catch (error) {
      // A store that is closing says so; what is under way finds out by itself.
      if (!isPaddockError(error) || error.code !== 'STORE_CLOSED') this.fail(error)
    }
  }

  #nextWake(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pollMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
