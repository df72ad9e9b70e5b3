import type { Clock } from '../../core/index.ts'

/** A start that takes this many times the best one seen means that the daemon is behind. */
const slowFactor = 4
const most = 16

/**
 * Lets only so many boxes start at once as the daemon keeps up with: one more after each round of quick starts, half
 * after a slow or failed one (additive increase, multiplicative decrease). A burst of starts is what breaks a daemon.
 */
export class Admission {
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  #limit = 4
  #running = 0
  #bestMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const turn = this.#enter(signal)
    if (turn !== null) await turn
    const started = this.#clock.monotonic()
    let quick = false
    try {
      const result = await work()
      const tookMs = this.#clock.monotonic() - started
      this.#bestMs = Math.min(this.#bestMs, tookMs)
      quick = tookMs <= this.#bestMs * slowFactor
      return result
    } finally {
      this.#limit = quick ? Math.min(most, this.#limit + 1 / this.#limit) : Math.max(1, this.#limit / 2)
      this.#running -= 1
      while (this.#running < this.limit && this.#admitNext()) {}
    }
  }

  /** Null when there is room. Counts as running from the moment of admission, so that nobody slips in between. */
  #enter(signal: AbortSignal | undefined): Promise<void> | null {
    signal?.throwIfAborted()
    if (this.#running < this.limit) {
      this.#running += 1
      return null
    }
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(admit), 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(admit)
    })
  }

  #admitNext(): boolean {
    const admit = this.#waiting.shift()
    if (admit === undefined) return false
    this.#running += 1
    admit()
    return true
  }
}
