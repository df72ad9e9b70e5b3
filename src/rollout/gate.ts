/** Lets at most `limit` holders in at once, first come, first served. */
export class Gate {
  readonly #limit: number
  #held = 0
  readonly #waiting: (() => void)[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Resolves with a place; disposing it lets the next one in. Rejects with the signal's reason on abort. */
  async enter(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#held < this.#limit) this.#held += 1
    else await this.#turn(signal)
    let left = false
    return {
      [Symbol.dispose]: () => {
        if (left) return
        left = true
        // A place is handed over, not freed and taken again, so that nobody overtakes.
        const next = this.#waiting.shift()
        if (next === undefined) this.#held -= 1
        else next()
      },
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', aborted)
        resolve()
      }
      const aborted = () => {
        this.#waiting.splice(this.#waiting.indexOf(called), 1)
        reject(signal.reason)
      }
      this.#waiting.push(called)
      signal.addEventListener('abort', aborted, { once: true })
    })
  }
}
