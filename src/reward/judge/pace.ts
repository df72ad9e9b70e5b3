import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../core/index.ts'

/** Lets a bounded number of calls go at once, and a bounded number begin in any minute. First come, first served. */
export class Pace {
  readonly #inFlight: number
  readonly #perMinute: number
  readonly #clock: Clock
  #begun: number[] = []
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(o: { readonly inFlight: number; readonly perMinute: number; readonly clock: Clock }) {
    this.#inFlight = o.inFlight
    this.#perMinute = o.perMinute
    this.#clock = o.clock
  }

  /** Rejects with the signal's reason when it aborts before the work has begun, at the latest when its turn comes. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#running >= this.#inFlight) await new Promise<void>((go) => this.#waiting.push(go))
    else this.#running += 1
    try {
      signal.throwIfAborted()
      await this.#minute(signal)
      return await work()
    } finally {
      // The place is handed on, so that the count stays.
      const next = this.#waiting.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  async #minute(signal: AbortSignal): Promise<void> {
    for (;;) {
      const now = this.#clock.monotonic()
      this.#begun = this.#begun.filter((at) => now - at < 60_000)
      const [oldest] = this.#begun
      if (this.#begun.length < this.#perMinute || oldest === undefined) break
      await sleep(60_000 - (now - oldest), undefined, { signal })
    }
    this.#begun.push(this.#clock.monotonic())
  }
}
