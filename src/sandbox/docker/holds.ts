/** Who wants a box to stand still: its user, a snapshot, an update of the policy, the pool that it waits in. */
export type HoldReason = 'caller' | 'snapshot' | 'pause' | 'parked'

/**
 * Freezes a box for as long as anybody wants it frozen. Changes come one after the other, so that nobody thaws what
 * somebody else has just frozen.
 */
export class Holds {
  readonly #reasons = new Set<HoldReason>()
  readonly #change: { freeze(): Promise<void>; thaw(): Promise<void> }
  #turn: Promise<unknown> = Promise.resolve()

  constructor(change: { freeze(): Promise<void>; thaw(): Promise<void> }) {
    this.#change = change
  }

  /** Whether the box stands still, or is about to. */
  get any(): boolean {
    return this.#reasons.size > 0
  }

  add(reason: HoldReason): Promise<void> {
    return this.#next(async () => {
      if (this.#reasons.has(reason)) return
      const isFirst = this.#reasons.size === 0
      this.#reasons.add(reason)
      try {
        if (isFirst) await this.#change.freeze()
      } catch (error) {
        this.#reasons.delete(reason)
        throw error
      }
    })
  }

  release(reason: HoldReason): Promise<void> {
    return this.#next(async () => {
      if (!this.#reasons.has(reason)) return
      if (this.#reasons.size === 1) await this.#change.thaw()
      this.#reasons.delete(reason)
    })
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }
}
