/** What a run came to, and whether this caller started it. */
export interface Share<T> {
  readonly value: T
  readonly own: boolean
}

/** One run at a time, shared by the callers that come together. A caller that gives up does not give up for the others. */
export class Shared<T> {
  #running: Promise<T> | null = null

  /** Joins the run that is under way, or starts one. Rejects with what its own run rejects with, or the signal's reason. */
  join(run: () => Promise<T>, signal: AbortSignal): Promise<Share<T>> {
    return this.#from(null, run, signal)
  }

  /** A run that began after this call: the one under way is waited for, and then one is shared by all who waited. */
  async next(run: () => Promise<T>, signal: AbortSignal): Promise<Share<T>> {
    const before = this.#running
    if (before !== null) await before.catch(() => null)
    signal.throwIfAborted()
    return this.#from(before, run, signal)
  }

  async #from(before: Promise<T> | null, run: () => Promise<T>, signal: AbortSignal): Promise<Share<T>> {
    while (this.#running !== null && this.#running !== before) {
      const ended = await this.#running.then(
        (value) => ({ value }),
        () => null,
      )
      if (ended !== null) return { ...ended, own: false }
      signal.throwIfAborted()
    }
    this.#running = run().finally(() => (this.#running = null))
    return { value: await this.#running, own: true }
  }
}
