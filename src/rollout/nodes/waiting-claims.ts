import { type Clock, systemClock } from '../../core/index.ts'

/** A claim that may wait. */
export interface WaitingClaim<Job> {
  /** Claims of one kind are given the same: where one found too little another one finds nothing. */
  readonly kind: string
  readonly limit: number
  /** So long it waits for the first job. */
  readonly waitMs: number
  /** Nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /**
   * Null: whoever asks has to do something else first, as all of its kind, and is given nothing meanwhile. `away`: it may be gone, or
   * has to ask anew; it is answered with nothing, and another one is tried.
   */
  readonly attempt: () => Promise<readonly Job[] | null | 'away'>
}

/**
 * Claims that found nothing wait here until there may be something. Of those that wait one is tried for each kind, and the next
 * only after one that found all it had room for: a job that comes costs one claim, however many nodes wait for it.
 */
export class WaitingClaims {
  readonly #clock: Clock
  /** By kind, in the order in which they came. */
  readonly #waiting = new Map<string, Set<() => void>>()
  #rings = 0
  #closed = false

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** How many wait. */
  get size(): number {
    return [...this.#waiting.values()].reduce((sum, { size }) => sum + size, 0)
  }

  /** There may be something to claim. */
  ring(): void {
    this.#rings += 1
    for (const kind of this.#waiting.keys()) this.#wakeOne(kind)
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#closed = true
    for (const all of this.#waiting.values()) for (const wake of all) wake()
  }

  /** What the first attempt that finds something finds; nothing once the time is over or nobody waits for it. Throws what an attempt throws. */
  async claim<Job>({ kind, limit, waitMs, signal, attempt }: WaitingClaim<Job>): Promise<readonly Job[]> {
    const ends = this.#clock.monotonic() + waitMs
    for (;;) {
      const rings = this.#rings
      let found: readonly Job[] | null | 'away'
      try {
        found = await attempt()
      } catch (error) {
        // It was woken for something that another one can take.
        this.#wakeOne(kind)
        throw error
      }
      if (found !== null && (found === 'away' || found.length >= limit)) this.#wakeOne(kind)
      if (found === 'away') return []
      if (found !== null && found.length > 0) return found
      const left = ends - this.#clock.monotonic()
      if (left <= 0) return []
      if (rings === this.#rings && !signal.aborted && !this.#closed) await this.#woken(kind, left, signal)
      if (!signal.aborted && !this.#closed) continue
      this.#wakeOne(kind)
      return []
    }
  }

  #wakeOne(kind: string): void {
    const [first] = this.#waiting.get(kind) ?? []
    first?.()
  }

  #woken(kind: string, limitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const all = this.#waiting.get(kind) ?? new Set()
      this.#waiting.set(kind, all)
      const over = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        all.delete(over)
        if (all.size === 0 && this.#waiting.get(kind) === all) this.#waiting.delete(kind)
        resolve()
      }
      const timer = setTimeout(over, limitMs)
      all.add(over)
      signal.addEventListener('abort', over, { once: true })
    })
  }
}
