import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import type { RuleResult } from '../rule.ts'

/** One rule, as data that a thread can be given. */
export interface RuleSpec {
  /** Another one for each rule that is made in this process. */
  readonly id: number
  readonly name: string
  readonly args: readonly unknown[]
}

export interface RuleRequest {
  readonly rule: RuleSpec
  /** A text, or the data that the rule compares. */
  readonly answer: unknown
}

/** `ready`: the thread has loaded. */
export type RuleReply = { readonly ready: true } | { readonly result: RuleResult } | { readonly fault: string }

interface Job extends RuleRequest {
  readonly resolve: (result: RuleResult) => void
  readonly reject: (error: unknown) => void
}

/** What compares: a worker thread, or a process that is used like one. */
interface Comparer {
  postMessage(request: RuleRequest): unknown
  /** A referenced one keeps this process alive. */
  ref(): void
  unref(): void
  terminate(): unknown
}

/** Starts one. `take` gets its replies, `lose` why it ended; later calls of `lose` are ignored. */
export type Begin = (take: (reply: RuleReply) => void, lose: (why: unknown) => void) => Comparer

interface Thread {
  readonly worker: Comparer
  job: Job | null
  deadline: NodeJS.Timeout | null
}

/**
 * Threads that compare answers, so that no answer holds the loop that serves model calls. They start when they are needed, at most one
 * for two processors and at most four, and keep no process alive.
 */
export class RulePool {
  readonly #threads = new Set<Thread>()
  readonly #idle: Thread[] = []
  readonly #waiting: Job[] = []
  readonly #most: number
  readonly #deadlineMs: number
  readonly #begin: Begin

  /** `deadlineMs`: what one answer may take, its wait for a thread apart. `begin`: what is started in place of threads. */
  constructor(o: { readonly threads?: number; readonly deadlineMs?: number; readonly begin?: Begin } = {}) {
    this.#begin = o.begin ?? beginThread
    this.#most = o.threads ?? Math.min(4, Math.max(1, Math.floor(availableParallelism() / 2)))
    this.#deadlineMs = o.deadlineMs ?? 10_000
  }

  /**
   * Applies a rule to an answer. Throws `RULE_FAILED` if the deadline passes, the thread's memory ends, or the rule has a fault.
   */
  run(request: RuleRequest): Promise<RuleResult> {
    const { promise, resolve, reject } = Promise.withResolvers<RuleResult>()
    this.#waiting.push({ ...request, resolve, reject })
    this.#next()
    return promise
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const thread = this.#idle.pop()
    if (thread !== undefined) return this.#give(thread)
    if (this.#threads.size < this.#most) this.#start()
  }

  #start(): void {
    const worker = this.#begin(
      (reply) => this.#take(thread, reply),
      (why) => this.#lose(thread, why),
    )
    const thread: Thread = { worker, job: null, deadline: null }
    this.#threads.add(thread)
  }

  #give(thread: Thread): void {
    const job = this.#waiting.shift()
    if (job === undefined) {
      thread.worker.unref()
      this.#idle.push(thread)
      return
    }
    thread.job = job
    // A process that waits for an answer stays.
    thread.worker.ref()
    // An answer that came while this loop was held is read before the deadline counts.
    const late = (): void => void setImmediate(() => thread.job === job && this.#lose(thread, this.#tooLate()))
    thread.deadline = setTimeout(late, this.#deadlineMs)
    const { rule, answer } = job
    try {
      thread.worker.postMessage({ rule, answer } satisfies RuleRequest)
    } catch (error) {
      this.#take(thread, { fault: String(error) })
    }
  }

  #take(thread: Thread, reply: RuleReply): void {
    const job = this.#release(thread)
    if (job !== null && 'result' in reply) job.resolve(reply.result)
    if (job !== null && 'fault' in reply) job.reject(failed(job, reply.fault))
    this.#give(thread)
  }

  #lose(thread: Thread, why: unknown): void {
    if (!this.#threads.delete(thread)) return
    const job = this.#release(thread)
    void thread.worker.terminate()
    // A thread that never loaded would not load the next time either.
    const lost = job === null ? this.#waiting.splice(0) : [job]
    for (const one of lost) one.reject(failed(one, why))
    const at = this.#idle.indexOf(thread)
    if (at !== -1) this.#idle.splice(at, 1)
    this.#next()
  }

  #release(thread: Thread): Job | null {
    const { job, deadline } = thread
    if (deadline !== null) clearTimeout(deadline)
    thread.job = null
    thread.deadline = null
    return job
  }

  #tooLate(): string {
    return `it took longer than ${this.#deadlineMs} ms`
  }
}

function beginThread(...[take, lose]: Parameters<Begin>): Comparer {
  const file = import.meta.url.endsWith('.ts') ? './rule-worker.ts' : './rule-worker.js'
  // Flags of the parent (a test runner's loaders) mean nothing to this thread.
  const worker = new Worker(new URL(file, import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })
  worker.on('message', take)
  worker.on('error', lose)
  worker.on('exit', () => lose('its thread ended'))
  return worker
}

function failed({ rule, answer }: RuleRequest, why: unknown): PaddockError {
  if (isPaddockError(why)) return why
  const size = typeof answer === 'string' ? `an answer of ${answer.length} characters` : 'an answer'
  return new PaddockError('RULE_FAILED', `${rule.name} gave no value for ${size}: ${String(why)}`, {
    data: { rule: rule.name },
  })
}
