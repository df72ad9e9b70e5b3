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
  readonly #waiting = new Map<
    Key,
    { readonly ahead: (() => Promise<void>)[]; readonly rest: (() => Promise<void>)[] }
  >()

  /** Keys of which work goes on or waits. */
  get size(): number {
    return this.#waiting.size
  }

  /** `ahead`: before all that wait without it. For what is short and seldom, because others wait for as long as there is any. */
  take<T>(key: Key, work: () => Promise<T>, o: { readonly ahead: boolean } = { ahead: false }): Promise<T> {
    return new Promise((resolve, reject) => {
      const turn = async (): Promise<void> => {
        try {
          resolve(await work())
        } catch (error) {
          reject(error)
        }
      }
      const known = this.#waiting.get(key)
      const waiting = known ?? { ahead: [], rest: [] }
      waiting[o.ahead ? 'ahead' : 'rest'].push(turn)
      if (known !== undefined) return
      this.#waiting.set(key, waiting)
      void this.#work(key, waiting)
    })
  }

  async #work(
    key: Key,
    { ahead, rest }: { readonly ahead: (() => Promise<void>)[]; readonly rest: (() => Promise<void>)[] },
  ): Promise<void> {
    // Whoever takes a turn goes on first, as with any promise.
    await Promise.resolve()
    for (let turn = ahead.shift() ?? rest.shift(); turn !== undefined; turn = ahead.shift() ?? rest.shift())
      await turn()
    this.#waiting.delete(key)
  }
}
