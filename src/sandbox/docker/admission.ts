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
    while (this.#running >= this.limit) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
      signal?.throwIfAborted()
    }
    this.#running += 1
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
      for (let free = this.limit - this.#running; free > 0; free--) this.#waiting.shift()?.()
    }
  }
}
