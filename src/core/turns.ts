/** Work that is done one after the other, in the order in which it was asked for, whatever becomes of the one before. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

/** The same for each key, whatever others do. A key that nobody waits for is forgotten. */
export class KeyedTurns<Key> {
  readonly #last = new Map<Key, Promise<unknown>>()

  /** Keys of which work goes on or waits. */
  get size(): number {
    return this.#last.size
  }

  take<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const over = turn
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(key) === over) this.#last.delete(key)
      })
    this.#last.set(key, over)
    return turn
  }
}
