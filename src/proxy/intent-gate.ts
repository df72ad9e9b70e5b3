/**
 * The intent of a call on its way into the store. Until it is there no byte of the answer leaves (invariant I5); the engine is
 * not kept waiting for it.
 */
export class IntentGate {
  /** The intent is durable. */
  open = false
  /** Resolves when it is; rejects as the store does. Null before the call was started. */
  stored: Promise<void> | null = null
  private waiting: (() => Promise<void>)[] = []

  /** To be called before anything can be heard from the engine; the store is asked when `write` is called. */
  begin(on: { durable: () => void; failed: (cause: unknown) => void }): { write(stored: Promise<void>): void } {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.stored = promise
    promise.then(
      () => {
        this.open = true
        on.durable()
        for (const then of this.waiting) then().catch(() => {})
        this.waiting = []
      },
      (cause: unknown) => on.failed(cause),
    )
    return { write: (stored) => void stored.then(resolve, reject) }
  }

  /** Runs `then` once the intent is durable; a store that failed is told elsewhere. */
  after(then: () => Promise<void>): void {
    this.waiting.push(then)
  }
}
