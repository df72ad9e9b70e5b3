/** Who is told whether the store took an intent. */
export interface IntentWatch {
  intentDurable(): void
  storeFailed(cause: unknown): void
}

/**
 * The intent of a call on its way into the store. Until it is there no byte of the answer leaves (invariant I5); the engine is
 * not kept waiting for it.
 */
export class IntentGate {
  /** The intent is durable. */
  open = false
  private settled: Promise<boolean> | null = null
  /** For who asks before the store was asked. */
  private early: PromiseWithResolvers<boolean> | null = null
  private waiting: (() => Promise<void>)[] | null = null

  /** Resolves when the store has said whether it took the intent, after the watch was told of it. */
  get stored(): Promise<boolean> {
    if (this.settled !== null) return this.settled
    this.early ??= Promise.withResolvers<boolean>()
    return this.early.promise
  }

  /** Waits for the store, which has been asked. */
  write(stored: Promise<void>, on: IntentWatch): void {
    this.settled = stored.then(
      () => this.opened(on),
      (cause: unknown) => {
        on.storeFailed(cause)
        return false
      },
    )
    this.early?.resolve(this.settled)
  }

  /** Runs `then` once the intent is durable; a store that failed is told elsewhere. */
  after(then: () => Promise<void>): void {
    this.waiting ??= []
    this.waiting.push(then)
  }

  private opened(on: IntentWatch): true {
    this.open = true
    on.intentDurable()
    const { waiting } = this
    this.waiting = null
    if (waiting !== null) for (const then of waiting) then().catch(() => {})
    return true
  }
}
