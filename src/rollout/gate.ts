/** Lets at most `limit` holders in at once: who is earlier in order first, among equals who came first. */
export class Gate {
  readonly #limit: number
  #held = 0
  readonly #waiting: { readonly order: number; readonly called: () => void }[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Resolves with a place; disposing it lets the next one in. Rejects with the signal's reason on abort. */
  async enter(signal: AbortSignal, order = 0): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#held < this.#limit) this.#held += 1
    else await this.#turn(signal, order)
    let left = false
    return {
      [Symbol.dispose]: () => {
        if (left) return
        left = true
        // A place is handed over, not freed and taken again, so that nobody overtakes.
        const next = this.#waiting.shift()
        if (next === undefined) this.#held -= 1
        else next.called()
      },
    }
  }

  #turn(signal: AbortSignal, order: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', aborted)
        resolve()
      }
      const waiter = { order, called }
      const aborted = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(signal.reason)
      }
      const later = this.#waiting.findIndex((other) => other.order > order)
      this.#waiting.splice(later === -1 ? this.#waiting.length : later, 0, waiter)
      signal.addEventListener('abort', aborted, { once: true })
    })
  }
}
