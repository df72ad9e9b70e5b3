import { Worker } from 'node:worker_threads'
import { PaddockError } from '../../core/index.ts'
import { fromWire, type ThreadAnswer, type ThreadHello } from './wire.ts'

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  readonly sizeBytes: number
}

interface Queued {
  readonly start: () => void
  readonly reject: (error: Error) => void
  readonly sizeBytes: number
}

/** How much may be under way to a thread. */
export interface ThreadLimits {
  /** Bytes sent and not yet answered; more wait in order. One larger request goes alone. */
  readonly maxBytes: number
  /** Requests sent and not yet answered. */
  readonly maxRequests: number
}

const defaultLimits: ThreadLimits = { maxBytes: 64 * 2 ** 20, maxRequests: 4096 }

/**
 * The main thread's end of a store thread: requests in, promises out, in order. Above its limits a request waits
 * (back-pressure on the caller's await); nothing is ever dropped.
 */
export class StoreThread {
  readonly #worker: Worker
  readonly #limits: ThreadLimits
  readonly #waiting = new Map<number, Waiting>()
  readonly #queued: Queued[] = []
  #nextId = 0
  #sentBytes = 0
  #dead: PaddockError | null = null

  private constructor(worker: Worker, limits: ThreadLimits) {
    this.#worker = worker
    this.#limits = limits
  }

  /** Starts the thread and resolves with it and with what it said at opening; rejects with the thread's own error. */
  static async start(
    url: URL,
    workerData: unknown,
    limits: Partial<ThreadLimits> = {},
  ): Promise<{ thread: StoreThread; value: unknown }> {
    // Flags of the parent (a test runner's loaders) mean nothing to a store thread.
    const worker = new Worker(url, { workerData, execArgv: [] })
    const thread = new StoreThread(worker, { ...defaultLimits, ...limits })
    const value = await new Promise<unknown>((resolve, reject) => {
      worker.once('message', (hello: ThreadHello) => {
        if (hello.hello) resolve(hello.value)
        else reject(fromWire(hello.error))
      })
      worker.once('error', reject)
      worker.once('exit', () => reject(new PaddockError('STORE_FAILED', 'a store thread ended while opening')))
    })
    for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event)
    worker.on('message', (answers: readonly ThreadAnswer[]) => thread.#settle(answers))
    worker.on('error', (error) => thread.#die(error))
    worker.on('exit', () => thread.#die(null))
    return { thread, value }
  }

  /** Requests that wait or are under way, and their bytes under way. */
  get load(): { readonly requests: number; readonly waiting: number; readonly bytes: number } {
    return { requests: this.#waiting.size, waiting: this.#queued.length, bytes: this.#sentBytes }
  }

  /**
   * Calls an operation. `pack` runs when it is sent, so that waiting requests are not copied twice.
   * Rejects with `STORE_CLOSED` after {@link StoreThread.close} and `STORE_FAILED` when the thread died.
   */
  call(
    op: string,
    pack: () => { args: readonly unknown[]; transfer?: readonly ArrayBuffer[] },
    sizeBytes = 0,
  ): Promise<unknown> {
    if (this.#dead !== null) return Promise.reject(this.#dead)
    return new Promise((resolve, reject) => {
      const start = (): void => {
        const id = this.#nextId
        this.#nextId += 1
        this.#sentBytes += sizeBytes
        this.#waiting.set(id, { resolve, reject, sizeBytes })
        try {
          const { args, transfer } = pack()
          this.#worker.postMessage({ id, op, args }, transfer === undefined ? [] : [...transfer])
        } catch (error) {
          this.#waiting.delete(id)
          this.#sentBytes -= sizeBytes
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      }
      if (this.#queued.length === 0 && this.#fits(sizeBytes)) start()
      else this.#queued.push({ start, reject, sizeBytes })
    })
  }

  /** Lets everything accepted finish, then ends the thread, also where the last step fails. Idempotent. */
  async close(): Promise<void> {
    if (this.#dead !== null) return
    const ended = this.call('close', () => ({ args: [] }))
    this.#dead = new PaddockError('STORE_CLOSED', 'the store is closed')
    try {
      await ended
    } finally {
      await this.#worker.terminate()
    }
  }

  #fits(sizeBytes: number): boolean {
    if (this.#waiting.size === 0) return true
    return this.#waiting.size < this.#limits.maxRequests && this.#sentBytes + sizeBytes <= this.#limits.maxBytes
  }

  #settle(answers: readonly ThreadAnswer[]): void {
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id)
      if (waiting === undefined) continue
      this.#waiting.delete(answer.id)
      this.#sentBytes -= waiting.sizeBytes
      if (answer.ok) waiting.resolve(answer.value)
      else waiting.reject(fromWire(answer.error))
    }
    let sent = 0
    for (const next of this.#queued) {
      if (!this.#fits(next.sizeBytes)) break
      next.start()
      sent += 1
    }
    this.#queued.splice(0, sent)
  }

  #die(cause: unknown): void {
    this.#dead ??= new PaddockError('STORE_FAILED', 'a store thread died', cause === null ? {} : { cause })
    const error = this.#dead
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
    for (const queued of this.#queued.splice(0)) queued.reject(error)
  }
}
