/** How far a pause reaches: requests that have not begun, or those in flight as well. */
export type PauseScope = 'none' | 'new' | 'all'

/** Where requests and tokens wait while generation is paused. */
export class PauseGate {
  #scope: PauseScope = 'none'
  #opened = Promise.withResolvers<void>()

  get scope(): PauseScope {
    return this.#scope
  }

  pause(scope: 'new' | 'all'): void {
    this.#scope = scope
  }

  resume(): void {
    this.#scope = 'none'
    this.#opened.resolve()
    this.#opened = Promise.withResolvers<void>()
  }

  /** Resolves when a request may begin; at once when nothing is paused. Rejects when `signal` aborts. */
  async begin(signal: AbortSignal): Promise<void> {
    while (this.#scope !== 'none') await this.#wait(signal)
  }

  /** Resolves when the next token may be drawn. */
  async proceed(signal: AbortSignal): Promise<void> {
    while (this.#scope === 'all') await this.#wait(signal)
  }

  async #wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const stopped = Promise.withResolvers<void>()
    const onAbort = (): void => stopped.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([this.#opened.promise, stopped.promise])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
